"""Products of u8 and i8: exact sums for random geometry, types of results, zero points, and instructions as text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.ops.convolution.forward import convolve
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.builder import Module
from irload.plan.backends.llvm.compiler import Compiler
from irload.plan.backends.llvm.dot import BYTE_PAIRS, VNNI, WIDENED_BYTES, byte_dot
from irload.plan.backends.llvm.target import AVX2, AVX512_BF16, AVX512_VNNI, AVX_VNNI, TARGETS, Target, host_target
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.integer_weights import pairs_fit
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import ConvStep, ElementwiseStep, Integers, MatMulStep, PoolStep
from tests.harness.tiers import tiered
from tests.plan.llvm.harness import TARGETS as RUNNABLE
from tests.plan.llvm.harness import channels_last, guarded, kernel_names, run_step

_host = host_target()
U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)
QUANTIZE = Expression(
    2,
    (
        Instruction("multiply", (0, 1)),
        Instruction("clamp", (2,), (0.0, 255.0)),
        Instruction("round", (3,)),
        Instruction("convert", (4,), (), U8),
    ),
)


def weights_of(rng: np.random.Generator, shape: tuple[int, ...], *, fit: bool) -> Array:
    """Extreme i8 weights. With `fit`, sums of two neighbouring products fit into i16, otherwise they may not."""
    largest = 64 if fit else 127
    return rng.choice(np.array([-largest, -largest + 1, -3, 0, 2, largest]), shape).astype(np.int8)


def data_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.choice(np.array([0, 1, 7, 128, 254, 255]), shape).astype(np.uint8)


def convolution(rng: np.random.Generator, *, winograd: bool) -> tuple[ConvStep, Array, Array]:
    """A random convolution of 1 to 3 axes, its data and its exact sums."""
    rank = 2 if winograd else int(rng.integers(1, 4))
    depth, per_group = (int(rng.choice([16, 17, 20] if winograd else [1, 2, 3, 4, 7, 8, 12, 17])) for _ in range(2))
    groups = 1 if winograd else int(rng.choice([1, 1, 2, 3]))
    kernel = (3, 3) if winograd else tuple(int(n) for n in rng.integers(1, 4, rank))
    strides = (1,) * rank if winograd else tuple(int(n) for n in rng.integers(1, 3, rank))
    dilations = (1,) * rank if winograd else tuple(int(n) for n in rng.integers(1, 3, rank))
    pads = [(int(rng.integers(0, k)), int(rng.integers(0, k))) for k in kernel]
    sizes = tuple(
        int(rng.integers(11 if winograd else (k - 1) * d + 1, 20)) for k, d in zip(kernel, dilations, strict=True)
    )
    fit = bool(rng.integers(2))
    zero_point = int(rng.choice([0, 0, 3, 128, 255]))
    x = data_of(rng, (int(rng.integers(1, 3)), groups * depth, *sizes))
    w = weights_of(rng, (groups, per_group, depth, *kernel), fit=fit)
    exact = convolve(x.astype(np.int64) - zero_point, w.astype(np.int64), strides, dilations, pads)
    strides = tuple(1 if n == 1 else s for n, s in zip(exact.shape[2:], strides, strict=True))
    step = ConvStep(
        [Value(x.shape, U8), Value.of(w)],
        [Value(exact.shape, F32)],
        strides=strides,
        dilations=dilations,
        pads_begin=tuple(b for b, _ in pads),
        pads_end=tuple(e for _, e in pads),
        integers=Integers(zero_point, pairs_fit(w, 2)),
    )
    step.check()
    return step, x, exact


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(tiered(5, 10)))
def test_random_convolutions_are_exact(seed: int, target: Target) -> None:
    rng = np.random.default_rng(seed)
    for k in range(tiered(5, 20)):
        step, x, exact = convolution(rng, winograd=False)
        laid = channels_last if k % 4 else None
        (output,) = run_step(step, [x], target, int(rng.integers(1, 3)), at_end=bool(k % 2), laid=laid)
        np.testing.assert_array_equal(output, exact.astype(np.float32))


def stored_in_i16(x: Value) -> Callable[[Value, Array], Array]:
    """Channels-last maps, with x stored in i16."""
    return lambda value, plain: channels_last(value, guarded(value.shape, np.int16) if value is x else plain)


def in_columns_of_i16(x: Value) -> Callable[[Value, Array], Array]:
    """Matrices whose columns are contiguous, stored in i16."""
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    return lambda value, plain: guarded(shape, np.int16).swapaxes(-1, -2) if value is x else plain


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(tiered(3, 10)))
def test_random_convolutions_of_bytes_stored_in_i16_are_exact(seed: int, target: Target) -> None:
    rng = np.random.default_rng(seed)
    for k in range(tiered(5, 20)):
        step, x, exact = convolution(rng, winograd=k % 5 == 4)
        laid = stored_in_i16(step.inputs[0])
        (output,) = run_step(step, [x], target, int(rng.integers(1, 3)), at_end=bool(k % 2), laid=laid)
        np.testing.assert_allclose(output, exact, 0, 1.0 if k % 5 == 4 else 0)


def test_data_of_products_whose_pairs_exceed_i16_are_stored_in_i16() -> None:
    """Only by targets without VNNI."""
    x, stored = Value((1, 8, 6, 6), F32), Value((1, 8, 6, 6), U8)
    quantize = ElementwiseStep([x], [stored], expression=Expression(1, (Instruction("convert", (0,), dtype=U8),)))
    for largest, target, wanted in ((127, AVX2, np.int16), (63, AVX2, None), (127, AVX512_VNNI, None)):
        w = np.full((1, 8, 8, 1, 1), largest, np.int8)
        step = ConvStep(
            [stored, Value.of(w)],
            [Value((1, 8, 6, 6), F32)],
            strides=(1, 1),
            dilations=(1, 1),
            pads_begin=(0, 0),
            pads_end=(0, 0),
            integers=Integers(0, pairs_fit(w, 2)),
        )
        program = Program([quantize, step], [x], step.outputs)
        layout = LlvmBackend(target, int8=True).requests(program, program.steps).layouts[stored]
        assert layout.storage == wanted


VNNI_HOST = [t for t in (AVX512_VNNI, AVX_VNNI) if _host is not None and t.flags <= _host.flags]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("target", [*RUNNABLE, *VNNI_HOST], ids=lambda t: t.name)
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("fit", [False, True])
def test_windows_of_few_channels_are_runs_of_words(depth: int, target: Target, fit: bool) -> None:
    """Pairs across columns may not fit into i16 even if all pairs of channels do."""
    rng = np.random.default_rng(depth)
    for kernel, stride, dilation in ((7, 2, 1), (3, 1, 1), (5, 3, 1), (3, 1, 2)):
        x = data_of(rng, (2, depth, 19, 17))
        w = weights_of(rng, (1, 21, depth, kernel, kernel), fit=fit)
        if fit and depth == 3:
            w[:, :, 2], w[:, :, 0] = 127, 127  # the first and the last channel are in different pairs
            w[:, :, 1] = 0
        pads = [(kernel // 2, kernel // 2 - 1), (kernel // 2 + 1, 0)]
        exact = convolve(x.astype(np.int64) - 3, w.astype(np.int64), (stride,) * 2, (dilation,) * 2, pads)
        step = ConvStep(
            [Value(x.shape, U8), Value.of(w)],
            [Value(exact.shape, F32)],
            strides=(stride, stride),
            dilations=(dilation, dilation),
            pads_begin=tuple(b for b, _ in pads),
            pads_end=tuple(e for _, e in pads),
            integers=Integers(3, pairs_fit(w, 2)),
        )
        for at_end in (False, True):
            (result,) = run_step(step, [x], target, at_end=at_end)
            np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("seed", range(4))
def test_winograd_rounds_as_f32_does(seed: int) -> None:
    step, x, exact = convolution(np.random.default_rng(seed), winograd=True)
    assert kernel_names(step, laid=channels_last) == ["Winograd"]
    (output,) = run_step(step, [x], laid=channels_last)
    np.testing.assert_allclose(output, exact, 0, 1.0)  # of sums up to a million


@pytest.mark.one_in(2)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_random_matmuls_are_exact(seed: int, transposed: bool) -> None:
    rng = np.random.default_rng(seed)
    for k in range(tiered(5, 10)):
        rows, columns = (int(n) for n in rng.choice([1, 2, 7, 16, 33, 65], 2))
        length, zero_point = 4 * int(rng.choice([1, 2, 5, 16, 33])), int(rng.choice([0, 128]))
        lead = (2, 3)[: int(rng.integers(0, 3))]
        a, b = data_of(rng, (*lead, rows, length)), weights_of(rng, (length, columns), fit=bool(k % 2))
        stored = b.T if transposed else b
        step = MatMulStep(
            [Value(a.shape, U8), Value.of(np.ascontiguousarray(stored))],
            [Value((*lead, rows, columns), F32)],
            transpose_b=transposed,
            integers=Integers(zero_point, pairs_fit(b, 0)),
        )
        step.check()
        for laid in (None, stored_in_i16(step.inputs[0]), in_columns_of_i16(step.inputs[0])):
            (output,) = run_step(step, [a], threads=1 + k % 2, laid=laid)
            np.testing.assert_array_equal(output, (a.astype(np.int64) - zero_point) @ b.astype(np.int64))


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda t: t.name)
@pytest.mark.parametrize("channels", [3, 8, 21, 32])
def test_results_are_rounded_to_bytes(channels: int, target: Target) -> None:
    """Halves are rounded to even, values out of range clamped; stores stay within rows of any number of channels."""
    x = np.arange(8 * 36, dtype=np.uint8).reshape(1, 8, 6, 6)
    w = np.eye(channels, 8, dtype=np.int8).reshape(1, channels, 8, 1, 1)
    w[0, 0, 0] = -1
    scale = np.where(np.arange(channels) % 2, 0.5, 2).astype(np.float32).reshape(1, channels, 1, 1)
    step = ConvStep(
        [Value(x.shape, U8), Value.of(w), Value.of(scale)],
        [Value((1, channels, 6, 6), U8)],
        strides=(1, 1),
        dilations=(1, 1),
        pads_begin=(0, 0),
        pads_end=(0, 0),
        integers=Integers(0, pairs_fit(w, 2)),
        epilogue=QUANTIZE,
    )
    step.check()
    sums = convolve(x.astype(np.float32), w.astype(np.float32), (1, 1), (1, 1), [(0, 0), (0, 0)])
    for laid in (channels_last, stored_in_i16(step.output)):
        (output,) = run_step(step, [x], target, laid=laid)
        np.testing.assert_array_equal(output, np.rint(np.clip(sums * scale, 0, 255)).astype(np.uint8))


@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize("channels", [3, 8, 19])
def test_bytes_are_pooled(channels: int, kind: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (1, channels, 9, 9)).astype(np.uint8)
    out = Value((1, channels, 4, 4), U8 if kind == "max" else F32)
    pair = {"kernel": (3, 3), "strides": (2, 2), "dilations": (1, 1), "pads_begin": (0, 0)}
    step = PoolStep([Value(x.shape, U8)], [out], kind=kind, **pair)  # type: ignore[arg-type]
    step.check()
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    for laid in (channels_last, stored_in_i16(step.inputs[0])):
        (output,) = run_step(step, [x], laid=laid)
        if kind == "max":
            np.testing.assert_array_equal(output, windows.max((-1, -2)))
        else:
            np.testing.assert_allclose(output, windows.mean((-1, -2)), 1e-6)


def test_the_dot_depends_on_the_target_and_on_the_weights() -> None:
    assert byte_dot(AVX2, saturates=False) is BYTE_PAIRS
    assert byte_dot(AVX2, saturates=True) is WIDENED_BYTES
    for target in (AVX_VNNI, AVX512_VNNI, AVX512_BF16, TARGETS["amx"]):
        assert byte_dot(target, saturates=True) is VNNI


@pytest.mark.parametrize("target", [AVX_VNNI, AVX512_VNNI], ids=lambda t: t.name)
def test_vnni_is_one_instruction(target: Target) -> None:
    module = Module(target)
    f = module.function("kernel", ["ptr arguments"], internal=False)
    data, weights = (f.load(f["arguments"], at * target.bytes) for at in range(2))
    f.store(VNNI.multiply(f, f.zero("i32"), data, weights), f["arguments"])
    compiler = Compiler(target)
    assert compiler.machine.emit_assembly(compiler.parsed(module.text())).count("vpdpbusd") == 1


def test_pairs_of_neighbours_decide() -> None:
    assert pairs_fit(np.array([[64, 64, -128, 0, -64, -64, 127, -128, 127]], np.int8), 1)
    assert not pairs_fit(np.array([[64, 65]], np.int8), 1)
    assert not pairs_fit(np.array([[-128], [-1]], np.int8), 0)
