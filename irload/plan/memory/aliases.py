"""Aliases: values that are views into the buffer of another value."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ElementwiseStep
from irload.plan.ir.strides import Strided
from irload.plan.memory.layout import PLANAR, Layout
from irload.plan.memory.requests import MemoryRequests
from irload.record import record


@record()
class Alias:
    """A view of `source`. `strided`: the shape, strides and offset of the view in the buffer of `root`."""

    source: Value
    root: Value
    strided: Strided


class Aliases:
    """The values that share a buffer. A root is a value with a separate buffer; its aliases are views of it."""

    def __init__(self, program: Program, requests: MemoryRequests) -> None:
        self._layouts = dict(requests.layouts)
        self.uses = _uses(program)
        """The distinct steps that read each value."""
        self._aliases: dict[Value, Alias] = {}
        self.external = {*(step.inputs[0] for step in requests.appending_concats), *requests.caller_inputs}
        """The roots whose buffers are not in the arena."""
        for step in requests.appending_concats:
            source, joined = step.inputs[0], step.output
            seen = self.strided(source)
            self._aliases[joined] = Alias(source, source, Strided(joined.shape, seen.strides, seen.offset))
        self._find_views(program)
        if self._carry(program, requests):
            self._find_views(program)  # again, as views of these results have other roots now

    def alias(self, value: Value) -> Alias | None:
        """Return the alias relation of a value, or None for a root."""
        return self._aliases.get(value)

    def layout(self, value: Value) -> Layout:
        """Return the layout that a value has as a root."""
        return self._layouts.get(value, PLANAR)

    def stored_dtype(self, value: Value) -> np.dtype[Any]:
        """Return the type in which a root is stored."""
        return self.layout(value).storage or value.dtype

    def root(self, value: Value) -> Value:
        """Return the root whose buffer holds a value."""
        alias = self._aliases.get(value)
        return value if alias is None else alias.root

    def strided(self, value: Value) -> Strided:
        """Return the strides of a value from the start of its buffer."""
        alias = self._aliases.get(value)
        return self.layout(value).strided(value.shape) if alias is None else alias.strided

    def _find_views(self, program: Program) -> None:
        """Record results of view steps as aliases of their inputs, if strides can describe them."""
        for step in program.steps:
            view = step.view
            if view is None or step.inputs[0].is_constant:
                continue
            source = step.inputs[0]
            # Not `Layout.storage`, which may be None: np.dtype("float64") == None is true.
            if self.stored_dtype(step.output) != self.stored_dtype(source):
                continue
            seen = view.of(self.strided(source))
            if seen is not None:
                self._aliases[step.output] = Alias(source, self.root(source), seen)

    def _carry(self, program: Program, requests: MemoryRequests) -> bool:
        """Let results share the memory of the inputs that receive them in the next run. True if any does.

        All other steps that read the input must precede the step that writes the result. That step may also read
        the input, if it reads each element before it overwrites it.
        """
        when = {step: k for k, step in enumerate(program.steps)}
        producers = program.producers()
        carried: dict[Value, Alias] = {}
        for result, given in requests.carried.items():
            writer = producers.get(result)
            if writer is None or given.is_constant or given in self._aliases or result in self._aliases:
                continue
            if result.shape != given.shape or {result, given} & requests.layouts.keys() or given in program.returned:
                continue
            if self.stored_dtype(result) != self.stored_dtype(given):
                continue
            seen = {given, *(v for v, alias in self._aliases.items() if alias.root is given)}
            readers = {step for value in seen for step in self.uses.get(value, ())}
            if any(value in program.returned for value in seen) or result in seen:
                continue
            if all(when[s] < when[writer] or (s is writer and _reads_in_place(s, given, seen)) for s in readers):
                carried[result] = Alias(given, given, self.strided(given))
        self._aliases |= carried
        return bool(carried)


def _reads_in_place(step: Step, given: Value, seen: set[Value]) -> bool:
    """True if a step reads each element of `given` only to compute the result at this position. `seen`: its views."""
    return isinstance(step, ElementwiseStep) and all(v is given for v in step.inputs if v in seen)


def _uses(program: Program) -> dict[Value, list[Step]]:
    uses: dict[Value, list[Step]] = {}
    for step in program.steps:
        for value in dict.fromkeys(step.inputs):
            uses.setdefault(value, []).append(step)
    return uses
