"""A legacy layer for the functions that rewrite it: its attributes, dims, inputs and blobs, and the new operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from math import prod
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from irload.core.element import element_of_precision
from irload.core.tensor import Array
from irload.errors import AttributeInvalid, ReadError
from irload.read.raw import RawGraph, RawLayer, RawPort
from irload.read.weights import Weights
from irload.record import record

T = TypeVar("T", int, float)
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_INTEGERS = frozenset({"I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"})


@record(frozen=False, eq=False)
class NewLayer:
    """An operation of the rewritten graph. `values`: the data of a constant that is not in the .bin file."""

    type: str
    opset: str
    name: str
    inputs: list[Wire]
    data: dict[str, str]
    outputs: int = 1
    values: Callable[[Weights], Array] | None = None
    bodies: dict[str, RawGraph] = field(default_factory=dict[str, RawGraph])
    maps: dict[str, list[dict[str, str]]] = field(default_factory=dict[str, list[dict[str, str]]])
    rt_info: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


@record()
class Wire:
    """An output. `index`: its position for a new layer, its port id for a legacy layer (`source` is the layer's id)."""

    source: NewLayer | int
    index: int = 0


class LegacyLayer:
    """A layer to rewrite. `operations`: the new operations in order."""

    def __init__(
        self, raw: RawLayer, inputs: Sequence[Wire | None], layers: Mapping[int, RawLayer] = MappingProxyType({})
    ) -> None:
        self.raw = raw
        self._inputs = inputs
        self._layers = layers
        self._data = {_normal(key): value for key, value in raw.data.items()}
        self.operations: list[NewLayer] = []

    # -- the layer -----------------------------------------------------------------------------------------------------

    @property
    def type(self) -> str:
        """The legacy type."""
        return self.raw.type

    @property
    def arity(self) -> int:
        """The number of inputs."""
        return len(self._inputs)

    @property
    def inputs(self) -> list[Wire]:
        """All inputs. Raises ReadError for an input without an edge."""
        return [self.input(k) for k in range(len(self._inputs))]

    def input(self, k: int = 0) -> Wire:
        """An input by position. Raises ReadError if it is missing."""
        wire = self._inputs[k] if k < len(self._inputs) else None
        if wire is None:
            raise ReadError(f"has no input {k}")
        return wire

    def producer(self, k: int) -> LegacyLayer | None:
        """The layer that produces an input, without the inputs of that layer; None if the input is missing."""
        wire = self._inputs[k] if k < len(self._inputs) else None
        raw = None if wire is None or isinstance(wire.source, NewLayer) else self._layers.get(wire.source)
        return None if raw is None else LegacyLayer(raw, [])

    def input_dims(self, k: int = 0) -> tuple[int, ...]:
        """The declared dims of an input."""
        return _dims(self.raw.inputs, k, "input")

    def output_dims(self, k: int = 0) -> tuple[int, ...]:
        """The declared dims of an output."""
        return _dims(self.raw.outputs, k, "output")

    def precision(self, k: int = 0) -> str:
        """The declared precision of an output: that of the port, else of the layer."""
        port = self.raw.outputs[k].precision if k < len(self.raw.outputs) else None
        return (port or self.raw.precision or "FP32").upper()

    # -- attributes ----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """True if the attribute is present and not empty."""
        return bool(self._data.get(_normal(name)))

    def text(self, name: str, default: str | None = None) -> str:
        """The text of an attribute. Names are compared without case, and with `-` equal to `_`."""
        value = self._data.get(_normal(name)) or default
        if value is None:
            raise AttributeInvalid(f"attribute {name} is missing; {self.type} requires it")
        return value.strip()

    def integer(self, name: str, default: int | None = None) -> int:
        """One integer."""
        return _one(name, self._numbers(name, _integer, None if default is None else (default,)))

    def number(self, name: str, default: float | None = None) -> float:
        """One number."""
        return _one(name, self._numbers(name, float, None if default is None else (default,)))

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers, separated by commas."""
        return self._numbers(name, _integer, default)

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """A list of numbers, separated by commas."""
        return self._numbers(name, float, default)

    def flag(self, name: str, default: bool) -> bool:
        """A boolean: 1, 0, true or false, ignoring case."""
        text = self.text(name, "1" if default else "0").lower()
        if text not in _FLAGS:
            raise AttributeInvalid(f"attribute {name} must be 0, 1, true or false, found '{text[:40]}'")
        return _FLAGS[text]

    def copied(self, *names: str) -> dict[str, str]:
        """The attributes with these names that the layer has, for an operation with equal attributes."""
        return {name: self.text(name) for name in names if self.has(name)}

    def _numbers(self, name: str, kind: Callable[[str], T], default: Sequence[T] | None) -> tuple[T, ...]:
        if not self.has(name) and default is not None:
            return tuple(default)
        text = self.text(name)
        try:
            return tuple(kind(part) for part in text.replace(" ", "").split(",") if part)
        except ValueError:
            raise AttributeInvalid(f"attribute {name} must consist of numbers, found '{text[:40]}'") from None

    # -- constants -----------------------------------------------------------------------------------------------------

    def blob(self, name: str, shape: Sequence[int]) -> Wire | None:
        """Weights in f32 from the .bin file, None if there is no blob of this name. f16 is converted.

        Raises ReadError if the size fits neither f32 nor f16.
        """
        stored = self.raw.blobs.get(name)
        if stored is None:
            return None
        (offset, size), count = stored, prod(shape)
        element = {4 * count: "f32", 2 * count: "f16"}.get(size)
        if element is None:
            raise ReadError(f"its {name} have {size} bytes; {list(shape)} takes {4 * count} in f32, {2 * count} in f16")
        return self.stored(name, element, shape, offset, size)

    def bits(self, name: str, shape: Sequence[int]) -> Wire:
        """Packed bits from the .bin file. Raises ReadError if the blob has another size."""
        offset, size = self.raw.blobs.get(name, (0, 0))
        expected = -(-prod(shape) // 8)
        if size != expected:
            raise ReadError(f"its {name} have {size} bytes; {list(shape)} takes {expected} in u1")
        return self.stored(name, "u1", shape, offset, size)

    def blob_count(self, name: str) -> int:
        """The number of elements of a blob, in the precision of the layer."""
        size = self.raw.blobs.get(name, (0, 0))[1]
        return size // (2 if (self.raw.precision or self.precision()).upper() == "FP16" else 4)

    def stored(self, name: str, element: str, shape: Sequence[int], offset: int, size: int) -> Wire:
        """A constant from the .bin file; f16 is converted to f32."""
        data = {"element_type": element, "shape": listed(shape), "offset": str(offset), "size": str(size)}
        constant = self.op("Const", data=data, name=name)
        if element != "f16":
            return constant
        return self.op("Convert", constant, data={"destination_type": "f32"}, name=f"{name}/convert", compressed=True)

    def constant(self, name: str, values: object, dtype: DTypeLike = np.int64) -> Wire:
        """A constant that is not in the .bin file."""
        array = np.asarray(values, dtype)
        element = {"int64": "i64", "float32": "f32"}[array.dtype.name]
        data = {"element_type": element, "shape": listed(array.shape), "offset": "0", "size": str(array.nbytes)}
        wire = self.op("Const", data=data, name=name)
        self.operations[-1].values = partial(_copy, array)
        return wire

    def scalar(self, name: str, value: float) -> Wire:
        """A constant of one f32."""
        return self.constant(name, value, np.float32)

    # -- operations ----------------------------------------------------------------------------------------------------

    def op(
        self,
        type: str,
        *inputs: Wire,
        data: Mapping[str, str] | None = None,
        opset: str = "opset1",
        outputs: int = 1,
        name: str = "",
        compressed: bool = False,
    ) -> Wire:
        """Add an operation and return its first output."""
        full = f"{self.raw.name}/{name or type}"
        operation = NewLayer(type, opset, full, list(inputs), dict(data or {}), outputs)
        if compressed:
            operation.rt_info.append({"name": "decompression", "version": "0"})
        self.operations.append(operation)
        return Wire(operation)

    def reshaped(self, wire: Wire, dims: Sequence[int], name: str = "Reshape") -> Wire:
        """A Reshape to static dims."""
        shape = self.constant(f"{name}/shape", list(dims))
        return self.op("Reshape", wire, shape, data={"special_zero": "false"}, name=name)

    def dims_of(self, wire: Wire, begin: int, end: int, name: str = "dims") -> Wire:
        """The dims `begin` to `end` of a value, as i64."""
        shape = self.op("ShapeOf", wire, name=f"{name}/ShapeOf")
        axes, axis = self.constant(f"{name}/axes", list(range(begin, end))), self.constant(f"{name}/axis", 0)
        return self.op("Gather", shape, axes, axis, name=name)

    def as_declared(self, wire: Wire, k: int = 0) -> Wire:
        """The wire, converted to the declared precision of an output: for comparisons and indices."""
        element = element_of_precision(widened(self.precision(k))).name
        return self.op("Convert", wire, data={"destination_type": element}, name=f"Convert_{k}")

    def plus_biases(self, wire: Wire, rank: int, count: int) -> Wire:
        """Add the biases of the layer, if any, to axis 1, or to the last axis if the rank is 1."""
        biases = self.blob("biases", channelwise(rank, count))
        return wire if biases is None else self.op("Add", wire, biases, name="biases")


def channelwise(rank: int, count: int) -> tuple[int, ...]:
    """The shape of one value per channel, which broadcasts over a tensor of this rank; one value if count is 1."""
    return (count,) if rank < 2 or count == 1 else (1, count, *[1] * (rank - 2))


def widened(precision: str) -> str:
    """The precision in which a value is computed: f32 for f16, as legacy plugins for CPUs did."""
    return "FP32" if precision in ("FP16", "MIXED", "UNSPECIFIED", "Q78") else precision


def is_integral(precision: str) -> bool:
    """True for precisions of integers."""
    return precision in _INTEGERS


def listed(values: Sequence[int] | Sequence[float]) -> str:
    """A list as the text of an attribute."""
    return ",".join(repr(v) if isinstance(v, float) else str(v) for v in values)


def _copy(values: Array, weights: Weights) -> Array:
    return values.copy()


def _integer(text: str) -> int:
    """An integer; some converters wrote it as `4.0`."""
    return int(text.removesuffix(".0"))


def _normal(name: str) -> str:
    return name.lower().replace("-", "_")


def _one(name: str, values: Sequence[T]) -> T:
    if len(values) != 1:
        raise AttributeInvalid(f"attribute {name} must be one number, found {len(values)}")
    return values[0]


def _dims(ports: Sequence[RawPort], k: int, side: str) -> tuple[int, ...]:
    if k >= len(ports):
        raise ReadError(f"has no {side} {k}")
    return ports[k].dims or ()
