"""A traced plan bound to one shape: the concrete values and steps for the back ends, and the executor."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import StepKernel
from irload.plan.executor import Executor, Segment
from irload.plan.ir.program import Step, Value
from irload.plan.ir.strides import Strided
from irload.plan.memory.layout import PLANAR, Layout
from irload.plan.memory.memory import Memory
from irload.plan.traced.concrete import Concrete

if TYPE_CHECKING:
    from irload.plan.traced.numbers import SymbolicNumbers
    from irload.plan.traced.symbolic import SymbolicBinding
    from irload.plan.traced.template import Template
    from irload.plan.traced.workspace import Workspace


class ShapeBinding(Concrete):
    """Binds the plan of a workspace to one shape: implements `BoundSizes` for the back ends.

    `symbols`: the values of the symbols; `numbers`: the values of all sizes; `external`: the addresses of roots outside
    the arena; `previous`: the plan bound to another shape in the same arena, whose kernels are reused for steps that
    do not change.
    """

    def __init__(
        self,
        workspace: Workspace,
        symbols: tuple[int, ...],
        numbers: Sequence[int],
        external: Sequence[int] | Array = (),
        previous: BoundPlan | None = None,
    ) -> None:
        self._workspace = workspace
        template = workspace.template
        self.symbols = symbols
        self._previous = previous
        self._symbolic: SymbolicNumbers | None = None
        """The sizes as expressions over symbols; all traces of kernel selections of this binding share them."""
        before = () if previous is None else previous.numbers
        self.changed = frozenset([k for k, (a, b) in enumerate(zip(before, numbers, strict=False)) if a != b])
        """The positions of the sizes that differ from the previous binding."""
        items = template.numbers.items(numbers, None if previous is None else previous.items, self.changed)
        self.late = template.late_constants.at(numbers, None if previous is None else previous.late, self.changed)
        Concrete.__init__(self, template, numbers, items, self.late.constants)
        self.external: Array = np.asarray(external, np.int64)
        """The addresses of the roots outside the arena."""
        self.moved = previous is not None and not (
            previous.external is self.external or np.array_equal(previous.external, self.external)
        )
        """True if `external` differs from the addresses of the previous binding."""
        if previous is None or self.moved or not self.changed.isdisjoint(template.placing):
            self.starts: Array = np.concatenate([workspace.arena.ctypes.data + workspace.starts, self.external])
            """The addresses of all roots."""
            self.addresses: Array = self._addresses()
            """The addresses of all values in the order of `template.values`, followed by the late constants."""
        else:
            self.starts, self.addresses = previous.starts, previous.addresses
        self.replaces = previous is not None and template.growth is not None
        """True if the previous binding will not be used again: lengths of variables that grow do not repeat."""
        self.held = {} if previous is None else self._unchanged(previous)
        """The arrays of the previous binding whose shapes and offsets did not change, by symbolic value."""
        self.memory = BoundMemory(self, template, workspace)

    def plan(self) -> BoundPlan:
        """Bind every segment."""
        template, previous = self.template, self._previous
        segments: list[Segment] = []
        for k, ((backend, steps), prepared) in enumerate(zip(template.segments, template.prepared, strict=True)):
            if prepared is not None:
                before = None if previous is None else previous.segments[k].executable
                segments.append(Segment(backend.name, prepared.bind(self, before)))
                continue
            concrete = [self.step(step) for step in steps]
            executable = backend.compile(concrete, self.memory, template.options, template.shared)
            segments.append(Segment(backend.name, executable))
        bound = BoundPlan(self, segments, previous)
        self._values = {}
        self._previous = None
        self.memory.forget()
        return bound

    def _addresses(self) -> Array:
        template = self.template
        addresses = self.starts[template.value_roots] + template.offsets(self.numbers)
        late = [address_of(self.late.constants[value].array) for value in template.late_values]
        return np.concatenate([addresses, late]) if late else addresses

    def _unchanged(self, previous: BoundPlan) -> dict[Value, Array]:
        sizes_of, positions = self.template.numbers.sizes_of_form, self.template.positions
        held = previous.held.items()
        return {value: array for value, array in held if self.changed.isdisjoint(sizes_of(positions[value]))}

    def changes(self, step: Step) -> bool:
        """True if the concrete step may differ from that of the previous binding in more than addresses."""
        return self._previous is None or not self.changed.isdisjoint(self.template.dependencies[step])

    def depends(self, step: Step) -> bool:
        """True if the concrete step may differ between shapes in more than addresses."""
        return bool(self.template.dependencies[step])

    def value(self, value: Value) -> Value:
        concrete = self._values.get(value)
        if concrete is None:
            concrete = Concrete.value(self, value)
            self.memory.symbolic[concrete] = value
        return concrete

    def symbolic(self) -> SymbolicBinding:
        """Return the plan with symbols at this shape, without guards. Invalidates the result of the previous call."""
        from irload.plan.traced.symbolic import SymbolicBinding

        if self._symbolic is None:
            self._symbolic = self.template.numbers.symbolic(self.symbols)
        return SymbolicBinding(self.template, self._symbolic)

    def room(self, value: Value) -> tuple[int, int]:
        """Return the address and the number of bytes of the buffer that contains a symbolic value."""
        root, workspace = self.template.root_of[value], self._workspace
        inside = root < len(workspace.capacities)
        return int(self.starts[root]), int(workspace.capacities[root]) if inside else self.memory.outside(root).size

    def working(self, name: object, nbytes: int) -> Array:
        """Return working memory, which all shapes share."""
        return self._workspace.working(name, nbytes)


class BoundMemory(Memory):
    """The memory of concrete values, at the offsets of their symbolic values."""

    def __init__(self, binding: ShapeBinding, template: Template, workspace: Workspace) -> None:
        self.arena = workspace.arena
        self.symbolic: dict[Value, Value] = {}
        """The symbolic value of each concrete one."""
        self._outside: dict[int, Array] = {}
        """Memory outside the arena, by number of the root. The arrays hold no reference to the owner of the memory."""
        self._binding = binding
        self._template = template
        self._starts_of_roots = workspace.starts
        self._views = binding.held.copy()
        """Views by symbolic value."""

    def layout(self, value: Value) -> Layout:
        return PLANAR if value.source is not None else self._binding.items[self._template.layouts[self.symbolic[value]]]

    def is_view(self, value: Value) -> bool:
        return self._template.aliases.alias(self.symbolic[value]) is not None

    def source(self, value: Value) -> Value | None:
        alias = self._template.aliases.alias(self.symbolic[value])
        return None if alias is None else self._binding.value(alias.source)

    def root(self, value: Value) -> Value:
        return self._binding.value(self._template.aliases.root(self.symbolic[value]))

    def array(self, value: Value) -> Array:
        if value.source is not None:
            return value.source.array
        return self.view(self.symbolic[value])

    def view(self, symbolic: Value) -> Array:
        """Return the array of a symbolic value that is not constant."""
        array = self._views.get(symbolic)
        if array is None:
            strided = self._binding.items[self._template.positions[symbolic]]
            array = self._views[symbolic] = self._view(symbolic, strided)
        return array

    def buffer(self, root: Value) -> Array:
        start = self._start(self.symbolic[root])
        layout = self.layout(root)
        dtype = self._template.aliases.stored_dtype(self.symbolic[root])
        return self.arena[start : start + max(layout.nbytes or layout.size(root.shape) * dtype.itemsize, 1)]

    def forget(self) -> None:
        """Release the data that is needed only while binding."""
        self._views = {}
        self.symbolic = {}
        self._outside = {}
        del self._binding, self._template  # avoids a cycle: binding → workspace → plan → this memory

    def _start(self, root: Value) -> int:
        return int(self._starts_of_roots[self._template.roots[root]])

    def _view(self, symbolic: Value, strided: Strided) -> Array:
        """Return the view of a value. `strided`: in bytes."""
        root = self._template.root_of[symbolic]
        inside = root < len(self._starts_of_roots)
        memory, start = (self.arena, int(self._starts_of_roots[root])) if inside else (self.outside(root), 0)
        return np.ndarray(
            strided.shape, self._template.stored[symbolic], memory, start + strided.offset, strided.strides
        )

    def outside(self, root: int) -> Array:
        """Return the bytes of a root outside the arena."""
        memory = self._outside.get(root)
        if memory is None:
            number = root - len(self._starts_of_roots)
            values = [
                *(g.join.output for g in self._template.growing),
                *(value for _, value in self._template.caller_inputs),
            ]
            nbytes = prod(self._binding.items[self._template.shapes[values[number]]]) * values[number].dtype.itemsize
            memory = self._outside[root] = _memory(int(self._binding.external[number]), nbytes)
        return memory


def address_of(array: Array) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]


def _memory(start: int, nbytes: int) -> Array:
    """Return the bytes at an address as an array."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(start))


class BoundPlan(Executor):
    """The executor of a bound plan. It keeps data that the next binding reuses.

    `numbers`: the values of all sizes; `external`: the addresses of memory outside the arena; `items`: the objects that
    contain sizes; `late`: the late constants; `starts`, `addresses`: the addresses of roots and values; `held`: the
    views of inputs and outputs.
    """

    def __init__(self, binding: ShapeBinding, segments: Sequence[Segment], previous: BoundPlan | None) -> None:
        template = binding.template
        self.numbers, self.items, self.late = binding.numbers, binding.items, binding.late
        self.external, self.starts, self.addresses = binding.external, binding.starts, binding.addresses
        self._template = template
        filled, view = template.inputs, binding.memory.view
        self.held = {value: view(value) for value in (*filled, *template.program.outputs) if not value.is_constant}
        inputs, outputs = ([self._array(v) for v in side] for side in (filled, template.program.outputs))
        before = None if previous is None else previous.filling
        self._set_up(template.program, template.options, binding.memory, segments, inputs, outputs, before)

    def _array(self, value: Value) -> Array:
        constant = self.late.constants.get(value, value.source)
        return self.held[value] if constant is None else constant.array

    @property
    def kernels(self) -> list[StepKernel]:
        """The kernels of all segments, in order, with concrete steps."""
        sizes = Concrete(self._template, self.numbers, self.items, self.late.constants)
        steps = {step: sizes.step(step) for step in self.program.steps}
        return [replace(kernel, step=steps.get(kernel.step, kernel.step)) for kernel in super().kernels]
