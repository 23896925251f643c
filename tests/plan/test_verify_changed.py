"""Every kind of step, as lowering creates it, with one field changed: `verify` detects each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np
import pytest

from irload.plan.ir.program import PlanInvalid, Program, Step, Value
from irload.plan.ir.steps import (
    AttentionStep,
    BroadcastStep,
    ComputeStep,
    ConvTransposeStep,
    PoolStep,
    RecurrentStep,
    ReduceStep,
    ResampleStep,
    SampleStep,
    SliceStep,
)
from irload.plan.ir.verify import verify
from models import ir
from tests.plan.exact import Exact, plan_of
from tests.plan.graphs import PAIRS
from tests.plan.lowering.nodes import MVN, sequence

Build = Callable[[Exact], ir.Ref]


def window(net: Exact) -> ir.Ref:
    return net.op("Add", net.conv(net.input(2, 3, 7, 8), 3, 5, 2), net.input(2, 1, 6, 7))


def product(net: Exact) -> ir.Ref:
    y = net.op("MatMul", net.input(2, 3, 4), net.input(2, 5, 4), transpose_a=False, transpose_b=True)
    return net.op("Add", y, net.input(3, 1))


def normalised(net: Exact) -> ir.Ref:
    return net.op("Multiply", net.op("MVN", net.input(2, 3, 4), net.constant([2]), **MVN), net.input(3, 4))


def rotated(net: Exact) -> ir.Ref:
    x = net.input(2, 6, 8)
    first, second = net.ops("Split", x, net.constant(-1), outputs=2, num_splits=2)
    turned = net.concat(net.op("Negative", second), first, axis=2)
    return net.op("Add", net.op("Multiply", x, net.input(6, 8)), net.op("Multiply", turned, net.input(6, 8)))


STEPS: dict[str, Build] = {
    "Elementwise": lambda net: net.op("Subtract", net.input(2, 3), net.input(3)),
    "Conv": window,
    "ConvTranspose": lambda net: net.op(
        "ConvolutionBackpropData", net.input(2, 3, 5, 6), net.weights(3, 4, 2, 2), **PAIRS
    ),
    "MatMul": product,
    "Pool": lambda net: net.op("MaxPool", net.input(2, 3, 7), kernel="2", strides="1", pads_begin="0", pads_end="0"),
    "Resample": lambda net: net.op(
        "Interpolate", net.input(1, 2, 4), net.constant([9]), net.constant([2]), version="opset11", mode="linear_onnx",
        shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        antialias=False, pads_begin="0,0,0", pads_end="0,0,0", cube_coeff=-0.75,
    ),
    "Sample": lambda net: net.op("GridSample", net.input(2, 3, 4, 5), net.input(2, 6, 7, 2), version="opset9"),
    "Reduce": lambda net: net.op("ReduceSum", net.input(2, 3, 4), net.constant([1]), keep_dims=True),
    "Softmax": lambda net: net.op("SoftMax", net.input(2, 3), axis=1),
    "Normalize": normalised,
    "GroupNormalize": lambda net: net.op(
        "GroupNormalization", net.input(2, 6, 5), net.input(6), net.input(6), version="opset12", num_groups=2,
        epsilon=1e-3,
    ),
    "Attention": lambda net: net.op(
        "ScaledDotProductAttention", net.input(2, 5, 4), net.input(2, 7, 4), net.input(2, 7, 3), net.input(5, 7),
        version="opset13", causal=False,
    ),
    "RotaryEmbedding": rotated,
    "Concat": lambda net: net.concat(net.input(2, 3), net.input(2, 4), axis=1),
    "Recurrent": sequence("LSTMSequence", 4),
    "Reshape": lambda net: net.reshape(net.input(2, 3), 6),
    "Transpose": lambda net: net.transpose(net.input(2, 3, 4), 2, 0, 1),
    "Slice": lambda net: net.ops("Split", net.input(2, 6), net.constant(1), outputs=2, num_splits=2)[0],
    "Broadcast": lambda net: net.op(
        "Broadcast", net.input(3, 1), net.constant([2, 3, 4]), version="opset3", mode="numpy"
    ),
    "Compute": lambda net: net.op("ReduceProd", net.input(2, 3), net.constant([1]), keep_dims=True),
}  # fmt: skip


def like(value: Value, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Value:
    """A value of another shape or dtype, constant if the first is."""
    array = np.zeros(value.shape if shape is None else shape, value.dtype if dtype is None else dtype)
    return Value.of(array) if value.is_constant else Value(array.shape, array.dtype, name=value.name)


def replaced(values: list[Value], k: int, value: Value) -> list[Value]:
    return [*values[:k], value, *values[k + 1 :]]


def changes(step: Step) -> Iterator[tuple[str, Step]]:
    """The step with one field changed, and a description of the change."""
    for name in ("inputs", "outputs"):
        values = getattr(step, name)
        for k, value in enumerate(values):
            other = copy(step)
            setattr(other, name, replaced(values, k, like(value, dtype="f8")))
            yield f"{name} {k} f64", other
            for axis, n in enumerate(value.shape):
                other = copy(step)
                shape = tuple(m + 7 if a == axis else m for a, m in enumerate(value.shape))
                setattr(other, name, replaced(values, k, like(value, shape)))
                yield f"{name} {k} axis {axis}", other
                assert n
        other = copy(step)
        setattr(other, name, [*values, like(values[-1])])
        yield f"{name} more", other
        if len(values) > 1:
            other = copy(step)
            setattr(other, name, values[:-1])
            yield f"{name} less", other


def passed_over(step: Step, what: str) -> bool:
    """True for changes that no rule covers: operations check their inputs, and only outputs declare some sizes."""
    if isinstance(step, ComputeStep):
        return what.startswith("inputs")
    if isinstance(step, ConvTransposeStep | PoolStep):
        return what.endswith(("axis 2", "axis 3", "axis 4"))
    if isinstance(step, ReduceStep | SliceStep):
        return what == "inputs 0 axis 1"  # any number of elements is summed, or excluded
    if isinstance(step, ResampleStep):
        return what == "inputs 0 axis 2"  # elements after the last tap
    if isinstance(step, SampleStep):
        return what in ("inputs 0 axis 2", "inputs 0 axis 3")  # an image of any size
    if isinstance(step, AttentionStep):
        return what == "inputs less"  # the mask
    if isinstance(step, BroadcastStep):
        return what in ("outputs 0 axis 0", "outputs 0 axis 2")
    if isinstance(step, RecurrentStep):
        weights = [f"inputs {k}" for k in range(len(step.inputs) - 3, len(step.inputs))]
        return what.startswith((*weights, "inputs 0 axis 2"))
    return False


@pytest.mark.parametrize("name", STEPS)
def test_a_changed_field_is_detected(name: str) -> None:
    net = Exact()
    model = net.model(STEPS[name](net))
    program = plan_of(model, net.shapes).program
    (step,) = (s for s in program.steps if type(s).__name__ == f"{name}Step")
    verify(Program([step], [v for v in dict.fromkeys(step.inputs) if not v.is_constant], step.outputs))
    count = 0
    for what, other in changes(step):
        operands = [v for v in dict.fromkeys(other.inputs) if not v.is_constant]
        if passed_over(step, what):
            continue
        count += 1
        program = Program([other], operands, other.outputs)
        try:
            verify(program)
        except PlanInvalid:
            continue
        pytest.fail(f"{what} is not detected")
    assert count >= 3
