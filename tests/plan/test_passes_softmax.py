"""A softmax that is written out becomes one step, and overflows no longer; near misses are computed layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.ir.program import Step
from irload.plan.ir.steps import AttentionStep, SoftmaxStep
from models import ir
from tests.harness.runtime import core
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

SHAPE = (3, 4, 5)
Write = Callable[[Net, ir.Ref, int], ir.Ref]


def number(net: Net, value: float) -> ir.Ref:
    return net.constant(np.float32(value))


def reduced(net: Net, kind: str, x: ir.Ref, *axes: int, keep: bool = True) -> ir.Ref:
    return net.op(f"Reduce{kind}", x, net.constant(list(axes)), keep_dims=keep)


def summed(net: Net, e: ir.Ref, axis: int) -> ir.Ref:
    return net.op("Divide", e, reduced(net, "Sum", e, axis))


def centered(net: Net, x: ir.Ref, *axes: int) -> ir.Ref:
    return net.op("Subtract", x, reduced(net, "Max", x, *axes))


def bare(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    return summed(net, net.op("Exp", x), axis)


def from_the_end(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    return bare(net, x, axis - len(SHAPE))


def stable(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    return summed(net, net.op("Exp", centered(net, x, axis - len(SHAPE))), axis)


def scalar_axis(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Divide", e, net.op("ReduceSum", e, net.constant(axis), keep_dims=True))


def power(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Multiply", e, net.op("Power", reduced(net, "Sum", e, axis), number(net, -1)))


def by_products(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    largest = net.op("Multiply", reduced(net, "Max", x, axis), number(net, -1))
    e = net.op("Exp", net.op("Add", largest, x))
    return net.op("Multiply", net.op("Power", reduced(net, "Sum", e, axis), number(net, -1)), e)


def negative(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    return summed(net, net.op("Exp", net.op("Add", x, net.op("Negative", reduced(net, "Max", x, axis)))), axis)


def unsqueezed(net: Net, x: ir.Ref, axis: int) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Divide", e, net.op("Unsqueeze", reduced(net, "Sum", e, axis, keep=False), net.constant([axis])))


FORMS = (bare, from_the_end, stable, scalar_axis, power, by_products, negative, unsqueezed)


def two_axes(net: Net, x: ir.Ref) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Divide", e, reduced(net, "Sum", e, 1, 2))


def two_stable_axes(net: Net, x: ir.Ref) -> ir.Ref:
    e = net.op("Exp", centered(net, x, 1, 2))
    return net.op("Divide", e, reduced(net, "Sum", e, 1, 2))


def other_maximum(net: Net, x: ir.Ref) -> ir.Ref:
    return summed(net, net.op("Exp", centered(net, x, 1)), 2)


def wide_maximum(net: Net, x: ir.Ref) -> ir.Ref:
    return summed(net, net.op("Exp", centered(net, x, 0, 1, 2)), 2)


def with_epsilon(net: Net, x: ir.Ref) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Divide", e, net.op("Add", reduced(net, "Sum", e, 2), number(net, 1e-3)))


def mean(net: Net, x: ir.Ref) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Divide", e, reduced(net, "Mean", e, 2))


def inverted(net: Net, x: ir.Ref) -> ir.Ref:
    e = net.op("Exp", x)
    return net.op("Divide", reduced(net, "Sum", e, 2), e)


def other_exponentials(net: Net, x: ir.Ref) -> ir.Ref:
    return net.op("Divide", net.op("Exp", net.op("Sin", x)), reduced(net, "Sum", net.op("Exp", x), 2))


def not_exponential(net: Net, x: ir.Ref) -> ir.Ref:
    return summed(net, net.op("Sigmoid", x), 2)


def square(net: Net, x: ir.Ref) -> ir.Ref:
    return net.op("Power", reduced(net, "Sum", net.op("Exp", x), 2), number(net, -2))


NEAR = (
    two_axes, two_stable_axes, other_maximum, wide_maximum, with_epsilon, mean, inverted, other_exponentials,
    not_exponential, square,
)  # fmt: skip


def softmax(x: Array, axis: int) -> Array:
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def steps_of(model: Model, shape: tuple[int, ...] = SHAPE) -> list[Step]:
    return [kernel.step for kernel in plan_of(model, [shape]).kernels]


def large() -> Array:
    """Rows whose exponentials overflow, overflow in their sum, underflow, or do neither."""
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    return x + np.float32([[[1000]], [[88]], [[-200]]])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("write", FORMS, ids=lambda w: w.__name__)
def test_it_is_one_step(write: Write, axis: int) -> None:
    net = Net()
    model = net.model(write(net, net.input(*SHAPE), axis))
    (step,) = steps_of(model)
    assert isinstance(step, SoftmaxStep)
    assert step.axis == axis
    agrees(model, [SHAPE])


@pytest.mark.parametrize("options", [{}, {"jit": False}], ids=str)
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("write", FORMS, ids=lambda w: w.__name__)
def test_no_row_overflows(write: Write, axis: int, options: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net, x = Net(), large()
    model = net.model(write(net, net.input(*SHAPE), axis))
    np.testing.assert_allclose(irload.compile_model(model, 1, **options)(x)[0], softmax(x, axis), 1e-5, 1e-7)
    plain = irload.compile_model(model, 1, optimize=False)(x)[0]
    overflows = write not in (stable, by_products, negative)
    assert np.isnan(plain).any() == overflows, "plain execution computes each layer by its specification"


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("write", [bare, stable], ids=lambda w: w.__name__)
def test_nan_and_infinities(write: Write, special: float) -> None:
    net, x = Net(), np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    x[0, 0, 1], x[1, 0] = special, special
    model = net.model(write(net, net.input(*SHAPE), 2))
    expected = irload.compile_model(model, 1, optimize=False)(x)[0]
    if write is bare and special == np.inf:
        expected[0, 0] = np.nan  # the layers give 0 for finite elements, Softmax gives NaN, as after x − max(x)
    np.testing.assert_allclose(irload.compile_model(model, 1)(x)[0], expected, 1e-5, 1e-7)


@pytest.mark.parametrize("write", NEAR, ids=lambda w: w.__name__)
def test_near_misses_are_preserved(write: Callable[[Net, ir.Ref], ir.Ref]) -> None:
    net = Net()
    model = net.model(write(net, net.input(*SHAPE)))
    assert not any(isinstance(step, SoftmaxStep) for step in steps_of(model))
    agrees(model, [SHAPE])


@pytest.mark.parametrize(("axis", "replaced"), [(0, True), (1, False)])
def test_a_dropped_axis(axis: int, replaced: bool) -> None:
    """Sums along the first axis broadcast along it even without this axis; others broadcast along another axis."""
    net = Net()
    e = net.op("Exp", net.input(4, 4))
    model = net.model(net.op("Divide", e, reduced(net, "Sum", e, axis, keep=False)))
    assert any(isinstance(step, SoftmaxStep) for step in steps_of(model, (4, 4))) == replaced
    agrees(model, [(4, 4)])


def test_a_maximum_along_another_axis_by_broadcasting() -> None:
    """The maxima broadcast along another axis, so the difference is not x − max(x); it has a softmax."""
    net = Net()
    x = net.input(4, 4)
    model = net.model(summed(net, net.op("Exp", net.op("Subtract", x, reduced(net, "Max", x, 1, keep=False))), 1))
    assert [type(step).__name__ for step in steps_of(model, (4, 4))] == ["ReduceStep", "ElementwiseStep", "SoftmaxStep"]
    agrees(model, [(4, 4)])


@pytest.mark.parametrize("read", ["exponentials", "sum", "difference", "maximum"])
@pytest.mark.parametrize("output", [True, False])
def test_values_with_other_readers_remain(read: str, output: bool) -> None:
    """OpenVINO replaces these, too."""
    net, data = Net(), large()
    x = net.input(*SHAPE)
    maximum = reduced(net, "Max", x, 2)
    argument = net.op("Subtract", x, maximum) if read in ("difference", "maximum") else x
    e = net.op("Exp", argument)
    total = reduced(net, "Sum", e, 2)
    value = {"exponentials": e, "sum": total, "difference": argument, "maximum": maximum}[read]
    model = net.model(net.op("Divide", e, total), value if output else net.op("Sqrt", net.op("Abs", value)))
    assert any(isinstance(step, SoftmaxStep) for step in steps_of(model))
    ours, other = irload.compile_model(model, 1)(data).values()
    np.testing.assert_allclose(ours, softmax(data, 2), 1e-5, 1e-7)
    expected = list(irload.compile_model(model, 1, optimize=False)(data).values())[1]
    np.testing.assert_allclose(other, expected, 1e-5, 1e-30)


def test_two_quotients_of_the_same_exponentials() -> None:
    net = Net()
    e = net.op("Exp", net.input(*SHAPE))
    rows, columns = (net.op("Divide", e, reduced(net, "Sum", e, axis)) for axis in (2, 1))
    model = net.model(net.op("Subtract", rows, columns))
    assert sorted(step.axis for step in steps_of(model) if isinstance(step, SoftmaxStep)) == [1, 2]
    assert len(steps_of(model)) == 3
    agrees(model, [SHAPE])


@pytest.mark.parametrize("write", [bare, stable, by_products], ids=lambda w: w.__name__)
def test_attention_with_a_written_softmax(write: Write) -> None:
    net = Net()
    q, k, v = net.input(3, 6, 8), net.input(3, 5, 8), net.input(3, 5, 4)
    scores = net.op("MatMul", q, k, transpose_a=False, transpose_b=True)
    scores = net.op("Add", net.op("Multiply", scores, number(net, 0.3)), net.input(1, 1, 5))
    model = net.model(net.op("MatMul", write(net, scores, 2), v, transpose_a=False, transpose_b=False))
    plan = plan_of(model, net.shapes)
    assert [type(kernel.step) for kernel in plan.kernels] == [AttentionStep]
    agrees(model, net.shapes)


@pytest.mark.parametrize("write", FORMS, ids=lambda w: w.__name__)
def test_openvino_replaces_the_same_patterns(write: Write, tmp_path: Path) -> None:
    net, x = Net(), large()
    model = net.model(write(net, net.input(*SHAPE), 2))
    irload.save_model(model, tmp_path / "model.xml")
    runtime = core().compile_model(tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    np.testing.assert_allclose(irload.compile_model(model, 1)(x)[0], runtime([x])[0], 1e-4, 1e-6)
