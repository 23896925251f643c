"""Random pairs of branches for If."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.body import Body, Value, input_entry, output_entry, port_map
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import pick, random_array, random_shape


def _branch(
    rng: Random,
    tag: str,
    weights: bytearray,
    inputs: list[Input],
    element: et.ElementType,
    shapes: list[tuple[int, ...]],
) -> str:
    """A branch that returns one tensor of each shape, computed from its inputs and constants."""
    body = Body(weights)
    lines: list[str] = []
    values: list[Value] = []
    for k, outer in enumerate(inputs):
        if rng.random() < 0.7:
            inner = body.parameter(element, ",".join(map(str, outer.value.shape)))
            lines.append(input_entry(1 + k, inner))
            values.append(inner)
    for k, shape in enumerate(shapes):
        constant = body.constant(random_array(rng, shape, element), element)
        for value in values:
            summed = body.op("ReduceSum", value, body.constant(np.arange(2)), keep_dims=False)
            constant = body.op(pick(rng, ("Add", "Multiply", "Subtract")), constant, summed)
        if len(shapes) == 1 and rng.random() < 0.3:
            constant = _nested(body, weights, constant, element, shape)
        lines.append(output_entry(1 + len(inputs) + k, body.result(constant)))
    order = [lines[int(k)] for k in rng.permutation(len(lines))]
    return port_map(*order, tag=f"{tag}_port_map") + body.xml(f"{tag}_body")


def _nested(body: Body, weights: bytearray, value: Value, element: et.ElementType, shape: tuple[int, ...]) -> Value:
    """An If inside the branch that doubles a value if the sum of its elements is above 1."""
    branches = ""
    for tag, factor in (("then", 2), ("else", 1)):
        inner = Body(weights)
        taker = inner.parameter(element, ",".join(map(str, shape)))
        result = inner.result(inner.op("Multiply", taker, inner.constant(np.array(factor), element)))
        branches += port_map(input_entry(1, taker), output_entry(2, result), tag=f"{tag}_port_map") + inner.xml(
            f"{tag}_body"
        )
    total = body.op("ReduceSum", value, body.constant(np.arange(len(shape))), keep_dims=False)
    large = body.op("Greater", total, body.constant(np.array(1), element))
    return body.nested("If", "opset8", [large, value], 1, branches)[0]


@cases("If", "opset8")
def branch(rng: Random, version: str) -> Case:
    element, weights = pick(rng, (et.f32, et.f32, et.i32)), bytearray()
    inputs = [param(random_array(rng, random_shape(rng, 2), element), element) for _ in range(int(rng.integers(0, 3)))]
    ranks = [int(rng.integers(1, 4)) for _ in range(int(rng.integers(1, 3)))]
    same = rng.random() < 0.6
    first = [random_shape(rng, rank, 1, 3) for rank in ranks]
    second = first if same else [random_shape(rng, rank, 1, 3) for rank in ranks]
    xml = _branch(rng, "then", weights, inputs, element, first) + _branch(rng, "else", weights, inputs, element, second)
    cond = np.full(pick(rng, ((), (1,))), rng.random() < 0.5)
    return Case(
        "If",
        version,
        [pick(rng, (const, param, param))(cond, et.boolean), *inputs],
        outputs=len(ranks),
        oracle="cpu",
        xml=xml,
        weights=bytes(weights),
    )
