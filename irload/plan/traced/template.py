"""A plan with symbolic sizes: its program, the offsets of its values, and the data for binding it to a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from irload.core.size import hint
from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.base import Preparation, Preparing, SharedData
from irload.plan.ir.building import Build
from irload.plan.ir.program import Step, Value, walk_values
from irload.plan.ir.steps import ComputeStep
from irload.plan.ir.strides import Strided
from irload.plan.memory.aliases import Aliases
from irload.plan.memory.memory import constant_bytes, lifetimes
from irload.plan.traced.growth import Growth
from irload.plan.traced.late import LateConstants, is_symbolic
from irload.plan.traced.numbers import Numbers
from irload.plan.traced.program import TracedProgram


class Template:
    """A plan for all shapes for which the guards of its trace hold."""

    def __init__(self, traced: TracedProgram, options: Options, shared: SharedData) -> None:
        program, given = traced.program, traced.given
        self.traced = traced
        self.late = traced.late
        """The steps that compute late constants."""
        self.growing = traced.growing
        """The variables that grow."""
        self.program = program
        self.options = options
        self.shared = shared
        self.aliases = Aliases(program, traced.requests)
        lives = lifetimes(program, self.aliases)
        caller_inputs = traced.requests.caller_inputs
        external = [*(growing.past for growing in self.growing), *caller_inputs]
        self.lives = {root: life for root, life in lives.items() if root not in external}
        """The lifetimes of the roots in the arena."""
        self.roots = {root: k for k, root in enumerate((*self.lives, *external))}
        """The numbers of all roots; those outside the arena are last."""
        self.values = {value: k for k, value in enumerate(walk_values(program))}
        """The values that are not constant, numbered."""
        late = dict.fromkeys(v for step in self.late for v in step.outputs)
        read = dict.fromkeys((*(v for step in program.steps for v in step.inputs), *program.outputs))
        self.late_values = [v for v in read if v in late or is_symbolic(v)]
        """The late constants that steps read or the program returns. Their numbers follow the numbers of `values`."""
        numbering = {value: k for k, value in enumerate((*self.values, *self.late_values))}
        owned = groupby(zip(program.steps, traced.owners, strict=True), itemgetter(1))
        self.segments: list[tuple[Any, list[Step]]] = [
            (backend, [step for step, _ in pairs]) for backend, pairs in owned
        ]
        self.prepared: list[Preparation | None] = [
            backend.prepare(steps, self.aliases, numbering, options, shared) if isinstance(backend, Preparing) else None
            for backend, steps in self.segments
        ]
        trace = traced.trace
        self.numbers = Numbers(trace)
        self.late_constants = self._late_constants()
        self._register()
        self.growth = Growth(self.growing, self.numbers) if self.growing else None
        self.caller_inputs = [(given.index(value), value) for value in caller_inputs]
        """The variables that are read in place: positions among the caller's arrays, and values."""
        others = {*(growing.input for growing in self.growing), *(k for k, _ in self.caller_inputs)}
        self.filled = [k for k in range(len(given)) if k not in others]
        """The caller's arrays that are copied."""
        self.inputs = [given[k] for k in self.filled]
        trace.close()
        self.numbers.close()
        self.holds: Callable[[Sequence[int]], bool] = trace.test()
        """Returns True if all guards hold for values of the symbols."""
        self.hints = [hint(life.size) for life in self.lives.values()]

    def root_sizes(self, numbers: Sequence[int]) -> Array:
        """Return the bytes of the buffer of each root."""
        return _filled(self._sizes, numbers)

    def offsets(self, numbers: Sequence[int]) -> Array:
        """Return the byte offset of each value in the buffer of its root."""
        return _filled(self._offsets, numbers)

    def constant_bytes(self, numbers: Sequence[int]) -> int:
        """Return the bytes of all constants."""
        return self._constant_bytes(numbers)

    def _late_constants(self) -> LateConstants:
        """Return the late constants."""
        add, steps = self.numbers.add, (*self.late, *self.program.steps)
        read = dict.fromkeys((*(v for step in steps for v in step.inputs), *self.program.outputs))
        symbolic = [value for value in read if is_symbolic(value)]
        for value in symbolic:
            if value.source is not None:
                add([*value.source.array.flat, value.source.array.shape])
        for step in self.late:
            add([step.types, step.view] if isinstance(step, ComputeStep) else step.view)
        return LateConstants(symbolic, self.late, self.numbers, set(self.late_values))

    def _register(self) -> None:
        """Register the sizes of all objects of the plan in `numbers`, and set the fields that refer to them."""
        add, form = self.numbers.add, self.numbers.form
        nbytes = constant_bytes(self.program)
        add(nbytes)
        self._constant_bytes = self.numbers.builder(nbytes)
        strided: dict[Value, Strided] = {value: self.aliases.strided(value) for value in self.values}
        self.shapes: dict[Value, int] = {}
        """The number of the form of each value's shape."""
        self.stored = {v: self.aliases.stored_dtype(self.aliases.root(v)) for v in self.values}
        """The type in which each value is stored."""
        self.positions = {v: form(position.in_bytes(self.stored[v].itemsize)) for v, position in strided.items()}
        """The number of the form of each value's shape, byte strides, and byte offset in the buffer of its root."""
        self.layouts = {value: form(self.aliases.layout(value)) for value in strided}
        self.sized: dict[Step, list[tuple[str, Build]]] = {}
        """For each step, the fields that contain sizes, with the functions that build them."""
        self.fields = {type(s): tuple(f.name for f in fields(s)) for s in self.program.steps}
        for step in self.program.steps:
            self.shapes |= {value: form(value.shape) for value in (*step.inputs, *step.outputs)}
            names = [f.name for f in fields(step) if f.name not in ("inputs", "outputs", "origin")]
            self.sized[step] = [
                (name, self.numbers.builder(getattr(step, name))) for name in names if add(getattr(step, name))
            ]
        self.shapes |= {v: form(v.shape) for v in (*self.program.inputs, *self.program.outputs)}
        self._register_dependencies()
        self._sizes = self._vector([life.size for life in self.lives.values()])
        self._offsets = self._vector([s.offset * self.stored[v].itemsize for v, s in strided.items()])
        self.root_of = {value: self.roots[self.aliases.root(value)] for value in self.values}
        """The number of the root of each value."""
        late = (self.late_constants.sizes[value] for value in self.late_values)
        self.placing = frozenset(self._offsets[2]).union(*late)
        """The positions of the sizes on which the addresses of values depend."""
        self.value_roots = np.array(list(self.root_of.values()), np.int64)

    def _register_dependencies(self) -> None:
        """Record the sizes on which each step depends: by its fields, and by shapes, offsets and values of operands."""
        sizes, of_form = self.numbers.sizes, self.numbers.sizes_of_form
        of_values = self.late_constants.sizes
        self.dependencies: dict[Step, frozenset[int]] = {}
        for step in self.program.steps:
            dependencies = frozenset[int]().union(*(sizes(getattr(step, name)) for name, _ in self.sized[step]))
            for value in (*step.inputs, *step.outputs):
                dependencies |= of_form(self.shapes[value]) | of_values.get(value, frozenset())
                if value in self.positions:
                    dependencies |= of_form(self.positions[value]) | of_form(self.layouts[value])
            self.dependencies[step] = dependencies

    def _vector(self, sizes: Sequence[Any]) -> tuple[Array, list[int], list[int]]:
        """Return the arguments of `_filled`: an array with 0 for symbolic sizes, their indices, and their positions.

        Positions are indices into the values of all sizes.
        """
        positions = [k for k, size in enumerate(sizes) if self.numbers.add(size)]
        fixed = np.array([0 if k in set(positions) else size for k, size in enumerate(sizes)], np.int64)
        return fixed, positions, [self.numbers.index(sizes[k]) for k in positions]


def _filled(vector: tuple[Array, list[int], list[int]], numbers: Sequence[int]) -> Array:
    fixed, positions, indices = vector
    if not positions:
        return fixed
    filled = fixed.copy()
    filled[positions] = [numbers[k] for k in indices]
    return filled
