"""Activations, SoftMax and PReLU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.errors import AttributeInvalid
from irload.read.legacy.layer import LegacyLayer, Wire, channelwise
from irload.read.legacy.table import Rewrite, rewrites


@rewrites("ReLU")
def relu(layer: LegacyLayer) -> Wire:
    """ReLU, or PRelu with a slope."""
    slope = layer.number("negative_slope", 0.0)
    if slope == 0:
        return layer.op("ReLU", layer.input())
    return layer.op("PRelu", layer.input(), layer.constant("slope", [slope], np.float32))


@rewrites("PReLU")
def prelu(layer: LegacyLayer) -> Wire:
    """PRelu, with one slope or one per channel."""
    channels = layer.input_dims()[1] if len(layer.input_dims()) > 1 else layer.input_dims()[0]
    count = 1 if layer.flag("channel_shared", False) else channels
    slopes = layer.blob("weights", [count])
    return layer.op("PRelu", layer.input(), layer.input(1) if slopes is None else slopes)


@rewrites("Clamp")
def clamp(layer: LegacyLayer) -> Wire:
    """Clamp to min and max."""
    return layer.op("Clamp", layer.input(), data={"min": layer.text("min"), "max": layer.text("max")})


@rewrites("ReLU6")
def relu6(layer: LegacyLayer) -> Wire:
    """Clamp to 0 and `n`, 6 by default."""
    return layer.op("Clamp", layer.input(), data={"min": "0", "max": layer.text("n", "6")})


@rewrites("ELU")
def elu(layer: LegacyLayer) -> Wire:
    """Elu with `alpha`, 1 by default."""
    return layer.op("Elu", layer.input(), data={"alpha": layer.text("alpha", "1.0")})


@rewrites("SoftMax")
def softmax(layer: LegacyLayer) -> Wire:
    """SoftMax over `axis`, 1 by default."""
    return layer.op("SoftMax", layer.input(), data={"axis": layer.text("axis", "1")})


@rewrites("LogSoftmax")
def log_softmax(layer: LegacyLayer) -> Wire:
    """LogSoftmax over `axis`, 1 by default."""
    return layer.op("LogSoftmax", layer.input(), data={"axis": layer.text("axis", "1")}, opset="opset5")


@rewrites("Activation")
def activation(layer: LegacyLayer) -> Wire | Sequence[Wire]:
    """The function that `type` names."""
    name = layer.text("type").lower()
    function = _FUNCTIONS.get(name)
    if function is None:
        raise AttributeInvalid(f"attribute type is '{name[:40]}', which is not a legacy activation")
    return function(layer)


def _unary(type: str, opset: str) -> Rewrite:
    return lambda layer: layer.op(type, layer.input(), opset=opset)


_NAMES = {
    **dict.fromkeys(("Abs", "Acos", "Asin", "Atan", "Ceiling", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log"), "opset1"),
    **dict.fromkeys(("LogicalNot", "Negative", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"), "opset1"),
    **dict.fromkeys(("Acosh", "Asinh", "Atanh", "Mish", "SoftPlus"), "opset4"),
}
_SPELLINGS = {"TanH": "Tanh", "Logistic": "Sigmoid", "Neg": "Negative", "Ceil": "Ceiling", "Not": "LogicalNot"}
_FUNCTIONS: dict[str, Rewrite] = {"relu": relu, "elu": elu, "clamp": clamp, "relu6": relu6, "prelu": prelu}
for _type, _opset in _NAMES.items():
    _FUNCTIONS[_type.lower()] = rewrites(_type)(_unary(_type, _opset))
for _spelling, _type in _SPELLINGS.items():
    _FUNCTIONS[_spelling.lower()] = _FUNCTIONS[_type.lower()]
    if _spelling.lower() != _type.lower():
        rewrites(_spelling)(_FUNCTIONS[_type.lower()])


@rewrites("HardSigmoid")
def hard_sigmoid(layer: LegacyLayer) -> Wire:
    """HardSigmoid with `alpha`, 0.2 by default, and `beta`, 0.5 by default."""
    values = [layer.scalar(name, layer.number(name, default)) for name, default in (("alpha", 0.2), ("beta", 0.5))]
    return layer.op("HardSigmoid", layer.input(), *values)


@rewrites("Selu")
def selu(layer: LegacyLayer) -> Wire:
    """Selu with `alpha` and `gamma`."""
    defaults = ("alpha", 1.67326324), ("gamma", 1.05070098)
    return layer.op("Selu", layer.input(), *(layer.scalar(name, layer.number(name, d)) for name, d in defaults))


@rewrites("ScaleShift")
def scale_shift(layer: LegacyLayer) -> Wire:
    """Multiply by the weights and Add of the biases, one per channel; either may be missing."""
    dims, output = layer.input_dims(), layer.input()
    for blob, type in (("weights", "Multiply"), ("biases", "Add")):
        values = layer.blob(blob, channelwise(len(dims), layer.blob_count(blob)))
        if values is not None:
            output = layer.op(type, output, values)
    return output
