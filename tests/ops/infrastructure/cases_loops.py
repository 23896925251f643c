"""Random bodies for TensorIterator and Loop: every kind of input and output, and loops inside loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness.body import Body, Value, back_edges, input_entry, output_entry, port_map
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import pick, random_array, random_shape

ARITHMETIC = ("Add", "Subtract", "Multiply", "Maximum")


@dataclass
class Wires:
    """A case under construction: the outer inputs, the body, and the lines that connect them."""

    first: int = 0
    inputs: list[Input] = field(default_factory=list[Input])
    lines: list[str] = field(default_factory=list[str])
    results: list[tuple[Value, dict[str, Any]]] = field(default_factory=list[tuple[Value, dict[str, Any]]])
    backs: list[tuple[Value, Value]] = field(default_factory=list[tuple[Value, Value]])
    weights: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.body = Body(self.weights)

    def feed(self, array: Array, element: et.ElementType, shape: tuple[int, ...], **rest: Any) -> Value:
        """An outer input that feeds a new Parameter of the body, whose shape is `shape`."""
        inner = self.body.parameter(element, ",".join(map(str, shape)))
        self.lines.append(input_entry(self.first + len(self.inputs), inner, **rest))
        self.inputs.append(param(array, element))
        return inner

    def carry(self, value: Value, target: Value) -> Value:
        """A Result for `value` with a back edge to a Parameter."""
        result = self.body.result(value)
        self.backs.append((result, target))
        return result

    def give(self, result: Value, **rest: Any) -> None:
        """Map a Result to the next output."""
        self.results.append((result, rest))

    def xml(self, *more: str) -> str:
        """Port map, back edges and body, the output ports numbered after the inputs."""
        start = self.first + len(self.inputs)
        outputs = (output_entry(start + k, result, **rest) for k, (result, rest) in enumerate(self.results))
        edges = back_edges(*self.backs) if self.backs else ""
        return port_map(*self.lines, *outputs, *more) + edges + self.body.xml()

    def case(self, rng: Random, type: str, version: str, before: tuple[Input, ...] = (), *more: str) -> Case:
        """The finished case, its outputs in random order."""
        order = rng.permutation(len(self.results))
        self.results = [self.results[k] for k in order]
        xml = self.xml(*more)
        return Case(
            type,
            version,
            [*before, *self.inputs],
            outputs=len(self.results),
            oracle="cpu",
            xml=xml,
            weights=bytes(self.weights),
        )


def _steps(rng: Random, size: int) -> dict[str, Any]:
    """The attributes of parts of `size` elements, forwards or backwards."""
    if rng.random() < 0.4:
        return {"start": -1, "end": 0, "stride": -size, "part_size": size}
    return {"start": 0, "end": -1, "stride": size, "part_size": size} if size > 1 or rng.random() < 0.5 else {}


def _slices(rng: Random, wires: Wires, shape: tuple[int, ...], axis: int, parts: int, element: et.ElementType) -> Value:
    """A sliced input whose parts have `shape`."""
    whole = tuple(n * parts if k == axis else n for k, n in enumerate(shape))
    return wires.feed(random_array(rng, whole, element), element, shape, axis=axis, **_steps(rng, shape[axis]))


def _mixed(rng: Random, wires: Wires, shape: tuple[int, ...], element: et.ElementType, *values: Value) -> Value:
    """Arithmetic over some values, an invariant input and a constant of the body."""
    body = wires.body
    mixed = values[0]
    for value in values[1:]:
        mixed = body.op(pick(rng, ARITHMETIC), mixed, value)
    if rng.random() < 0.5:
        narrow = tuple(1 if rng.random() < 0.4 else n for n in shape)
        mixed = body.op(pick(rng, ARITHMETIC), mixed, wires.feed(random_array(rng, narrow, element), element, narrow))
    if rng.random() < 0.4:
        mixed = body.op("Multiply", mixed, body.constant(random_array(rng, (), element, 0, 2), element))
    return mixed


@cases("TensorIterator", "opset1")
def tensor_iterator(rng: Random, version: str) -> Case:
    wires, element = Wires(), pick(rng, (et.f32, et.f32, et.i32))
    shape = random_shape(rng, (1, 3), 1, 3)
    axis, parts = int(rng.integers(len(shape))), int(rng.integers(1, 5))
    values = [_slices(rng, wires, shape, axis, parts, element)]
    if rng.random() < 0.3:
        values.append(_slices(rng, wires, shape, int(rng.integers(len(shape))), parts, element))
    merged = None
    if rng.random() < 0.7:
        merged = wires.feed(random_array(rng, shape, element), element, shape)
        values.append(merged)
    mixed = _mixed(rng, wires, shape, element, *values)
    if merged is not None:
        result = wires.carry(mixed, merged)
        if rng.random() < 0.8:
            wires.give(result)
    if merged is None or rng.random() < 0.6 or not wires.results:
        target = int(rng.integers(len(shape)))
        wires.give(wires.body.result(mixed), axis=target, **_steps(rng, shape[target]))
    return wires.case(rng, "TensorIterator", version)


def _condition(rng: Random, wires: Wires, kind: str, counter: Value | None, last: int) -> Value:
    """The body's condition: constant, passed through from an outer input, or false from iteration `last` on."""
    body = wires.body
    if kind == "through":
        inner = body.parameter(et.boolean, "")
        wires.lines.append(input_entry(wires.first + len(wires.inputs), inner))
        wires.inputs.append(pick(rng, (const, param))(np.bool_(True), et.boolean))
        return body.result(inner)
    if kind == "computed" and counter is not None:
        return body.result(body.op("Less", counter, body.constant(np.int64(last), et.i64)))
    return body.result(body.constant(np.bool_(kind == "true"), et.boolean))


def _inner_loop(rng: Random, wires: Wires, value: Value, element: et.ElementType, shape: tuple[int, ...]) -> Value:
    """A Loop inside the body that adds a constant to a value a few times."""
    inner = Body(wires.weights)
    merged = inner.parameter(element, ",".join(map(str, shape)))
    grown = inner.result(inner.op("Add", merged, inner.constant(random_array(rng, (1,), element), element)))
    condition = inner.result(inner.constant(np.bool_(True), et.boolean))
    lines = (input_entry(2, merged), output_entry(3, grown), output_entry(-1, condition, purpose="execution_condition"))
    tail = port_map(*lines) + back_edges((grown, merged)) + inner.xml()
    trips = wires.body.constant(np.int64(rng.integers(1, 3)), et.i64)
    going = wires.body.constant(np.bool_(True), et.boolean)
    return wires.body.nested("Loop", "opset5", [trips, going, value], 1, tail)[0]


@cases("Loop", "opset5")
def loop(rng: Random, version: str) -> Case:
    wires, element = Wires(first=2), pick(rng, (et.f32, et.f32, et.i32))
    body = wires.body
    shape = random_shape(rng, (1, 3), 1, 3)
    axis = int(rng.integers(len(shape)))
    shape = tuple(1 if k == axis else n for k, n in enumerate(shape))  # parts of one element along this axis
    kind = pick(rng, ("true", "true", "through", "computed", "false"))
    trips = int(rng.integers(1, 5))
    last = int(rng.integers(0, 4)) if kind == "computed" else trips
    runs = {"false": 1, "computed": min(trips, last + 1)}.get(kind, trips)
    endless = kind in ("computed", "false") and rng.random() < 0.5
    if endless and kind == "computed":
        runs = last + 1

    counter, more = None, list[str]()
    if kind == "computed" or rng.random() < 0.5:
        counter = body.parameter(et.i64, pick(rng, ("", "1")))
        more.append(input_entry(-1, counter, purpose="current_iteration"))
    values = list[Value]()
    if rng.random() < 0.6:
        backwards = {"start": -1, "end": 0, "stride": -1} if rng.random() < 0.4 else {}
        whole = tuple(n * runs if k == axis else n for k, n in enumerate(shape))
        values.append(wires.feed(random_array(rng, whole, element), element, shape, axis=axis, **backwards))
    merged = None
    if rng.random() < 0.7 or not values:
        merged = wires.feed(random_array(rng, shape, element), element, shape)
        values.append(merged)
    mixed = _mixed(rng, wires, shape, element, *values)
    if counter is not None and rng.random() < 0.6:
        mixed = body.op("Add", mixed, body.op("Convert", counter, destination_type=element))
    if rng.random() < 0.25:
        mixed = _inner_loop(rng, wires, mixed, element, shape)
    if merged is not None:
        result = wires.carry(mixed, merged)
        if rng.random() < 0.8:
            wires.give(result)
    if rng.random() < 0.6 or not wires.results:
        wires.give(body.result(mixed), axis=axis)
    more.append(output_entry(-1, _condition(rng, wires, kind, counter, last), purpose="execution_condition"))
    index = pick(rng, (et.i32, et.i64))
    count = np.full(pick(rng, ((), (1,))), -1 if endless else trips)
    before = (pick(rng, (const, const, param))(count, index), const(np.full(pick(rng, ((), (1,))), True), et.boolean))
    return wires.case(rng, "Loop", version, before, *more)
