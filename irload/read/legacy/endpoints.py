"""Inputs, constants, results, and layers that are the identity."""

from __future__ import annotations

from irload.core.element import element_of_precision
from irload.errors import ReadError
from irload.read.legacy.layer import LegacyLayer, Wire, listed, widened
from irload.read.legacy.table import rewrites


@rewrites("Input")
def parameter(layer: LegacyLayer) -> Wire:
    """A Parameter of the declared dims. f16, i8, u8, i16 and u16 become f32, as legacy plugins converted them."""
    precision = widened(layer.precision())
    if precision in ("U8", "I8", "U16", "I16"):
        precision = "FP32"
    layer.raw.outputs[0].precision = precision
    data = {"shape": listed(layer.output_dims()), "element_type": element_of_precision(precision).name}
    return layer.op("Parameter", data=data)


@rewrites("Const")
def const(layer: LegacyLayer) -> Wire:
    """A constant; f16 is converted to f32."""
    blob = layer.raw.blobs.get("custom")
    if blob is None:
        raise ReadError("has no <custom> blob")
    element = element_of_precision(layer.precision()).name
    return layer.stored("Const", element, layer.output_dims(), *blob)


@rewrites("Result")
def result(layer: LegacyLayer) -> list[Wire]:
    """A Result of a body."""
    layer.op("Result", layer.input(), outputs=0)
    return []


@rewrites("Copy", "Dropout", "Identity")
def identity(layer: LegacyLayer) -> Wire:
    """The input itself."""
    return layer.input()


@rewrites("Convert")
def convert(layer: LegacyLayer) -> Wire:
    """A Convert to `precision`."""
    precision = widened(layer.text("precision", layer.precision()).upper())
    layer.raw.outputs[0].precision = precision
    element = element_of_precision(precision).name
    return layer.op("Convert", layer.input(), data={"destination_type": element})
