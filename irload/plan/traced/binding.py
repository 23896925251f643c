"""A traced plan at one shape: the concrete values and steps that back ends need, and their executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.executor import Executor, Segment
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.strides import Strided
from irload.plan.memory.layout import PLANAR, Layout
from irload.plan.memory.memory import Memory
from irload.plan.traced.late import computed

if TYPE_CHECKING:
    from irload.options import Options
    from irload.plan.traced.template import Template
    from irload.plan.traced.workspace import Workspace


class Binding:
    """`BoundSizes` of a workspace and the numbers of a shape."""

    def __init__(self, workspace: Workspace, numbers: Sequence[int]) -> None:
        self._workspace = workspace
        self._template = template = workspace.template
        self._numbers = numbers
        self.items = template.numbers.items(numbers)
        """Shapes, positions and layouts by their forms."""
        self._values: dict[Value, Value] = {}
        start = workspace.arena.ctypes.data
        offsets = template.offsets(numbers)
        self._addresses: Array = start + workspace.starts[template.value_roots] + offsets
        self.memory = BoundMemory(self, template, workspace)
        self._late()

    def plan(self) -> Executor:
        """Bind every segment."""
        template = self._template
        segments: list[Segment] = []
        for (backend, steps), prepared in zip(template.segments, template.prepared, strict=True):
            if prepared is not None:
                segments.append(Segment(backend.name, prepared.bind(self)))
                continue
            concrete = [self.step(step) for step in steps]
            executable = backend.compile(concrete, self.memory, template.options, template.shared)
            segments.append(Segment(backend.name, executable))
        inputs = [self.value(v) for v in template.program.inputs]
        outputs = [self.value(v) for v in template.program.outputs]
        made = BoundPlan(Program([], inputs, outputs), template.options, self.memory, segments)
        self._values = {}
        self.memory.forget()
        return made

    def replaced(self, item: Any) -> Any:
        """The object with numbers instead of sizes."""
        return self._template.numbers.replaced(item, self._numbers)

    def value(self, value: Value) -> Value:
        """The concrete value of a symbolic one."""
        found = self._values.get(value)
        if found is None:
            shape = self.items[self._template.shapes[value]]
            same = shape is value.shape and not (value.source is not None and value in self._template.late_values)
            found = value if same else Value(shape, value.dtype, value.source, value.name, value.used, value.origin)
            self._values[value] = found
            self.memory.symbolic[found] = value
        return found

    def step(self, step: Step) -> Step:
        """The concrete step of a symbolic one."""
        changed: dict[str, Any] = {name: self.replaced(getattr(step, name)) for name in self._template.sized[step]}
        changed |= {"inputs": [self.value(v) for v in step.inputs], "outputs": [self.value(v) for v in step.outputs]}
        made = object.__new__(type(step))  # a tenth of the time of dataclasses.replace
        for name in self._template.fields[type(step)]:
            setattr(made, name, changed[name] if name in changed else getattr(step, name))
        return made

    def addresses(self, numbers: Array) -> Array:
        """The addresses of symbolic values that are not constant."""
        return self._addresses[numbers]

    def room(self, value: Value) -> tuple[int, int]:
        """The address and the bytes of the buffer in which a symbolic value is."""
        root, workspace = self._template.roots[self._template.aliases.root(value)], self._workspace
        return workspace.arena.ctypes.data + int(workspace.starts[root]), int(workspace.capacities[root])

    def working(self, name: object, nbytes: int) -> Array:
        """Working memory that all shapes share."""
        return self._workspace.working(name, nbytes)

    def _late(self) -> None:
        """Compute the late constants."""
        arrays: dict[Value, Array] = {}
        for value in self._template.symbolic:
            if value.source is not None:
                whole = value.source.array
                numbers = [self.replaced(n) for n in whole.flat]
                arrays[value] = np.array(numbers, value.dtype).reshape(self.replaced(whole.shape))
        for step in self._template.late:
            concrete = self.step(step)
            arrays.update(zip(step.outputs, computed(step, concrete, arrays), strict=True))
        for value, array in arrays.items():
            found = self.value(value)
            found.source = Constant.of(array)


class BoundMemory(Memory):
    """The memory of concrete values, which are at the positions of the symbolic ones."""

    def __init__(self, binding: Binding, template: Template, workspace: Workspace) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.arena = workspace.arena
        self.symbolic: dict[Value, Value] = {}
        """The symbolic value of each concrete one."""
        self._binding = binding
        self._template = template
        self._starts_of_roots = workspace.starts
        self._views: dict[Value, Array] = {}

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
        if value not in self._views:
            strided = self._binding.items[self._template.positions[self.symbolic[value]]]
            self._views[value] = self._view(value, strided)
        return self._views[value]

    def with_border(self, value: Value) -> Array | None:
        layout = self.layout(value)
        return self._view(value, layout.whole(value.shape)) if layout.border else None

    def buffer(self, root: Value) -> Array:
        start = self._start(self.symbolic[root])
        layout = self.layout(root)
        dtype = self._template.aliases.stored_dtype(self.symbolic[root])
        return self.arena[start : start + max(layout.nbytes or layout.size(root.shape) * dtype.itemsize, 1)]

    def forget(self) -> None:
        """Release the data that only binding needs."""
        self._views = {}
        self.symbolic = {}
        del self._binding, self._template  # which refer to the workspace, and that to the plan

    def _start(self, root: Value) -> int:
        return int(self._starts_of_roots[self._template.roots[root]])

    def _view(self, value: Value, strided: Strided) -> Array:
        aliases = self._template.aliases
        root = aliases.root(self.symbolic[value])
        dtype = aliases.stored_dtype(root)
        strides = tuple(s * dtype.itemsize for s in strided.strides)
        return np.ndarray(
            strided.shape, dtype, self.arena, self._start(root) + strided.offset * dtype.itemsize, strides
        )


class BoundPlan(Executor):
    """The executor of a bound plan."""

    def __init__(self, program: Program, options: Options, memory: Memory, segments: Sequence[Segment]) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._set_up(program, options, memory, segments)
