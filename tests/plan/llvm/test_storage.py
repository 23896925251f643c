"""Values stored in bf16 between steps: reads and writes of each kernel, and the selected values of random programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.channels_last import layouts
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.storage import stored_layouts
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import (
    ConcatStep,
    ConvStep,
    ElementwiseStep,
    MatMulStep,
    NormalizeStep,
    PoolStep,
    ReduceStep,
    ReshapeStep,
    SliceStep,
    SoftmaxStep,
    TransposeStep,
)
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import BF16, DOTS, TILES, channels_last, guarded, run_step
from tests.plan.llvm.matmuls import random_matmul
from tests.plan.llvm.roundings import SIZES, narrowed, random_convolution, random_transposed, rounded
from tests.plan.llvm.test_elementwise import random_step
from tests.plan.programs import constant, random, run, value

Laid = Callable[[Value, Array], Array]


def laid(stored: set[Value], base: Laid) -> Laid:
    """The layout of the values that may be stored in bf16."""

    def lay(value: Value, plain: Array) -> Array:
        return base(value, guarded(value.shape, bfloat16) if value in stored else plain)

    return lay


def as_it_lies(value: Value, plain: Array) -> Array:
    return plain


def some(rng: np.random.Generator, values: Sequence[Value]) -> set[Value]:
    return {v for v in values if not v.is_constant and rng.random() < 0.7}


def check(
    step: Step, arrays: list[Array], stored: set[Value], target: Target, wanted: Array, base: Laid, threads: int = 1
) -> None:
    """The output equals the expected one, rounded if it is stored in bf16."""
    (output,) = run_step(step, arrays, target, threads, precision="bf16", laid=laid(stored, base))
    scale = max(float(np.abs(wanted).max()), 1e-30)
    rounding = 2.0**-8 if step.output in stored else 0.0
    np.testing.assert_allclose(output.astype(np.float32), wanted, rtol=1e-5 + rounding, atol=1e-5 * scale)


def in_numpy(step: Step, arrays: list[Array], stored: set[Value], *, products: bool = False) -> Array:
    """The step by NumPy on inputs rounded as stored; inputs of products are rounded in any case."""
    values = [v for v in step.inputs if not v.is_constant]
    short = stored | set(step.inputs[:2] if products else ())
    feeds = {v: narrowed(a) if v in short else a for v, a in zip(values, arrays, strict=True)}
    (output,) = run([step], feeds, step.outputs, passes=False)
    return output


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(60))
def test_convolutions(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_convolution(rng)
    if seed % 2:  # without padding the data are read in place
        pads = (0,) * len(step.pads_begin)
        spans = [(k - 1) * d + 1 for k, d in zip(step.inputs[1].shape[3:], step.dilations, strict=True)]
        sizes = [max(n, span) for n, span in zip(step.inputs[0].shape[2:], spans, strict=True)]
        step, arrays = convolution(rng, sizes, step.inputs[1].shape, strides=step.strides, dilations=step.dilations)
        assert step.pads_begin == pads
    stored = some(rng, [*step.inputs, step.output])
    wanted = in_numpy(rounded(step), arrays, stored, products=True)
    base = channels_last if rng.integers(3) else as_it_lies
    check(step, arrays, stored, target, wanted, base, int(rng.integers(1, 4)))


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(60))
def test_transposed_convolutions(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_transposed(rng)
    stored = some(rng, [step.inputs[0], step.output])
    wanted = in_numpy(rounded(step), arrays, stored, products=True)
    base = channels_last if rng.integers(3) else as_it_lies
    check(step, arrays, stored, target, wanted, base, int(rng.integers(1, 4)))


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(60))
def test_matmuls(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_matmul(rng, SIZES)
    stored = some(rng, [step.inputs[0], *step.operands, step.output]) - {step.inputs[1]}
    wanted = in_numpy(rounded(step), arrays, stored, products=True)
    check(step, arrays, stored, target, wanted, as_it_lies, int(rng.integers(1, 4)))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("channels", [3, 16, 45])
@pytest.mark.parametrize("seed", range(4))
def test_depthwise(target: Target, channels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    strides, pads = [(1, 1), (2, 2)][seed % 2], [((1, 1), (1, 1)), ((0, 0), (2, 1))][seed // 2]
    step, arrays = convolution(rng, (9, 20), (channels, 1, 1, 3, 3), batch=2, strides=strides, pads=pads)
    stored = some(rng, [*step.inputs, step.output])
    check(step, arrays, stored, target, in_numpy(step, arrays, stored), channels_last, 2)


@pytest.mark.parametrize("seed", range(8))
def test_winograd(seed: int) -> None:
    """Without AMX, Winograd's algorithm multiplies in f32, but reads and writes maps in bf16."""
    rng = np.random.default_rng(seed)
    step, arrays = convolution(rng, (10, 13), (1, 20 + seed, 33, 3, 3), batch=2, pads=((1, 1), (1, 0)))
    stored = {step.inputs[0], step.output} if seed == 0 else some(rng, [*step.inputs, step.output])
    check(step, arrays, stored, DOTS, in_numpy(step, arrays, stored), channels_last, 1 + seed % 3)


@pytest.mark.parametrize("group", [2, 4, 8])
def test_small_groups(group: int) -> None:
    """Without AMX, the products of small groups are f32."""
    rng = np.random.default_rng(group)
    step, arrays = convolution(rng, (9, 20), (5, group, group, 3, 3), pads=((1, 1), (1, 1)))
    stored = some(rng, [*step.inputs, step.output])
    check(step, arrays, stored, DOTS, in_numpy(step, arrays, stored), channels_last, 2)


@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(40))
def test_elementwise(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_step(rng)
    stored = some(rng, [*step.inputs, step.output])
    with np.errstate(all="ignore"):
        wanted = in_numpy(step, arrays, stored)
    check(step, arrays, stored, target, wanted, as_it_lies, int(rng.integers(1, 4)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize("channels", [3, 32, 70])
def test_poolings(target: Target, kind: str, channels: int) -> None:
    rng = np.random.default_rng(channels)
    x, y = value(2, channels, 11, 13), value(2, channels, 6, 7)
    numbers = {"strides": (2, 2), "dilations": (1, 1), "pads_begin": (1, 1)}
    step = PoolStep([x], [y], kind=kind, kernel=(3, 3), **numbers)
    arrays = [random(*x.shape)]
    for base in (channels_last, as_it_lies):
        stored = some(rng, [x, y])
        check(step, arrays, stored, target, in_numpy(step, arrays, stored), base)


@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("kind", ["sum", "mean", "max"])
@pytest.mark.parametrize("axes", [(2, 3), (1,), (3,), (0, 1)])
def test_reductions(target: Target, kind: str, axes: tuple[int, ...]) -> None:
    x = value(2, 35, 5, 19)
    y = value(*(1 if k in axes else n for k, n in enumerate(x.shape)))
    step, arrays = ReduceStep([x], [y], kind=kind, axes=axes), [random(*x.shape)]
    for base in (channels_last, as_it_lies):
        check(step, arrays, {x}, target, in_numpy(step, arrays, {x}), base)


RELU = Expression(1, (Instruction("relu", (0,)),))
ADD = Expression(2, (Instruction("add", (0, 1)),))
MULTIPLY = Expression(2, (Instruction("multiply", (0, 1)),))


KINDS = ["pointwise", "window", "depthwise", "pool", "relu", "sum", "concat", "scale", "slice", "turn"]


class Net:
    """A random program of the steps of convolutional nets."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.input = value(1, 16, *((14, 15), (6, 8), (16, 16))[int(rng.integers(3))])
        self.steps: list[Step] = []
        self.maps = [self.input]
        for _ in range(10):
            self.add()
        last = self.maps[-1]
        flat = self.add_step(ReshapeStep, [last], (1, last.size))
        weights = constant(self.normal((last.size, 32), last.size))
        self.outputs = [self.add_step(MatMulStep, [flat, weights], (1, 32)), last]
        if rng.random() < 0.5:
            self.outputs.append(self.maps[int(rng.integers(1, len(self.maps)))])

    def normal(self, shape: Sequence[int], fan: int) -> Array:
        return (self.rng.standard_normal(shape) / fan**0.5).astype(np.float32)

    def add_step(self, step: type[Step], inputs: list[Value], shape: Sequence[int], **how: object) -> Value:
        out = value(*shape)
        self.steps.append(step(inputs, [out], **how))
        return out

    def add(self) -> None:
        rng = self.rng
        x = self.maps[int(rng.integers(max(0, len(self.maps) - 3), len(self.maps)))]
        n, c, h, w = x.shape
        kind = rng.choice(KINDS)
        if kind in ("pointwise", "window", "depthwise"):
            k = 1 if kind == "pointwise" else 3
            groups, own = (c, 1) if kind == "depthwise" else (1, int(rng.choice([16, 24, 32, 48])))
            weights = constant(self.normal((groups, own, c // groups, k, k), k * k * c // groups))
            pad = (k // 2, k // 2)
            same = [m for m in self.maps if m.shape == (n, groups * own, h, w) and rng.random() < 0.7]
            how = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": pad, "pads_end": pad}
            epilogue = {"epilogue": ADD} if same else {}
            y = self.add_step(ConvStep, [x, weights, *same[:1]], (n, groups * own, h, w), **how, **epilogue)
        elif kind == "pool":
            how = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1)}
            y = self.add_step(PoolStep, [x], x.shape, kind=str(rng.choice(["max", "mean"])), kernel=(3, 3), **how)
        elif kind == "relu":
            y = self.add_step(ElementwiseStep, [x], x.shape, expression=RELU)
        elif kind == "sum":
            other = [m for m in self.maps if m.shape == x.shape]
            y = self.add_step(ElementwiseStep, [x, other[int(rng.integers(len(other)))]], x.shape, expression=ADD)
        elif kind == "concat":
            parts = [m for m in self.maps if m.shape[2:] == (h, w)][-2:]
            y = self.add_step(ConcatStep, parts, (n, sum(m.shape[1] for m in parts), h, w), axis=1)
        elif kind == "scale":
            mean = self.add_step(ReduceStep, [x], (n, c, 1, 1), kind="mean", axes=(2, 3))
            y = self.add_step(ElementwiseStep, [x, mean], x.shape, expression=MULTIPLY)
        elif kind == "slice":
            y = self.add_step(SliceStep, [x], (n, c // 2, h, w), index=(slice(None), slice(0, c // 2)))
        else:
            turned = self.add_step(TransposeStep, [x], (n, h, w, c), order=(0, 2, 3, 1))
            y = self.add_step(ElementwiseStep, [turned], turned.shape, expression=RELU)
            y = self.add_step(TransposeStep, [y], x.shape, order=(0, 3, 1, 2))
        self.maps.append(y)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(40))
def test_random_nets(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = Net(rng)
    array = random(*net.input.shape, seed=seed)
    wanted = run(net.steps, {net.input: array}, net.outputs, passes=False)
    program = Program(net.steps, [net.input], list(dict.fromkeys(net.outputs)))
    options = Options(int(rng.integers(1, 4)), precision="bf16")
    plan = Executor(program, options, [LlvmBackend(target, bf16=True), NumpyBackend()])
    by_output = dict(zip(program.outputs, plan.run([array]), strict=True))
    for v, a in zip(net.outputs, wanted, strict=True):
        producer = by_output[v]
        assert producer.dtype == np.float32
        assert np.abs(producer - a).mean() <= 0.03 * a.std() + 1e-6


def small_net() -> tuple[Program, dict[str, Value]]:
    """Two convolutions, a residual sum, their mean, and a convolution that no kernel for tiles supports."""
    names = ("x", "a", "b", "s", "mean", "few")
    x, a, b, s = (value(1, 64, 16, 16) for _ in range(4))
    mean, few = value(1, 64, 1, 1), value(1, 4, 16, 16)
    how = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    w, w_few = (constant(np.zeros((1, n, 64, 1, 1), np.float32)) for n in (64, 4))
    steps = [
        ConvStep([x, w], [a], **how),
        ConvStep([a, w], [b], **how),
        ElementwiseStep([a, b], [s], expression=ADD),
        ReduceStep([s], [mean], kind="mean", axes=(2, 3)),
        ConvStep([b, w_few], [few], **how),
    ]
    return Program(steps, [x], [mean, few]), dict(zip(names, (x, a, b, s, mean, few), strict=True))


@pytest.mark.parametrize("target", [TILES, DOTS], ids=lambda t: t.name)
def test_values_stored_in_bf16(target: Target) -> None:
    program, values = small_net()
    formats = stored_layouts(program, program.steps, layouts(program, program.steps, program.inputs), target)
    stored = {name for name, v in values.items() if v in formats and formats[v].storage == bfloat16}
    assert stored == {"a", "s"}  # b is read by a convolution in f32, x belongs to the caller, the others are returned


@pytest.mark.parametrize("target", [TILES, DOTS], ids=lambda t: t.name)
@pytest.mark.parametrize("kind", ["softmax", "relu", "none"])
def test_maxima_of_maps(target: Target, kind: str) -> None:
    """Detectors keep the elements that equal the maximum of their window. Rounding one side would leave none."""
    x, a, b, top, equal, y = (value(1, 64, 16, 16) for _ in range(6))
    how = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    w = constant(np.random.default_rng(0).standard_normal((1, 64, 64, 1, 1)).astype(np.float32))
    scores = b
    steps: list[Step] = [ConvStep([x, w], [a], **how), ConvStep([a, w], [b], **how)]
    if kind != "none":
        scores = value(1, 64, 16, 16)
        softmax = SoftmaxStep([b], [scores], axis=1)
        steps.append(softmax if kind == "softmax" else ElementwiseStep([b], [scores], expression=RELU))
    window = {"kind": "max", "kernel": (3, 3), "strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1)}
    is_top = Expression(2, (Instruction("equal", (0, 1)), Instruction("select", (2, 0, 1))))
    steps += [
        PoolStep([scores], [top], **window),
        ElementwiseStep([scores, top], [equal], expression=is_top),
        ConvStep([equal, w], [y], **how),
    ]
    program = Program(steps, [x], [y])
    formats = stored_layouts(program, program.steps, layouts(program, program.steps, program.inputs), target)
    stored = {v for v, layout in formats.items() if layout.storage == bfloat16}
    assert a in stored
    assert stored.isdisjoint({scores, top})


def test_maxima_of_softmax_have_its_type() -> None:
    """A maximum has the stored type of its data, as their difference may be compared with 0."""
    x, scores, top, y = (value(1, 64, 16, 16) for _ in range(4))
    how = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0)}
    w = constant(np.zeros((1, 64, 64, 1, 1), np.float32))
    steps: list[Step] = [
        SoftmaxStep([x], [scores], axis=1),
        PoolStep([scores], [top], kind="max", kernel=(3, 3), **(how | {"pads_begin": (1, 1)})),
        ConvStep([top, w], [y], **how, pads_end=(0, 0)),
    ]
    program = Program(steps, [x], [y])
    formats = stored_layouts(program, program.steps, layouts(program, program.steps, program.inputs), TILES)
    assert all(layout.storage is None for v, layout in formats.items() if v is top)


def test_residual_streams_of_transformers_are_not_stored() -> None:
    x, normal, inner, y = value(1, 32, 64), value(1, 32, 64), value(1, 32, 256), value(1, 32, 64)
    steps = [
        NormalizeStep([x], [normal], axes=(2,), eps=1e-5),
        MatMulStep([normal, constant(np.zeros((64, 256), np.float32))], [inner]),
        MatMulStep([inner, constant(np.zeros((256, 64), np.float32)), x], [y], epilogue=ADD),
        NormalizeStep([y], [z := value(1, 32, 64)], axes=(2,), eps=1e-5),
    ]
    stored = stored_layouts(Program(steps, [x], [z]), steps, {}, TILES)
    assert {v for v, layout in stored.items() if layout.storage == bfloat16} == {inner}
