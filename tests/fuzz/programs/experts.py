"""Mixtures of experts as exporters write them: rows sorted by expert, in slices whose sizes depend on values."""

from __future__ import annotations

import numpy as np

from tests.fuzz.programs.build import Build, DoesNotFit, Value


def routed(b: Build, x: Value) -> Value:
    """Each row times the matrices of the experts that a router chooses for it, added up or sorted by expert."""
    if b.odd:
        raise DoesNotFit("the order of NaN")
    x, experts, n = b.bounded(x), b.number(2, 5), b.number(1, 24)
    k, zero = b.number(1, experts), b.const(np.int64(0))
    scores = b.parameter((x.shape[0], experts))
    ranked = {"mode": "max", "sort": "value", "index_element_type": "i64", "stable": True, "axis": 1}
    chosen = b.many("TopK", scores, b.const(np.int64(k)), version="opset11", **ranked)[1]
    flat = b.op("Reshape", chosen, b.ints(-1), special_zero=False)
    count = b.op("Squeeze", b.op("ShapeOf", flat, version="opset3", output_type="i64"), b.ints(0))
    order = b.many("TopK", flat, count, version="opset11", **{**ranked, "mode": "min", "axis": 0})[1]
    token = b.op("Divide", order, b.const(np.int64(k)), auto_broadcast="numpy", m_pythondiv=True)
    rows = b.op("Gather", x, token, zero, version="opset8", batch_dims=0)
    ends = _ends(b, _counts(b, scores, chosen), experts)
    turned = b.chance(0.5)
    parts = [_part(b, rows, start, end, n, turned=turned) for start, end in zip([b.ints(0), *ends], ends, strict=False)]
    shape = (rows.shape[0], n)
    y = b.uncertain("Concat", rows.element, shape, *parts, axis=0)
    if b.chance(0.5):
        return y
    empty = b.op("Broadcast", b.scalar(0.0), _shape(b, x, n), version="opset3", mode="numpy")
    positions = b.op("Unsqueeze", token, b.ints(1))
    positions = b.op(
        "Broadcast", positions, b.op("ShapeOf", y, version="opset3", output_type="i64"), version="opset3", mode="numpy"
    )
    data = {"reduction": "sum", "use_init_val": True}
    return b.op("ScatterElementsUpdate", empty, positions, y, zero, version="opset12", **data)


def _shape(b: Build, x: Value, columns: int) -> Value:
    """The shape of a value with as many rows as x."""
    shape = b.op("ShapeOf", x, version="opset3", output_type="i64")
    rows = b.op("Gather", shape, b.ints(0), b.const(np.int64(0)), version="opset8", batch_dims=0)
    return b.op("Concat", rows, b.ints(columns), axis=0)


def _counts(b: Build, scores: Value, chosen: Value) -> Value:
    """The number of rows of each expert."""
    shapes = [b.op("ShapeOf", v, version="opset3", output_type="i64") for v in (scores, chosen)]
    zeros, ones = (
        b.op("Broadcast", b.const(np.float32(number)), shape, version="opset3", mode="numpy")
        for number, shape in zip((0, 1), shapes, strict=True)
    )
    data = {"reduction": "none", "use_init_val": True}
    hot = b.op("ScatterElementsUpdate", zeros, chosen, ones, b.const(np.int64(1)), version="opset12", **data)
    kind = b.pick(("i64", "i32"))
    return b.op("ReduceSum", b.op("Convert", hot, destination_type=kind), b.const(np.int64(0)), keep_dims=False)


def _ends(b: Build, counts: Value, experts: int) -> list[Value]:
    """The first row after the rows of each expert."""
    ends: list[Value] = []
    for expert in range(experts):
        count = b.op("Gather", counts, b.ints(expert), b.const(np.int64(0)), version="opset8", batch_dims=0)
        ends.append(b.op("Add", ends[-1], count, auto_broadcast="numpy") if ends else count)
    return ends


def _part(b: Build, rows: Value, start: Value, end: Value, n: int, *, turned: bool) -> Value:
    """The rows of one expert times its matrix."""
    k = rows.shape[1]
    if start.element is not end.element:
        start = b.op("Convert", start, destination_type=end.element.name)
    one, axis = (b.op("Convert", b.ints(v), destination_type=end.element.name) for v in (1, 0))
    part = b.uncertain("Slice", rows.element, (-1, k), rows, start, end, one, axis, version="opset8")
    weights = b.weights(*((n, k) if turned else (k, n)), fan=k)
    return b.uncertain("MatMul", rows.element, (-1, n), part, weights, transpose_a=False, transpose_b=turned)
