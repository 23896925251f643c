"""The sanitizer: runs a plan and checks its memory accesses. For tests, since the checks take longer than the run.

Every buffer is poisoned before its first write and after its last read. No step may change a value that is still
needed, or an array of the caller, and results must not share memory. Back ends run further checks when they compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import PlanInvalid, Program, Step, Value, walk_values
from irload.plan.memory.memory import Memory


class Sanitizer:
    """Checks the runs of one plan."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program = program
        self._memory = memory
        self._roots = {v: _root(memory, v) for v in walk_values(program)}
        self._last = _last_uses(program)
        self._begun: dict[int, dict[Value, None]] = {}
        """The buffers first written by each step; the caller writes the buffers of the inputs."""
        self._dead: dict[int, dict[Value, None]] = {}
        """The buffers that are dead after each step."""
        self._find_lives()

    def _find_lives(self) -> None:
        ends: dict[Value, int] = {}
        for value, root in self._roots.items():
            ends[root] = max(ends.get(root, -1), self._last[value])
        for root, k in ends.items():
            self._dead.setdefault(k, {})[root] = None
        seen = {self._roots[v] for v in self._program.inputs if v in self._roots}
        for k, step in enumerate(self._program.steps):
            for root in (self._roots[v] for v in step.outputs if v in self._roots):
                if root not in seen:
                    seen.add(root)
                    self._begun.setdefault(k, {})[root] = None

    def run(self, arrays: Sequence[Array], kernels: Mapping[Step, Callable[[], None]]) -> tuple[Array, ...]:
        """Return the results of a checked run. `kernels`: a function for each step that has a kernel."""
        program = self._program
        given = [a.copy() for a in arrays]
        self._memory.arena.fill(0xFF)
        for value, array in zip(program.inputs, arrays, strict=True):
            np.copyto(self._memory.array(value), array)
        alive: dict[Value, None] = dict.fromkeys(v for v in program.inputs if v in self._roots)
        self._poison(self._dead.get(-1, {}))
        for k, step in enumerate(program.steps):
            self._poison(self._begun.get(k, {}))
            alive = {v: None for v in alive if self._last[v] >= k}
            kept = {v: self._bytes(v) for v in alive if self._last[v] > k}
            if step in kernels:
                kernels[step]()
            for value, before in kept.items():
                if self._bytes(value) != before:
                    what = f"step {k}, {type(step).__name__} ({step.title})"
                    raise PlanInvalid(f"{what}, changes {value}, which is still needed")
            alive.update(dict.fromkeys(v for v in step.outputs if v in self._roots))
            self._poison(self._dead.get(k, {}))
        results = tuple(np.array(self._memory.array(v), order="C") for v in program.outputs)
        for array, before in zip(arrays, given, strict=True):
            if array.dtype != object and array.tobytes() != before.tobytes():
                raise PlanInvalid("the run changes an input of the caller")
        for result in results:
            if any(np.shares_memory(result, other) for other in (self._memory.arena, *arrays)):
                raise PlanInvalid("a result shares memory with the plan or with an input")
        return results

    def _bytes(self, value: Value) -> bytes:
        return self._memory.array(value).tobytes()

    def _poison(self, roots: Iterable[Value]) -> None:
        """Fill buffers with bytes that are NaN in floats of any width, and far out of range in integers."""
        for root in roots:
            self._memory.buffer(root).fill(0x81 if root.dtype.kind in "iub" else 0xFF)


def _root(memory: Memory, value: Value) -> Value:
    """Return the value whose buffer holds this one. Raises PlanInvalid for a cycle of views."""
    seen = {value}
    while (source := memory.source(value)) is not None:
        value = source
        if value in seen:
            raise PlanInvalid(f"{value} is a view of itself")
        seen.add(value)
    return value


def _last_uses(program: Program) -> dict[Value, int]:
    """Return the position of the last step that reads each value; beyond the end for results of the program."""
    last: dict[Value, int] = dict.fromkeys(program.inputs, -1)
    for k, step in enumerate(program.steps):
        last.update(dict.fromkeys((*step.outputs, *step.inputs), k))
    last.update(dict.fromkeys(program.outputs, len(program.steps)))
    return last
