"""Assignments to slices, which OpenVINO converts to scatters at the positions of a Range: `x[:, 1:] = −x[:, 1:]`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import irload
from irload.model import Model
from irload.plan.ir.program import Program
from irload.plan.ir.steps import ComputeStep
from tests.harness import ir
from tests.plan.graphs import Net

END = 2**63 - 1


def negated(sizes: Sequence[int], *slices: tuple[int, int, int, int], reduction: str = "none", first: int = 0) -> Model:
    """x in which the elements of a slice are negated, plus 1. `slices`: axis, start, stop and step."""
    net = Net()
    x = net.op("ReLU", net.input(*sizes))
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    axes, starts, stops, steps = (net.constant(np.array(part)) for part in zip(*slices, strict=True))

    def part(data: ir.Ref) -> ir.Ref:
        return net.op("Slice", data, starts, stops, steps, axes, version="opset8")

    count = net.op("ReduceProd", shape, net.constant(0), keep_dims=False)
    ends = net.constant(first), net.op("Add", count, net.constant(first)), net.constant(1)
    positions = net.op("Range", *ends, version="opset4", output_type="i64")
    positions = part(net.op("Reshape", positions, shape, special_zero=False))
    updates = net.reshape(net.op("Negative", part(x)), -1)
    inputs = net.reshape(x, -1), net.reshape(positions, -1, 1), updates
    result = net.op("ScatterNDUpdate", *inputs, version="opset15", reduction=reduction)
    return net.model(net.op("Add", net.op("Reshape", result, shape, special_zero=False), net.constant(np.float32(1))))


def scatters(program: Program) -> int:
    return sum(isinstance(step, ComputeStep) and step.op.type == "ScatterNDUpdate" for step in program.steps)


def compared(model: Model, shapes: Sequence[Sequence[int]]) -> irload.CompiledModel:
    """The compiled model, after a comparison with plain execution at each shape."""
    compiled, plain = (irload.compile_model(model, 1, optimize=on) for on in (True, False))
    for n, shape in enumerate(shapes):
        x = np.random.default_rng(n).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(compiled(x)[0], plain(x)[0], str(shape))
    return compiled


SLICES = {
    "rows": [(1, 1, END, 1)],
    "box": [(0, 1, 3, 1), (2, 2, -1, 1)],
    "all": [(1, 0, END, 1)],
    "last": [(2, -2, END, 1)],
    "none": [(1, 3, 3, 1)],
}
SHAPES = (4, 7, 5), (6, 9, 8), (5, 8, 6), (9, 30, 7), (4, 7, 5)


@pytest.mark.parametrize("name", SLICES)
def test_any_shape(name: str) -> None:
    compiled = compared(negated((-1, -1, -1), *SLICES[name]), SHAPES)
    assert [scatters(v.planned.program) for v in compiled._traced.families.recent] == [name == "none"]


@pytest.mark.parametrize("name", SLICES)
def test_many_positions(name: str) -> None:
    """Static plans do not fold a Range of many elements."""
    model = negated((10, 90, 100), *SLICES[name])
    compiled = compared(model, [(10, 90, 100)])
    part = compiled.scheduled([p.output.type for p in model.inputs]).part
    assert part is not None
    assert scatters(compiled.take(part).program) == (name == "none")


@pytest.mark.parametrize(("step", "first", "reduction"), [(1, 0, "sum"), (1, -3, "none"), (2, 0, "none")])
def test_other_scatters(step: int, first: int, reduction: str) -> None:
    """Sums, positions that do not begin with 0, and slices with larger steps are scattered."""
    compiled = compared(negated((-1, -1, -1), (1, 1, END, step), first=first, reduction=reduction), SHAPES)
    assert [scatters(variant.planned.program) for variant in compiled._traced.families.recent] == [1]
