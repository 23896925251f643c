"""Objects of traced plans from the JSON and arrays of `encoding`."""

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
from irload.plan.passes.subnormals import without_subnormals
from irload.plan.traced.encoding import RECORDS, STEPS, TABLES
from irload.plan.traced.late import unknown


class Source(Protocol):
    """The model of which a plan is restored."""

    folding: Folding

    def node(self, number: int) -> Node:
        """Return a layer."""
        ...

    def constant(self, node: Node, tensor: TensorType, offset: int, size: int) -> Constant:
        """Return the constant of a Const, `size` bytes of the file."""
        ...


class Decoder:
    """Decodes the objects that an Encoder converted: `tables` in order, then other objects by calls.

    `memory`: the bytes of all arrays. `operation`: the operation of a Compute step for one of the model.
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
        self._found: Mapping[str, list[Any]] = {name: [] for name in TABLES}
        self._kinds: Mapping[str, Callable[[Any], Any]] = {
            "size": lambda said: self._found["sizes"][said[1]],
            "value": lambda said: self._found["values"][said[1]],
            "step": lambda said: self._found["steps"][said[1]],
            "constant": lambda said: self._found["constants"][said[1]],
            "tuple": lambda said: tuple(map(self, said[1:])),
            "list": lambda said: list(map(self, said[1:])),
            "slice": lambda said: slice(*map(self, said[1:])),
            "shape": lambda said: Shape(*map(self, said[1:])),
            "dim": lambda said: Dim(*said[1:]),
            "unranked": lambda said: Shape.unranked(),
            "tensor": lambda said: TensorType(element(said[1]), self(said[2])),
            "element": lambda said: element(said[1]),
            "node": self._node,
            "dtype": lambda said: np.dtype(said[1]),
            "number": lambda said: np.dtype(said[1]).type(said[2]),
            "record": lambda said: RECORDS[said[1]](*map(self, said[2:])),
            "op": self._op,
            "array": self._array,
            "bytes": lambda said: self(said[1]).tobytes(),
            "sizes": self._array_of_sizes,
        }
        decode = {"sizes": self._size, "constants": self._constant, "values": self._value, "steps": self._step}
        for name in TABLES:
            found = self._found[name]
            for said in tables[name]:
                found.append(decode[name](said))

    def __call__(self, said: Any) -> Any:
        return self._kinds[said[0]](said) if isinstance(said, list) else said

    def _size(self, said: Any) -> Size:
        return size_of(self._trace, dict(key_in(said)))

    def _value(self, said: Any) -> Value:
        return Value(*map(self, said))

    def _step(self, said: Any) -> Step:
        cls = STEPS[said[0]]
        made = object.__new__(cls)
        for field, part in zip(fields(cls), said[1:], strict=True):
            setattr(made, field.name, self(part))
        if isinstance(made, ComputeStep) and made.op.replaceable:
            made.op = self._operation(made.op)
        return made

    def _node(self, said: Any) -> Node | Output:
        node = self._source.node(said[1])
        return node if len(said) == 2 else node.outputs[said[2]]

    def _op(self, said: Any) -> Op:
        cls, _ = resolve(said[1], said[2])
        return cls(**dict(zip(cls.declared, map(self, said[3:]), strict=True)))

    def _constant(self, said: Any) -> Constant:
        match said[0]:
            case "file":
                _, node, name, shape, offset, size = said
                return self._source.constant(self(node), TensorType(element(name), Shape(*shape)), offset, size)
            case "unknown":
                return Constant(unknown, self(said[1]), self(said[2]))
            case "widened":
                return self(said[1]).widened()
            case "flushed":
                return self(said[1]).without(without_subnormals)
            case "derived":
                return self(said[2]).by(self(said[1]))
            case "folded":
                op, inputs, tensor, array, output = map(self, said[1:])
                return self._source.folding.repeated(Recipe(op, inputs, tensor), array, output)
            case _:
                found = Constant.of(self(said[1]))
                if len(said) > 2:
                    found.recipe = Recipe(self(said[2]), self(said[3]))
                return found

    def _array(self, said: Any) -> Array:
        _, start, name, *shape = said
        dtype = np.dtype(name)
        stop = start + prod(shape) * dtype.itemsize
        if not 0 <= start <= stop <= self._memory.size:
            raise ValueError("an array outside of the file")
        found = self._memory[start:stop].view(dtype).reshape(shape)
        found.flags.writeable = False
        return found

    def _array_of_sizes(self, said: Any) -> Array:
        shape, *items = map(self, said[1:])
        found = np.empty(shape, object)
        for k, item in enumerate(items):
            found.flat[k] = item
        return found
