"""Decodes objects of traced plans from the JSON and arrays that `encoding` creates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import prod
from typing import Any, Protocol

import numpy as np

from irload.core.element import element
from irload.core.op import Op
from irload.core.polynomial import key_in
from irload.core.shape import Dim, Shape
from irload.core.size import Size, size_of
from irload.core.tensor import Array, TensorType
from irload.core.trace import Trace
from irload.graph import Node, Output
from irload.ops.registry import resolve
from irload.plan.folding import Folding
from irload.plan.ir.constant import Constant, Recipe
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.lowering.checked import CHECKS
from irload.plan.passes.subnormals import without_subnormals
from irload.plan.traced.encoding import RECORDS, STEPS, TABLES
from irload.plan.traced.late import unknown


class Source(Protocol):
    """The model whose plan is restored."""

    folding: Folding

    def node(self, number: int) -> Node:
        """Return the layer with this number."""
        ...

    def constant(self, node: Node, tensor: TensorType, offset: int, size: int) -> Constant:
        """Return the constant of a Const, `size` bytes of the file."""
        ...


class PlanDecoder:
    """Decodes the objects of a PlanEncoder: the constructor decodes `tables`, and each call one other object.

    `memory`: the bytes of all arrays. `operation`: returns the operation of a Compute step for an operation of the
    model.
    """

    def __init__(
        self,
        tables: Mapping[str, Sequence[Any]],
        memory: Array,
        trace: Trace,
        source: Source,
        operation: Callable[[Op], Op],
    ) -> None:
        self._memory = memory
        self._trace = trace
        self._source = source
        self._operation = operation
        self._decoded: Mapping[str, list[Any]] = {name: [] for name in TABLES}
        self._kinds: Mapping[str, Callable[[Any], Any]] = {
            "size": lambda encoded: self._decoded["sizes"][encoded[1]],
            "value": lambda encoded: self._decoded["values"][encoded[1]],
            "step": lambda encoded: self._decoded["steps"][encoded[1]],
            "constant": lambda encoded: self._decoded["constants"][encoded[1]],
            "tuple": lambda encoded: tuple(map(self, encoded[1:])),
            "list": lambda encoded: list(map(self, encoded[1:])),
            "slice": lambda encoded: slice(*map(self, encoded[1:])),
            "shape": lambda encoded: Shape(*map(self, encoded[1:])),
            "dim": lambda encoded: Dim(*encoded[1:]),
            "unranked": lambda encoded: Shape.unranked(),
            "tensor": lambda encoded: TensorType(element(encoded[1]), self(encoded[2])),
            "element": lambda encoded: element(encoded[1]),
            "node": self._node,
            "dtype": lambda encoded: np.dtype(encoded[1]),
            "number": lambda encoded: np.dtype(encoded[1]).type(encoded[2]),
            "record": lambda encoded: RECORDS[encoded[1]](*map(self, encoded[2:])),
            "op": self._op,
            "check": lambda encoded: CHECKS[encoded[1]](),
            "array": self._array,
            "bytes": lambda encoded: self(encoded[1]).tobytes(),
            "sizes": self._array_of_sizes,
        }
        decode = {"sizes": self._size, "constants": self._constant, "values": self._value, "steps": self._step}
        for name in TABLES:
            table = self._decoded[name]
            for encoded in tables[name]:
                table.append(decode[name](encoded))

    def __call__(self, encoded: Any) -> Any:
        return self._kinds[encoded[0]](encoded) if isinstance(encoded, list) else encoded

    def _size(self, encoded: Any) -> Size:
        return size_of(self._trace, dict(key_in(encoded)))

    def _value(self, encoded: Any) -> Value:
        return Value(*map(self, encoded))

    def _step(self, encoded: Any) -> Step:
        cls = STEPS[encoded[0]]
        step = object.__new__(cls)
        for field, part in zip(fields(cls), encoded[1:], strict=True):
            setattr(step, field.name, self(part))
        if isinstance(step, ComputeStep) and step.op.replaceable:
            step.op = self._operation(step.op)
        return step

    def _node(self, encoded: Any) -> Node | Output:
        node = self._source.node(encoded[1])
        return node if len(encoded) == 2 else node.outputs[encoded[2]]

    def _op(self, encoded: Any) -> Op:
        cls, _ = resolve(encoded[1], encoded[2])
        return cls(**dict(zip(cls.declared, map(self, encoded[3:]), strict=True)))

    def _constant(self, encoded: Any) -> Constant:
        match encoded[0]:
            case "file":
                _, node, name, shape, offset, size = encoded
                return self._source.constant(self(node), TensorType(element(name), Shape(*shape)), offset, size)
            case "unknown":
                return Constant(unknown, self(encoded[1]), self(encoded[2]))
            case "widened":
                return self(encoded[1]).widened()
            case "flushed":
                return self(encoded[1]).corrected(without_subnormals)
            case "derived":
                return self(encoded[2]).by(self(encoded[1]))
            case "folded":
                op, inputs, tensor, array, output = map(self, encoded[1:])
                return self._source.folding.repeated(Recipe(op, inputs, tensor), array, output)
            case _:
                constant = Constant.of(self(encoded[1]))
                if len(encoded) > 2:
                    constant.recipe = Recipe(self(encoded[2]), self(encoded[3]))
                return constant

    def _array(self, encoded: Any) -> Array:
        _, start, name, *shape = encoded
        dtype = np.dtype(name)
        stop = start + prod(shape) * dtype.itemsize
        if not 0 <= start <= stop <= self._memory.size:
            raise ValueError("an array outside of the file")
        array = self._memory[start:stop].view(dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def _array_of_sizes(self, encoded: Any) -> Array:
        shape, *items = map(self, encoded[1:])
        array = np.empty(shape, object)
        for k, item in enumerate(items):
            array.flat[k] = item
        return array
