"""Base of Loop and TensorIterator: a body that runs once per iteration, and the wiring of its ports.

An input of the body is *sliced* (each iteration gets the next part of a tensor), *merged* (the target of a back edge:
an initial value, then the body's result) or *invariant*. An output is *concatenated* from all iterations, or the result
of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from irload.core import attribute as attr
from irload.core.context import InferContext, RunContext
from irload.core.element import dynamic, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.subgraph import PortMap, Subgraph, declared
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch
from irload.ops.infrastructure.parts import Collected, Slices, joined, part_type, require_part

PATIENCE = 3
"""Rounds of inference in which the bounds of merged inputs may grow before they are dropped."""


class Iterated(Op):
    """A body that runs once per iteration."""

    body: Subgraph = attr.supplied()

    folds = False
    widens = False
    hasty: ClassVar[bool] = False
    """True if the bounds of a merged input that is also an output are dropped as soon as they change."""
    equal_parts: ClassVar[bool] = False
    """True if concatenated parts must have `part_size` elements in each iteration, as inference assumes."""

    def validate(self) -> None:
        for m in (*self.body.inputs, *self.body.outputs):
            if m.axis is not None and (m.part_size < 1 or abs(m.stride) != m.part_size):
                raise AttributeInvalid(
                    f"part_size must be positive and stride ±part_size, found {m.part_size} and {m.stride}"
                )
        sliced = {m.inner for m in self.body.inputs if m.axis is not None}
        if any(parameter in sliced for _, parameter in self.body.back_edges):
            raise AttributeInvalid("a back edge leads to a parameter of the body that is sliced from an input")

    def runs_once(self, *inputs: TensorType) -> bool:
        """True if inputs of these types certainly result in exactly one iteration."""
        return False

    # -- inference ---------------------------------------------------------------------------------------------------

    def initial(self, ports: Sequence[TensorType], first: int = 0) -> list[TensorType]:
        """The types of the body's parameters in the first iteration. Every port from `first` on must be mapped."""
        unmapped = set(range(first, len(ports))) - {m.port for m in self.body.inputs}
        if unmapped:
            raise ShapeMismatch(f"input {min(unmapped)} is not in the port map")
        types: dict[int, TensorType] = {}
        for m in self.body.inputs:
            if m.port is None or m.purpose:
                types[m.inner] = declared(self.body.body, m.inner)
            elif m.axis is None:
                types[m.inner] = self.admitted_type(m.inner, ports[m.port].without_value())
            else:
                types[m.inner] = self.admitted_type(m.inner, part_type(m, ports[m.port]))
        for k, parameter in enumerate(self.body.body.parameters):
            if k not in types:
                raise ShapeMismatch(f"the parameter '{parameter.name}' of the body has no input")
        return [types[k] for k in range(len(types))]

    def admitted_type(self, inner: int, tensor: TensorType) -> TensorType:
        """The type of a parameter of the body for an input of type `tensor`."""
        return tensor

    def admitted(self, inner: int, array: Array) -> Array:
        """The value of a parameter of the body for an input `array`."""
        return array

    def settled(
        self, parameters: list[TensorType], results: tuple[TensorType, ...], context: InferContext
    ) -> tuple[list[TensorType], tuple[TensorType, ...]]:
        """The types of parameters and results in every iteration: merged inputs are widened to allow the results."""
        outputs = {m.inner for m in self.mapped_outputs() if m.axis is None} if self.hasty else set[int]()
        rounds = 0
        while True:
            wider = list(parameters)
            for result, parameter in self.body.back_edges:
                loosely = rounds >= PATIENCE or result in outputs
                wider[parameter] = _admitting(wider[parameter], results[result], loosely=loosely)
            if all(a is b for a, b in zip(wider, parameters, strict=True)):
                return parameters, results
            rounds += 1
            parameters = wider
            results = context.infer_body(self.body.body, parameters)

    def last_type(
        self,
        m: PortMap,
        initial: Sequence[TensorType],
        parameters: Sequence[TensorType],
        results: Sequence[TensorType],
        count: int | None,
    ) -> TensorType:
        """The type of an output that is not concatenated: the body's result, or without an iteration the initial value.

        If the number of iterations is unknown, it is the type of the result, as in OpenVINO. For a value that grows
        along an axis, it is the type of the parameter, which allows the initial value and all results. `initial`: the
        types of the parameters in the first iteration.
        """
        source = dict(self.body.back_edges).get(m.inner)
        result = results[m.inner].without_value()
        if source is None or count or (count is None and not grows(initial[source].shape, result.shape)):
            return result
        return parameters[source].without_value()

    def mapped_outputs(self) -> list[PortMap]:
        """The outputs in port order."""
        return sorted((m for m in self.body.outputs if m.port is not None), key=lambda m: m.outer)

    # -- execution ---------------------------------------------------------------------------------------------------

    def iterate(
        self,
        inputs: Sequence[Array],
        context: RunContext,
        *,
        limit: int | None,
        going: bool = True,
        condition: int | None = None,
    ) -> tuple[Array, ...]:
        """Run the body while `going` and below `limit`; the result at `condition` is the next value of `going`."""
        wiring = self.body
        merged = {parameter for _, parameter in wiring.back_edges}
        sliced = [(m.inner, Slices(inputs[m.outer], m)) for m in wiring.inputs if m.axis is not None]
        values: list[Array] = [np.zeros(0)] * len(wiring.body.parameters)
        for m in wiring.inputs:
            if m.port is not None and m.axis is None:
                values[m.inner] = self.admitted(m.inner, inputs[m.port])
            elif m.purpose:
                values[m.inner] = self._counter(m, 0)
        initial = tuple(values)
        counters = [(m.inner, values[m.inner]) for m in wiring.inputs if m.purpose and m.inner not in merged]
        collected = {a.result: Collected(a, initial) for a in context.accumulators(wiring)}
        edges = [edge for edge in wiring.back_edges if edge[0] not in collected]
        gathered = [m for m in self.mapped_outputs() if m.axis is not None]
        parts: dict[int, list[Array]] = {m.outer: [] for m in gathered}
        sizes = dict.fromkeys(parts, 0)
        read = {condition, *(m.inner for m in gathered)}
        carried = {result for result, _ in edges} - read
        k = 0
        with context.iterations(wiring, carried) as run_body:
            results: tuple[Array, ...] = ()
            while going and (limit is None or k < limit):
                context.spend_iteration()
                for inner, slices in sliced:
                    values[inner] = self.admitted(inner, slices.part(k))
                for inner, zero in counters:
                    values[inner] = np.add(zero, k, dtype=zero.dtype)
                results = run_body(tuple(values))
                for m in gathered:
                    if self.equal_parts:
                        require_part(m, results[m.inner], k)
                    parts[m.outer].append(results[m.inner])
                    sizes[m.outer] += results[m.inner].nbytes
                    context.limits.require("tensor_bytes", sizes[m.outer], f"output {m.outer} has grown too large")
                for result, parts_of_value in collected.items():
                    parts_of_value.append(results[result], context)
                for result, parameter in edges:
                    values[parameter] = results[result]
                going = condition is None or truth(results[condition], "the body's condition")
                k += 1
            if not k:
                return self._without_iterations(initial, context.outputs)

            def last(result: int) -> Array:
                if result in collected:
                    return collected[result].whole()
                return results[result].copy() if result in carried else results[result]

            return tuple(last(m.inner) if m.axis is None else joined(parts[m.outer], m) for m in self.mapped_outputs())

    def _counter(self, m: PortMap, k: int) -> Array:
        """The number of the iteration, in the type and shape of the body's Parameter."""
        type = declared(self.body.body, m.inner)
        return np.full(type.shape.static if type.shape.is_static else (1,), k, type.element.dtype)

    def _without_iterations(self, initial: Sequence[Array], outputs: Sequence[TensorType]) -> tuple[Array, ...]:
        """Outputs without iterations: initial values, empty concatenations, and zeros for results of the body."""
        sources = dict(self.body.back_edges)
        arrays: list[Array] = []
        for m, tensor in zip(self.mapped_outputs(), outputs, strict=True):
            if m.axis is None and m.inner in sources:
                array = initial[sources[m.inner]]
                if not tensor.shape.contains(Shape(*array.shape)):
                    raise ExecutionError(
                        f"no iteration ran, so output {m.port} keeps the shape {list(array.shape)} of its initial "
                        f"value; its consumers were planned for {tensor.shape}"
                    )
                arrays.append(array)
                continue
            if tensor.element is dynamic:
                raise ExecutionError("no iteration ran, and the type of an output is known only from the body")
            shape = [d.lo for d in tensor.shape] if tensor.rank is not None else [0]
            if m.axis is not None and tensor.rank:
                shape[m.along(tensor.rank)] = 0
            arrays.append(np.zeros(shape, tensor.element.dtype))
        return tuple(arrays)


def grows(initial: Shape, result: Shape) -> bool:
    """True if the shapes cannot be equal along exactly one axis, and the result is unbounded along it."""
    if initial.rank is None or initial.rank != result.rank:
        return False
    different = [b for a, b in zip(initial.dims, result.dims, strict=True) if a.meet(b) is None]
    return len(different) == 1 and different[0].hi is None


def truth(array: Array, name: str) -> bool:
    """The truth value of a condition of one element."""
    if array.size != 1:
        raise ExecutionError(f"{name} must have one element, found shape {list(array.shape)}")
    return bool(array.reshape(-1)[0])


def _admitting(parameter: TensorType, returned: TensorType, *, loosely: bool) -> TensorType:
    """The parameter's type, widened if needed to allow the result of a back edge; the same object if unchanged.

    Bounds that change are extended, or dropped if `loosely`; two different sizes give an unknown dim.
    """
    merge(parameter.element, returned.element)
    if parameter.shape.contains(returned.shape):
        return parameter
    if parameter.rank is None or parameter.rank != returned.rank:
        return replace(parameter, shape=Shape.unranked())
    dims: list[Dim] = []
    for a, b in zip(parameter.shape, returned.shape, strict=True):
        lost = not a.contains(b) and (loosely or a.meet(b) is None)
        dims.append(ANY if lost else a.hull(b))
    return replace(parameter, shape=Shape(*dims))
