"""Eltwise, Power, Select, reductions, FakeQuantize, ArgMax and TopK."""

from __future__ import annotations

from functools import reduce

from irload.errors import AttributeInvalid, ReadError
from irload.read.legacy.layer import LegacyLayer, Wire
from irload.read.legacy.table import rewrites

_ARITHMETIC = {
    "sum": "Add",
    "add": "Add",
    "prod": "Multiply",
    "mul": "Multiply",
    "max": "Maximum",
    "min": "Minimum",
    "sub": "Subtract",
    "div": "Divide",
    "pow": "Power",
    "floor_mod": "FloorMod",
    "mod": "FloorMod",
    "squared_diff": "SquaredDifference",
}
_COMPARISONS = {
    "equal": "Equal",
    "not_equal": "NotEqual",
    "less": "Less",
    "less_equal": "LessEqual",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
}
_LOGIC = {"logical_and": "LogicalAnd", "logical_or": "LogicalOr", "logical_xor": "LogicalXor"}


@rewrites("Eltwise")
def eltwise(layer: LegacyLayer) -> Wire:
    """The binary operation of all inputs, from left to right. `coeff` scales the terms of sums."""
    name = layer.text("operation", "sum").lower()
    inputs = layer.inputs
    if len(inputs) < 2:
        raise ReadError(f"has {len(inputs)} inputs, expected at least 2")
    if name in _COMPARISONS:
        return layer.as_declared(layer.op(_COMPARISONS[name], *inputs))
    if name in _LOGIC:
        booleans = [layer.op("Convert", i, data={"destination_type": "boolean"}) for i in inputs]
        return layer.as_declared(reduce(lambda a, b: layer.op(_LOGIC[name], a, b), booleans))
    if name == "mean":
        total = reduce(lambda a, b: layer.op("Add", a, b), inputs)
        return layer.op("Multiply", total, layer.scalar("count", 1 / len(inputs)))
    if name not in _ARITHMETIC:
        raise AttributeInvalid(f"attribute operation is '{name[:40]}', which is not an operation of a legacy Eltwise")
    coefficients = layer.numbers("coeff", ())
    if name in ("sum", "add") and any(c != 1 for c in coefficients):
        if len(coefficients) != len(inputs):
            raise AttributeInvalid(f"attribute coeff must have {len(inputs)} values, found {len(coefficients)}")
        terms = zip(inputs, coefficients, strict=True)
        inputs = [i if c == 1 else layer.op("Multiply", i, layer.scalar("coeff", c)) for i, c in terms]
    return reduce(lambda a, b: layer.op(_ARITHMETIC[name], a, b), inputs)


@rewrites("Power")
def power(layer: LegacyLayer) -> Wire:
    """(shift + scale · x) ^ power, or x ^ y of two inputs."""
    if layer.arity == 2:
        return layer.op("Power", *layer.inputs)
    output = layer.input()
    steps = ("Multiply", "scale", 1.0), ("Add", "shift", 0.0), ("Power", "power", 1.0)
    for type, name, neutral in steps:
        value = layer.number(name, neutral)
        if value != neutral:
            output = layer.op(type, output, layer.scalar(name, value))
    return output


@rewrites("Select")
def select(layer: LegacyLayer) -> Wire:
    """Select; a condition of numbers is converted."""
    condition = layer.op("Convert", layer.input(), data={"destination_type": "boolean"})
    return layer.op("Select", condition, layer.input(1), layer.input(2))


@rewrites("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
def reduction(layer: LegacyLayer) -> Wire:
    """The reduction over the axes of the second input. `keep_dims` is true by default."""
    opset = "opset4" if layer.type in ("ReduceL1", "ReduceL2") else "opset1"
    data = {"keep_dims": str(layer.flag("keep_dims", True)).lower()}
    return layer.op(layer.type, *layer.inputs, data=data, opset=opset)


@rewrites("FakeQuantize", "Quantize")
def fake_quantize(layer: LegacyLayer) -> Wire:
    """FakeQuantize."""
    return layer.op("FakeQuantize", *layer.inputs, data={"levels": layer.text("levels")})


@rewrites("ArgMax")
def arg_max(layer: LegacyLayer) -> Wire:
    """TopK: the indices of the largest `top_k` values as floats, over `axis` or over all axes except the first.

    With `out_max_val`, the result has the values: instead of the indices if `axis` is stated, otherwise after them.
    """
    count = layer.constant("top_k", layer.integer("top_k", 1))
    with_values, data = layer.flag("out_max_val", False), layer.input()
    axis = layer.integer("axis") if layer.has("axis") else 1
    if not layer.has("axis"):
        data = layer.reshaped(data, [layer.input_dims()[0], -1], "flattened")
    top = layer.op("TopK", data, count, data={"axis": str(axis), "mode": "max", "sort": "value"}, outputs=2)
    values, indices = top, layer.as_declared(Wire(top.source, 1))
    if layer.has("axis"):
        return values if with_values else indices
    if with_values:
        axes = layer.constant("axes", [1])
        parts = [layer.op("Unsqueeze", part, axes) for part in (indices, values)]
        return layer.reshaped(layer.op("Concat", *parts, data={"axis": "1"}), layer.output_dims())
    return layer.reshaped(indices, layer.output_dims())


@rewrites("TopK")
def top_k(layer: LegacyLayer) -> list[Wire]:
    """TopK; indices have the declared precision."""
    data = {name: layer.text(name) for name in ("axis", "mode", "sort")}
    top = layer.op("TopK", *layer.inputs, data=data, outputs=2)
    outputs = [top, Wire(top.source, 1)]
    if len(layer.raw.outputs) > 1 and layer.precision(1) != "I32":
        outputs[1] = layer.as_declared(outputs[1], 1)
    return outputs
