"""Loop and TensorIterator: operations that iterate a body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.core.context import InferContext, RunContext
from irload.core.element import boolean, dynamic
from irload.core.remarks import remark
from irload.core.rounding import reorder
from irload.core.shape import Dim, Shape
from irload.core.size import alike
from irload.core.subgraph import declared
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch
from irload.ops.infrastructure.iteration import Iterated, truth
from irload.ops.infrastructure.parts import joined_type, part_count


class TensorIterator(Iterated, since=1):
    """Runs its body over the parts of its sliced inputs.

    Specification: TensorIterator-1. All sliced inputs must give the same number of parts. Without sliced inputs, the
    `start` and `end` of the first concatenated output give the number of iterations; without those, it is one. Inputs
    are converted to the types that the body's Parameters declare, as in OpenVINO, with a remark: to integers they
    are rounded, ties to even.
    """

    equal_parts = True

    def admitted_type(self, inner: int, tensor: TensorType) -> TensorType:
        parameter, given = declared(self.body.body, inner).element, tensor.element
        if parameter is given or dynamic in (parameter, given):
            return tensor
        if not (parameter.is_numeric and (given.is_numeric or given is boolean)):
            raise TypeMismatch(f"parameter {inner} of the body is {parameter}, the tensor for it {given}")
        remark(
            f"parameter {inner} of the body must be {given} by the specification, found {parameter}; it is converted"
        )
        return replace(tensor, element=parameter)

    def admitted(self, inner: int, array: Array) -> Array:
        declared_type = declared(self.body.body, inner).element
        return (
            array if declared_type is dynamic or declared_type.dtype == array.dtype else reorder(array, declared_type)
        )

    def runs_once(self, *inputs: TensorType) -> bool:
        count = self._count([t.shape for t in inputs])
        return count is not None and alike(count, 1)

    def infer(self, *inputs: TensorType, context: InferContext) -> tuple[TensorType, ...]:
        count = self._count([t.shape for t in inputs])
        parameters = initial = self.initial(inputs)
        results = context.infer_body(self.body.body, parameters)
        if count != 0:
            parameters, results = self.settled(parameters, results, context)
        types: list[TensorType] = []
        for m in self.mapped_outputs():
            tensor = results[m.inner]
            if m.axis is None:
                types.append(self.last_type(m, initial, parameters, results, count))
                continue
            part = joined_type(m, tensor, Dim(m.part_size, m.part_size))
            if tensor.rank and part.shape.meet(tensor.shape) is None:
                raise ShapeMismatch(
                    f"each part must have {m.part_size} elements on axis {m.axis}, found {tensor.shape}"
                )
            length = None if count is None else Dim(count * m.part_size, count * m.part_size)
            types.append(joined_type(m, tensor, length))
        return tuple(types)

    def compute(self, *inputs: Array, context: RunContext) -> tuple[Array, ...]:
        count = self._count([Shape(*a.shape) for a in inputs])
        return self.iterate(inputs, context, limit=count)

    def _count(self, shapes: Sequence[Shape]) -> int | None:
        """The number of iterations, None if it is unknown."""
        sliced = [m for m in self.body.inputs if m.axis is not None and m.port is not None]
        if not sliced:
            joined = next((m for m in self.mapped_outputs() if m.axis is not None), None)
            return 1 if joined is None else abs(joined.end - joined.start) // joined.part_size
        counts: dict[int, int] = {}
        for m in sliced:
            shape = shapes[m.outer]
            if shape.rank is not None and shape[m.along(shape.rank)].is_static:
                counts[m.outer] = part_count(m, shape[m.along(shape.rank)].size)
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"input {port}: {n}" for port, n in counts.items())
            raise ShapeMismatch(f"the sliced inputs give different numbers of iterations ({listed})")
        return next(iter(counts.values()), None)


class Loop(Iterated, since=5):
    """Runs its body while its condition is true, at most `trip_count` times; no limit if negative.

    Specification: Loop-5. `execution_condition` decides on the first iteration, the condition returned by the body on
    each next one, so the iteration that returns false still counts. Without iterations, merged outputs are their
    initial values and concatenated ones are empty.
    """

    hasty = True

    def runs_once(self, *inputs: TensorType) -> bool:
        trips, first = inputs[0].ints, inputs[1].value
        return trips is not None and alike(trips[0], 1) and first is not None and truth(first, "execution_condition")

    def infer(
        self, trip_count: TensorType, execution_condition: TensorType, *inputs: TensorType, context: InferContext
    ) -> tuple[TensorType, ...]:
        _require_one("trip_count", trip_count)
        _require_one("execution_condition", execution_condition)
        if not (trip_count.element.is_integer or trip_count.element is dynamic):
            raise TypeMismatch(f"trip_count must be of an integer type, found {trip_count.element}")
        _require_boolean("execution_condition", execution_condition)
        ports = (trip_count, execution_condition, *inputs)
        parameters = initial = self.initial(ports, first=2)
        for m in self.body.inputs:
            if m.purpose:
                _require_counter(parameters[m.inner])
                if self.runs_once(*ports):
                    parameters[m.inner] = TensorType.of(self._counter(m, 0))
        results = context.infer_body(self.body.body, parameters)
        condition = results[self._condition()]
        _require_one("the body's condition", condition)
        _require_boolean("the body's condition", condition)
        count = self._count(ports, self._constant_condition(ports, condition))
        if count != 0:
            parameters, results = self.settled(parameters, results, context)
        types: list[TensorType] = []
        for m in self.mapped_outputs():
            tensor = results[m.inner]
            if m.axis is None:
                types.append(self.last_type(m, initial, parameters, results, count))
                continue
            known = count is not None and tensor.rank is not None
            part = (tensor.shape if tensor.rank else Shape(1))[m.along(tensor.rank or 1)] if known else None
            types.append(
                joined_type(m, tensor, part * count if part and part.is_static and count is not None else None)
            )
        return tuple(types)

    def compute(
        self, trip_count: Array, execution_condition: Array, *inputs: Array, context: RunContext
    ) -> tuple[Array, ...]:
        trips = int(trip_count.reshape(-1)[0])
        going = truth(execution_condition, "execution_condition")
        return self.iterate(
            (trip_count, execution_condition, *inputs),
            context,
            limit=None if trips < 0 else trips,
            going=going,
            condition=self._condition(),
        )

    def _condition(self) -> int:
        """The index of the body's result that is the condition."""
        for m in self.body.outputs:
            if m.purpose == "execution_condition":
                return m.inner
        raise AttributeInvalid("no output of the port map has the purpose execution_condition")

    def _constant_condition(self, ports: Sequence[TensorType], condition: TensorType) -> bool | None:
        """The body's condition if it is the same in every iteration: a constant, or an input that the body returns."""
        if condition.value is not None:
            return truth(condition.value, "the body's condition")
        index = self._condition()
        source = next(iter(self.body.body.results[index].inputs), None)
        for m in self.body.inputs:
            if m.port is None or m.axis is not None or self.body.body.parameters[m.inner].outputs[0] is not source:
                continue
            unchanged = all(result == index for result, parameter in self.body.back_edges if parameter == m.inner)
            value = ports[m.port].value
            if unchanged and value is not None:
                return truth(value, "the body's condition")
        return None

    @staticmethod
    def _count(ports: Sequence[TensorType], condition: bool | None) -> int | None:
        """The number of iterations, None if it is unknown."""
        trips, first = ports[0].ints, ports[1].value
        if (trips is not None and trips[0] == 0) or (first is not None and not truth(first, "execution_condition")):
            return 0
        if condition is False:
            return 1
        return trips[0] if condition and trips is not None and trips[0] > 0 else None


def _require_one(name: str, tensor: TensorType) -> None:
    if tensor.shape.meet(Shape()) is None and tensor.shape.meet(Shape(1)) is None:
        raise ShapeMismatch(f"{name} must be a scalar or have one element, found {tensor.shape}")


def _require_boolean(name: str, tensor: TensorType) -> None:
    if tensor.element not in (boolean, dynamic):
        raise TypeMismatch(f"{name} must be boolean, found {tensor.element}")


def _require_counter(tensor: TensorType) -> None:
    _require_one("the body's current_iteration", tensor)
    if not tensor.element.is_integer:
        raise TypeMismatch(f"the body's current_iteration must be of an integer type, found {tensor.element}")
