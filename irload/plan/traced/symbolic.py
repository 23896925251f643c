"""A traced plan at one shape with symbolic sizes: kernel selection records the guards under which it is valid."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from irload.core.size import Size, extent
from irload.plan.ir.program import Value
from irload.plan.ir.strides import Strided, View
from irload.plan.memory.layout import PLANAR, Layout
from irload.plan.memory.memory import Memory
from irload.plan.traced.concrete import Concrete
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.traced.numbers import SymbolicNumbers
    from irload.plan.traced.template import Template


@record(eq=False)
class SymbolicPointer:
    """An address: `distance` bytes after the start of a value, which is `start` bytes after the start of its root.

    `root`: the number of the root.
    """

    value: Value
    root: int
    start: Size
    distance: Size

    def __add__(self, other: Size) -> SymbolicPointer:
        return SymbolicPointer(self.value, self.root, self.start, self.distance + other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymbolicPointer) or other.root != self.root:
            return False  # different roots have separate buffers
        return self.start + self.distance == other.start + other.distance

    __hash__ = None


class SymbolicArray:
    """The attributes of an array on which kernel selection depends. Others raise AttributeError or TypeError."""

    def __init__(self, pointer: SymbolicPointer, strided: Strided, dtype: np.dtype[Any]) -> None:
        self._pointer = pointer
        self._strided = strided
        self.shape = strided.shape
        self.strides = strided.strides
        self.dtype = dtype
        self.itemsize = dtype.itemsize
        self.ndim = len(strided.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> Size:
        """The number of bytes."""
        return self.size * self.itemsize

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (self._pointer + self._strided.offset, False)}

    def __array_function__(self, function: Callable[..., Any], types: Any, given: Any, named: Any) -> Any:
        if function is not np.broadcast_to:
            return NotImplemented
        array, shape = given
        seen: SymbolicArray = array._viewed(View("broadcast", tuple(shape)))  # noqa: SLF001
        strides = tuple(0 if n == 1 else s for n, s in zip(shape, seen.strides, strict=True))  # as in NumPy
        return SymbolicArray(seen._pointer, Strided(seen.shape, strides, seen._strided.offset), seen.dtype)

    def swapaxes(self, a: int, b: int) -> SymbolicArray:
        """Return the view with two axes swapped."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self._viewed(View("transpose", tuple(order)))

    def __getitem__(self, index: Any) -> SymbolicArray:
        """Return the view at integers and slices."""
        items: list[Any] = list(index) if isinstance(index, tuple) else [index]
        at = next((k for k, item in enumerate(items) if item is ...), len(items))
        items[at : at + 1] = [slice(None)] * (self.ndim - len(items) + (at < len(items)))
        offset, shape, strides = self._strided.offset, list[int](), list[int]()
        for item, size, stride in zip(items, self.shape, self.strides, strict=True):
            if isinstance(item, int):
                offset += item * stride
            else:
                start, count, step = extent(item, size)
                offset += start * stride
                shape.append(count)
                strides.append(step * stride)
        return SymbolicArray(self._pointer, Strided(tuple(shape), tuple(strides), offset), self.dtype)

    def _viewed(self, view: View) -> SymbolicArray:
        seen = view.of(self._strided)
        if seen is None:
            raise TypeError("no strides describe the view")
        return SymbolicArray(self._pointer, seen, self.dtype)


class SymbolicBinding(Concrete):
    """The values and steps of a plan with sizes of `trace`, whose guards are cleared on creation."""

    def __init__(self, template: Template, numbers: SymbolicNumbers) -> None:
        self.trace = numbers.trace
        self.trace.guards = {}
        Concrete.__init__(self, template, numbers, template.numbers.items(numbers), {})
        self.memory = SymbolicMemory(self, template)

    def value(self, value: Value) -> Value:
        concrete = self._values.get(value)
        if concrete is None and value in self.template.late_values:  # no source: its elements are not known
            shape = self.items[self.template.shapes[value]]
            concrete = self._values[value] = Value(shape, value.dtype, None, value.name, value.used, value.origin)
        concrete = concrete or Concrete.value(self, value)
        self.memory.symbolic[concrete] = value
        return concrete


class SymbolicMemory(Memory):
    """The layouts of a plan, and arrays without memory."""

    def __init__(self, sizes: SymbolicBinding, template: Template) -> None:
        self._sizes, self._template = sizes, template
        self.symbolic: dict[Value, Value] = {}
        """For each value with symbols of the trace, the value of the program."""

    def layout(self, value: Value) -> Layout:
        layout = self._template.layouts.get(self.symbolic[value])
        return PLANAR if layout is None else self._sizes.items[layout]

    def is_view(self, value: Value) -> bool:
        return self._template.aliases.alias(self.symbolic[value]) is not None

    def array(self, value: Value) -> Any:
        if value.source is not None:
            return value.source.array
        template, symbolic = self._template, self.symbolic[value]
        if symbolic in template.late_values:
            pointer = SymbolicPointer(symbolic, -1 - template.late_values.index(symbolic), 0, 0)
            return SymbolicArray(pointer, Strided.dense(value.shape).in_bytes(value.dtype.itemsize), value.dtype)
        strided: Strided = self._sizes.items[template.positions[symbolic]]
        pointer = SymbolicPointer(symbolic, template.root_of[symbolic], strided.offset, 0)
        return SymbolicArray(pointer, Strided(strided.shape, strided.strides), template.stored[symbolic])

    def buffer(self, root: Value) -> Any:
        symbolic, layout = self.symbolic[root], self.layout(root)
        nbytes = layout.nbytes or layout.size(root.shape) * self._template.stored[symbolic].itemsize
        pointer = SymbolicPointer(symbolic, self._template.root_of[symbolic], 0, 0)
        return SymbolicArray(pointer, Strided((nbytes,), (1,)), np.dtype(np.uint8))
