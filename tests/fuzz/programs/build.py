"""Build: a program under construction, whose values have types and track whether they are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType, element_of_dtype
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import IRError
from irload.graph import Node
from irload.inference import Inference
from irload.ops.registry import resolve
from tests.fuzz.programs.exact import INTEGER, UNEVEN, Exact, after, of_array
from tests.fuzz.programs.graph import Graph, Inner, Layer, Ref
from tests.harness.case import Array, Random, text

LARGEST = 1 << 19
"""The maximum number of elements of a value."""


class DoesNotFit(Exception):
    """A layer that does not accept these inputs; the emitter tries another."""


@dataclass(frozen=True)
class Value:
    """An output of a layer."""

    ref: Ref
    element: ElementType
    shape: tuple[int, ...]
    exact: Exact | None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)


class Build:
    """A growing graph. `pool` holds the floating-point values available as inputs of layers."""

    def __init__(
        self,
        rng: Random,
        *,
        dyadic: bool = False,
        precise: bool = False,
        odd: bool = False,
        big: bool = False,
        wide: bool = False,
        dynamic: bool = False,
        element: ElementType = et.f32,
        batch: int = 1,
    ) -> None:
        self.rng = rng
        self.dyadic = dyadic
        """True if numbers are small multiples of powers of two."""
        self.precise = precise
        """True if all kernels round no more than a sum does."""
        self.odd = odd
        """True if inputs contain infinities and NaN."""
        self.big = big
        """True if some values are large enough to select the kernels for large inputs."""
        self.wide = wide
        """True if many values have a channel count that fits tiles of bf16."""
        self.dynamic = dynamic
        """True if the batch is dynamic."""
        self.element = element
        """The floating-point type: of inputs, constants and thus nearly all values."""
        self.batch = batch
        self.graph = Graph()
        self.pool: list[Value] = []
        self._types: dict[Ref, TensorType] = {}
        self._inference = Inference()

    # -- chance ------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    # -- leaves ------------------------------------------------------------------------------------------------------

    def parameter(self, shape: Sequence[int], element: ElementType | None = None, kind: str = "") -> Value:
        """An input. Its name encodes the kind of its data (feed.py)."""
        element = element or self.element
        if not kind and element.name in ("f32", "f16", "bf16"):
            kind = "dyadic1x4" if self.dyadic else "normal"
            kind = f"odd_{kind}" if self.odd and self.chance(0.7) else kind
        name = f"{kind or 'any'}_in{len(self.graph.layers)}"
        data = {"element_type": element, "shape": ",".join(map(str, shape))}
        exact = INTEGER if element.name not in ("f32", "f16", "bf16") else exact_of(name)
        return self._add(Layer("Parameter", "opset1", data, (), ((element, tuple(shape)),), name), exact)[0]

    def const(self, array: Any, element: ElementType | None = None) -> Value:
        """A constant; Python integers become i64, floats the floating-point type."""
        array = np.asarray(array, None if element is None else element.dtype)
        if element is None and array.dtype == np.float32 and self.element is not et.f32:
            with np.errstate(over="ignore"):
                array = array.astype(self.element.dtype)
        element = element or element_of_dtype(array.dtype)
        type = (element, array.shape)
        layer = Layer(
            "Const",
            "opset1",
            {},
            (),
            (type,),
            f"const{len(self.graph.layers)}",
            np.ascontiguousarray(array).reshape(array.shape),
        )
        return self._add(layer, of_array(array))[0]

    def ints(self, *values: int) -> Value:
        """A 1-D constant of i64 values."""
        return self.const(np.array(values, np.int64))

    def weights(self, *shape: int, fan: int = 1, element: ElementType | None = None) -> Value:
        """Constant weights: sums of `fan` products with them keep their size. Dyadic ones are halves and quarters."""
        element = element or self.element
        return self.const(self.numbers(shape, fan).astype(element.dtype), element)

    def numbers(self, shape: Sequence[int], fan: int = 1) -> Array:
        """The values of weights."""
        if self.dyadic:
            scale = 2.0 ** -min(2, max(0, int(np.log2(max(fan, 1)) / 2)))
            return (self.rng.integers(-2, 3, tuple(shape)) * scale).astype(np.float32)
        return (self.rng.standard_normal(tuple(shape)) / np.sqrt(max(fan, 1))).astype(np.float32)

    def positive(self, *shape: int) -> Value:
        """Constant numbers between 0.5 and 2; powers of two if numbers are dyadic."""
        if self.dyadic:
            return self.const((2.0 ** self.rng.integers(-1, 2, shape)).astype(np.float32))
        return self.const(self.rng.uniform(0.5, 2, shape).astype(np.float32))

    def scalar(self, value: float, element: ElementType | None = None) -> Value:
        """A constant of one element with a random number of axes of length 1."""
        with np.errstate(over="ignore"):
            return self.const(np.full((1,) * self.pick((0, 0, 1)), value), element or self.element)

    # -- layers ------------------------------------------------------------------------------------------------------

    def op(self, type: str, *inputs: Value, version: str = "opset1", **data: Any) -> Value:
        """A layer; returns its first output."""
        return self.many(type, *inputs, version=version, **data)[0]

    def many(self, type: str, *inputs: Value, version: str = "opset1", **data: Any) -> list[Value]:
        """A layer; returns all its outputs. Raises DoesNotFit if the operation rejects these inputs."""
        data = {k.replace("exclude_pad", "exclude-pad"): v for k, v in data.items()}
        try:
            op, _ = resolve(type, version)[0].parse({k: text(v) for k, v in data.items()})
            node = cast(Node, SimpleNamespace(op=op, type=type, inputs=[]))
            types = self._inference.outputs(node, [self._types[v.ref] for v in inputs])
        except IRError as error:
            raise DoesNotFit(f"{type}: {error}") from None
        if not all(t.is_static for t in types) or any(t.shape.size.hi > LARGEST for t in types):
            raise DoesNotFit(f"{type}: too large, or of unknown size")
        ports = [(t.element, t.shape.static) for t in types]
        exact = [self._exact(type, version, data, inputs, t) for t in ports]
        name = f"{type}{len(self.graph.layers)}"
        name = f"exact_{name}" if all(e is not None for e in exact) else name
        layer = Layer(type, version, data, tuple(v.ref for v in inputs), tuple(ports), name)
        values = self._add(layer, *exact)
        self._types.update((v.ref, t) for v, t in zip(values, types, strict=True))
        return values

    def selected(self, type: str, shape: tuple[int, ...], *inputs: Value, version: str, **data: Any) -> Value:
        """A layer of i64 whose output shape depends on input values, which always result in `shape`."""
        layer = Layer(type, version, data, tuple(v.ref for v in inputs), ((et.i64, shape),), f"{type}{self.graph.work}")
        return self._add(layer, INTEGER)[0]

    def uncertain(
        self,
        type: str,
        element: ElementType,
        shape: tuple[int, ...],
        *inputs: Value,
        version: str = "opset1",
        **data: Any,
    ) -> Value:
        """A layer whose output shape depends on input values. −1 stands for dims that vary."""
        name = f"{type}{len(self.graph.layers)}"
        layer = Layer(type, version, data, tuple(v.ref for v in inputs), ((element, shape),), name)
        return self._add(layer, None)[0]

    def nested(
        self,
        type: str,
        version: str,
        inputs: Sequence[Value],
        types: Sequence[tuple[ElementType, tuple[int, ...]]],
        bodies: Sequence[Inner],
        **data: Any,
    ) -> list[Value]:
        """A layer with bodies; `types` are the types of its outputs."""
        name = f"{type}{len(self.graph.layers)}"
        layer = Layer(type, version, data, tuple(v.ref for v in inputs), tuple(types), name, bodies=tuple(bodies))
        return self._add(layer, *(None if e.is_float else INTEGER for e, _ in types))

    def sink(self, type: str, value: Value, version: str, **data: Any) -> None:
        """An Assign. The layer declares an output that nothing reads, because OpenVINO's runtime requires one."""
        layer = Layer(
            type, version, data, (value.ref,), ((value.element, value.shape),), f"{type}{len(self.graph.layers)}"
        )
        self._add(layer, value.exact)

    def inexact(self, value: Value) -> Value:
        """The value, no longer marked as exact."""
        layer = self.graph.layers[value.ref.layer]
        self.graph.layers[value.ref.layer] = replace(layer, name=layer.name.removeprefix("exact_"))
        return replace(value, exact=None)

    def _exact(self, type: str, version: str, data: dict[str, Any], inputs: Sequence[Value], made: Any) -> Exact | None:
        element, shape = made
        constants = [self.graph.layers[v.ref.layer].constant for v in inputs]
        operands = [(v.exact, v.shape, c, v.element) for v, c in zip(inputs, constants, strict=True)]
        if type == "ReduceMean" and self.dynamic:
            return None  # for another batch size the divisor may be 3, and the quotient is rounded
        if type in ("Convolution", "GroupConvolution") and not self.precise:
            dense = set(data["strides"]) == set(data["dilations"]) == {1}
            one = type == "Convolution" or inputs[1].shape[0] == 1
            if dense and one and inputs[1].shape[-3:] == (inputs[0].shape[1], 3, 3):
                return None  # may be computed by Winograd's algorithm, which rounds
        return after(type, data, operands, shape, element)

    def _add(self, layer: Layer, *exact: Exact | None) -> list[Value]:
        at = len(self.graph.layers)
        self.graph.layers.append(layer)
        values = [Value(Ref(at, k), *t, e) for k, (t, e) in enumerate(zip(layer.types, exact, strict=True))]
        for v in values:
            value = layer.constant if layer.constant is not None and layer.constant.size < 10_000 else None
            self._types[v.ref] = TensorType(v.element, Shape(*v.shape), value)
        return values

    # -- shorthands --------------------------------------------------------------------------------------------------

    def binary(self, type: str, a: Value, b: Value) -> Value:
        """An elementwise operation of two operands, in random order if it is commutative."""
        if type in ("Add", "Multiply", "Maximum", "Minimum") and self.chance(0.3):
            a, b = b, a
        return self.op(type, a, b, auto_broadcast="numpy")

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("Add", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("Multiply", a, b)

    def reshape(self, x: Value, *shape: int) -> Value:
        """A Reshape; the batch stays dynamic if it is the first axis of both shapes."""
        kept = x.rank > 0 and len(shape) > 0 and shape[0] == x.shape[0]
        target = (0, *shape[1:]) if kept else shape
        return self.op("Reshape", x, self.ints(*target), special_zero=bool(kept))

    def transpose(self, x: Value, *order: int) -> Value:
        return self.op("Transpose", x, self.ints(*order))

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        return self.op("Concat", *values, axis=axis)

    def bounded(self, x: Value) -> Value:
        """The value, clamped to a range in which sums stay exact if it may exceed it."""
        if self.dyadic and x.exact is not None and x.exact.largest * 2.0**x.exact.grain > 2**12 and x.exact.grain < 6:
            return self.op("Clamp", x, min=-8.0, max=8.0)
        return x

    def trying(self, make: Callable[[], Any]) -> Any:
        """The result of `make`, or None after DoesNotFit; then the graph is unchanged."""
        layers = len(self.graph.layers)
        try:
            return make()
        except DoesNotFit:
            for k in range(layers, len(self.graph.layers)):
                for port in range(len(self.graph.layers[k].types)):
                    self._types.pop(Ref(k, port), None)
            del self.graph.layers[layers:]
            self.pool = [v for v in self.pool if v.ref.layer < layers]
            return None


def exact_of(name: str) -> Exact:
    """The range of the data of an input with this name: `dyadic1x4_…` has multiples of 2^-1 up to 4."""
    for part in name.split("_"):
        if part.startswith("dyadic"):
            grain, largest = part.removeprefix("dyadic").split("x")
            return Exact(int(grain), float(largest))
    return Exact(UNEVEN, 4)
