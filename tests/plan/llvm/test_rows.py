"""Softmax, normalisations, reductions and rotation of random shapes and strides."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import GroupNormalizeStep, NormalizeStep, ReduceStep, RotaryEmbeddingStep, SoftmaxStep
from tests.plan.llvm.harness import TARGETS, channels_last, guarded, run_step
from tests.plan.llvm.strides import strided
from tests.plan.programs import constant, value

SCALE_AND_SHIFT = Expression(3, (Instruction("multiply", (0, 1)), Instruction("add", (3, 2))))
GELU = Expression(1, (Instruction("gelu", (0,)),))
F32 = np.dtype(np.float32)


def checked(step: Step, arrays: list[Array], wanted: Array, seed: int, rtol: float = 1e-5) -> None:
    """Compare the step on memory of any strides with the expected result."""
    rng = np.random.default_rng([seed, 1])
    target, threads = TARGETS[seed % len(TARGETS)], int(rng.integers(1, 4))
    lay = (None, channels_last, strided(rng))[seed % 3]
    (output,) = run_step(step, arrays, target, threads, at_end=bool(seed % 2), laid=lay)
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(output, wanted, rtol=rtol, atol=rtol * float(finite.max(initial=0)))


def random_shape(rng: np.random.Generator, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.choice([1, 2, 3, 7, 8, 16, 19, 33, 67], int(rng.integers(low, high + 1))))


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return (rng.standard_normal(shape) * 3 + 1).astype(np.float32)


def softmax(x: Array, axis: int) -> Array:
    with np.errstate(invalid="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("seed", range(60))
def test_softmax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = random_shape(rng, 1, 4)
    axis = int(rng.integers(len(shape)))
    x = numbers(rng, shape)
    if seed % 4 == 0:
        x.reshape(-1)[rng.integers(0, x.size, 3)] = (-np.inf, np.inf, np.nan)[seed // 4 % 3]
    checked(SoftmaxStep([value(*shape)], [value(*shape)], axis=axis), [x], softmax(x, axis), seed)


targets = pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)


@targets
@pytest.mark.parametrize(("shape", "axis"), [((6, 64), 1), ((64, 6), 0), ((40, 5), 1)])
def test_softmax_of_masked_scores_has_no_subnormal_results(shape: tuple[int, ...], axis: int, target: Target) -> None:
    x = numbers(np.random.default_rng(1), shape) * 4
    x += np.linspace(-110, 0, shape[axis], dtype=np.float32).reshape([-1 if k == axis else 1 for k in range(2)])
    (output,) = run_step(SoftmaxStep([value(*shape)], [value(*shape)], axis=axis), [x], target, 1)
    wanted = softmax(x, axis)
    tiny = np.finfo(np.float32).tiny
    assert ((wanted > 0) & (wanted < tiny)).any()
    assert not ((output > 0) & (output < tiny)).any()
    # Only results that may be subnormal are flushed to zero.
    np.testing.assert_allclose(output, np.where(output == 0, 0, wanted), rtol=2e-5)  # the rounding of x − max near −100
    assert wanted[output == 0].max() <= tiny * shape[axis]


@targets
@pytest.mark.parametrize(("shape", "axis"), [((4, 1001), 1), ((3, 1001, 5), 1), ((2, 16, 4, 80), 1), ((5, 1), 1)])
def test_softmax_of_long_axes(shape: tuple[int, ...], axis: int, target: Target) -> None:
    x = numbers(np.random.default_rng(0), shape)
    (output,) = run_step(SoftmaxStep([value(*shape)], [value(*shape)], axis=axis), [x], target, 2)
    np.testing.assert_allclose(output, softmax(x, axis), rtol=3e-6, atol=1e-9)
    (output,) = run_step(SoftmaxStep([value(*shape)], [value(*shape)], axis=axis), [x * 0 - np.inf], target, 2)
    assert np.isnan(output).all()


@pytest.mark.one_in(16)
@targets
@pytest.mark.parametrize("length", range(1, 18))
@pytest.mark.parametrize("rows", [(1,), (15,), (16,), (3, 37)])
@pytest.mark.parametrize("planar", [False, True])
def test_softmax_of_short_rows(length: int, rows: tuple[int, ...], planar: bool, target: Target) -> None:
    """Consecutive short rows, as in channels-last maps; with `planar` the results have another layout."""
    rng = np.random.default_rng(length)
    x = numbers(rng, (*rows, length))
    x.reshape(-1)[rng.integers(0, x.size, 3)] = -np.inf, np.inf, np.nan
    x = np.moveaxis(x, -1, -2) if planar else x
    axis = len(rows) - planar
    step = SoftmaxStep([value(*x.shape)], [value(*x.shape)], axis=axis)

    def laid(of: Value, array: Array) -> Array:
        return (
            np.moveaxis(guarded((*rows, length)), -1, -2) if planar and of is step.inputs[0] else guarded(array.shape)
        )

    (output,) = run_step(step, [x], target, 2, laid=laid)
    np.testing.assert_allclose(output, softmax(x, axis), rtol=3e-6, atol=1e-9)


def normalized(x: Array, axes: tuple[int, ...], eps: float, *, center: bool, outside: bool = False) -> Array:
    x = x.astype(np.float64)
    x = x - x.mean(axes, keepdims=True) if center else x
    variance = np.square(x).mean(axes, keepdims=True)
    return x / (np.sqrt(variance) + eps if outside else np.sqrt(variance + eps))


@pytest.mark.parametrize("seed", range(60))
def test_normalize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = random_shape(rng, 1, 4)
    axes = tuple(range(int(rng.integers(len(shape))), len(shape)))
    center = bool(rng.random() < 0.6)
    x = numbers(rng, shape)
    if np.prod([shape[a] for a in axes]) < 4:
        x[...] = np.round(x)  # a variance near zero is not comparable
    outside = bool(rng.integers(2))
    wanted = normalized(x, axes, 0.1, center=center, outside=outside)
    inputs: list[Value] = [value(*shape)]
    arrays, epilogue = [x], GELU
    if seed % 2:
        epilogue = SCALE_AND_SHIFT
        scale, shift = (numbers(rng, tuple(1 if rng.random() < 0.3 else n for n in shape)) for _ in range(2))
        wanted = wanted * scale + shift
        inputs += [constant(scale), value(*shift.shape)]
        arrays.append(shift)
    else:
        wanted = gelu(wanted)
    step = NormalizeStep(inputs, [value(*shape)], axes=axes, eps=0.1, center=center, outside=outside, epilogue=epilogue)
    checked(step, arrays, wanted, seed)


def gelu(x: Array) -> Array:
    from math import erf

    return x / 2 * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2)))


@targets
@pytest.mark.parametrize("n", [768, 1023, 4096 + 7])
def test_rows_far_from_zero(n: int, target: Target) -> None:
    """The variance is computed from differences to the mean; for equal numbers it is exactly zero."""
    rng = np.random.default_rng(0)
    x = (1000 + rng.standard_normal((3, n))).astype(np.float32)
    x[2] = 1234.5
    step = NormalizeStep([value(3, n)], [value(3, n)], axes=(1,), eps=1e-5)
    (output,) = run_step(step, [x], target)
    np.testing.assert_allclose(output, normalized(x, (1,), 1e-5, center=True), atol=2e-4)
    assert not output[2].any()


@pytest.mark.parametrize("seed", range(30))
def test_group_normalize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, each = (int(n) for n in rng.choice([1, 2, 3, 4, 10], 2))
    shape = (int(rng.integers(1, 3)), groups * each, *random_shape(rng, 0 if each > 2 else 1, 3))
    x, scale, bias = numbers(rng, shape), numbers(rng, shape[1:2]), numbers(rng, shape[1:2])
    split = x.reshape(shape[0], groups, -1)
    wanted = normalized(split, (2,), 0.1, center=True).reshape(shape)
    column = (-1, *(1,) * (len(shape) - 2))
    wanted = wanted * scale.reshape(column) + bias.reshape(column)
    inputs = [value(*shape), constant(scale), value(*bias.shape)]
    checked(GroupNormalizeStep(inputs, [value(*shape)], groups=groups, eps=0.1), [x, bias], wanted, seed)


@targets
@pytest.mark.parametrize(("groups", "each"), [(32, 10), (3, 27), (7, 5), (1, 20), (2, 31), (4, 4), (40, 2)])
def test_groups_of_neighbouring_channels(groups: int, each: int, target: Target) -> None:
    """Bands of whole groups: several cache lines, a partial vector, one group."""
    shape = (2, groups * each, 11, 13)
    x = numbers(np.random.default_rng(each), shape)
    wanted = normalized(x.reshape(2, groups, -1), (2,), 0.1, center=True).reshape(shape)
    ones, zeros = (constant(np.full(shape[1], n, np.float32)) for n in (1, 0))
    step = GroupNormalizeStep([value(*shape), ones, zeros], [value(*shape)], groups=groups, eps=0.1)
    (output,) = run_step(step, [x], target, 2, laid=channels_last)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@targets
@pytest.mark.parametrize("columns", [3, 8, 16, 24, 40, 70])
@pytest.mark.parametrize("positions", [5, 128, 300])
def test_reductions_of_columns(columns: int, positions: int, target: Target) -> None:
    """Bands of fewer vectors for few columns, chunks of long sums."""
    x = numbers(np.random.default_rng(columns), (2, positions, columns))
    for kind, wanted in (("mean", x.mean(1, dtype=np.float64)), ("max", x.max(1))):
        step = ReduceStep([value(*x.shape)], [value(2, columns)], kind=kind, axes=(1,))
        (output,) = run_step(step, [x], target, 2)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


def reduced(kind: str, x: Array, axes: tuple[int, ...], *, keep: bool) -> Array:
    match kind:
        case "max":
            return np.fmax.reduce(x, axes, keepdims=keep, initial=np.finfo(F32).min)
        case "min":
            return np.fmin.reduce(x, axes, keepdims=keep, initial=np.float32(np.inf))
        case _:
            with np.errstate(invalid="ignore"):
                total = x.sum(axes, np.float64, keepdims=keep)
            return total / (np.prod([x.shape[a] for a in axes]) if kind == "mean" else 1)


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("seed", range(40))
def test_reduce(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    shape = random_shape(rng, 1, 4)
    axes = tuple(sorted(int(a) for a in rng.permutation(len(shape))[: int(rng.integers(1, len(shape) + 1))]))
    x, keep = numbers(rng, shape), bool(rng.random() < 0.5)
    if seed % 4 == 0:
        x[tuple(slice(0, 1) if k not in axes else slice(None) for k in range(len(shape)))] = (-np.inf, np.nan)[
            seed // 4 % 2
        ]
    wanted = np.asarray(reduced(kind, x, axes, keep=keep))
    checked(ReduceStep([value(*shape)], [value(*wanted.shape)], kind=kind, axes=axes), [x], wanted, seed)


@targets
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_long_sums_keep_their_digits(axes: tuple[int, ...], target: Target) -> None:
    x = np.random.default_rng(0).random((40_000, 20), np.float32)
    step = ReduceStep([value(*x.shape)], [value(*np.delete(x.shape, axes))], kind="sum", axes=axes)
    (output,) = run_step(step, [x], target, 2)
    np.testing.assert_allclose(output, x.sum(axes, np.float64), rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_rotary_embedding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (*random_shape(rng, 0, 3), int(rng.choice([2, 6, 16, 64, 66])))
    narrow = [tuple(1 if rng.random() < 0.3 else n for n in shape) for _ in range(2)]
    x, cosine, sine = (numbers(rng, s) for s in (shape, *narrow))
    first, second = np.split(x, 2, -1)
    wanted = x * cosine + np.concatenate([-second, first], -1) * sine
    step = RotaryEmbeddingStep([value(*shape), value(*narrow[0]), constant(sine)], [value(*shape)])
    checked(step, [x, cosine], wanted, seed)
