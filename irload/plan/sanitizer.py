"""The sanitizer: checks of bound plans that tests switch on, as they cost more than the runs they watch.

A program is verified after lowering and after each pass. At binding, every array that a call takes must lie in the
buffers of the step's own values, in scratch, or be a constant: anything else is a copy that NumPy made in silence, of
what a value held before the first run. In a run every buffer is poisoned before its first step and after its last one,
scratch before each step; no step may change a value that is still needed, nor the caller's arrays, and results share no
memory with anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.views import is_constant, owner_of
from irload.plan.ir.program import PlanInvalid, Program, Value, walk_values

if TYPE_CHECKING:
    from irload.plan.backends.numpy.kernels.calls import Scratch
    from irload.plan.backends.numpy.selection.selector import Bound
    from irload.plan.backends.numpy.tuning import Phases
    from irload.plan.memory.planner import Storage

_state = {"on": os.environ.get("IRLOAD_PLAN_SANITIZER") == "1"}


def is_on() -> bool:
    """True where plans are made with the sanitizer: within `sanitizing()`, and with IRLOAD_PLAN_SANITIZER=1."""
    return _state["on"]


@contextmanager
def sanitizing(on: bool = True) -> Generator[None]:
    """Have plans that are made within this context check themselves, in whatever thread."""
    before, _state["on"] = _state["on"], on
    try:
        yield
    finally:
        _state["on"] = before


def verified(program: Program, after: str = "lowering") -> Program:
    """The program, verified where the sanitizer is on."""
    if is_on():
        program.verify(after)
    return program


class Sanitizer:
    """Checks one bound plan when it is made, and its runs."""

    def __init__(
        self, program: Program, storage: Storage, bound: Sequence[Bound], constants: Sequence[Array], scratch: Scratch
    ) -> None:
        self._program = program
        self._storage = storage
        self._scratch = scratch
        self._bound = {b.step: b for b in bound}
        self._roots = {v: _root(storage, v) for v in walk_values(program)}
        self._last = _last_uses(program)
        self._begun: dict[int, dict[Value, None]] = {}
        """The buffers that each step is the first to write to; the caller writes to those of the inputs."""
        self._dead: dict[int, dict[Value, None]] = {}
        """The buffers of which nothing is needed after each step."""
        self._find_lives()
        known = {id(owner_of(a)) for a in constants}
        for each in bound:
            self._check_table(each, known)

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

    def _check_table(self, bound: Bound, known: set[int]) -> None:
        """Every array of the step's calls: in the buffers of its values, in scratch, or constant."""
        step = bound.step
        values = (v for v in (*step.inputs, *step.outputs) if v in self._roots)
        homes = [
            byte_bounds(m) for m in (*(self._storage.buffer(self._roots[v]) for v in values), *self._scratch.chunks)
        ]
        for function, arguments in (call for phase in bound.phases for part in phase for call in part):
            for array in _arrays((getattr(function, "__self__", None), arguments)):
                low, high = byte_bounds(array)
                inside = not array.size or any(a <= low and high <= b for a, b in homes)
                if not inside and id(owner_of(array)) not in known and not is_constant(array):
                    name = getattr(function, "__qualname__", repr(function))
                    raise PlanInvalid(
                        f"{type(step).__name__} ({step.title}, {bound.kernel}): {name} takes "
                        f"{array.dtype}{list(array.shape)}, which is neither in the buffers of the step's values "
                        "nor in scratch nor constant: a copy that was made when the step was bound"
                    )

    def run(self, arrays: Sequence[Array], run: Callable[[Phases], None]) -> tuple[Array, ...]:
        """The results of a run that is watched."""
        program, view = self._program, self._storage.view
        given = [a.copy() for a in arrays]
        self._storage.arena.fill(0xFF)
        for value, array in zip(program.inputs, arrays, strict=True):
            np.copyto(view(value), array)
        alive: dict[Value, None] = dict.fromkeys(v for v in program.inputs if v in self._roots)
        self._poison(self._dead.get(-1, {}))
        for k, step in enumerate(program.steps):
            self._poison(self._begun.get(k, {}))
            alive = {v: None for v in alive if self._last[v] >= k}
            kept = {v: view(v).tobytes() for v in alive if self._last[v] > k}
            if step in self._bound:
                for chunk in self._scratch.chunks:
                    chunk.fill(0xFF)
                run(self._bound[step].phases)
            for value, before in kept.items():
                if view(value).tobytes() != before:
                    what = f"step {k}, {type(step).__name__} ({step.title})"
                    raise PlanInvalid(f"{what}, changes {value}, which is still needed")
            alive.update(dict.fromkeys(v for v in step.outputs if v in self._roots))
            self._poison(self._dead.get(k, {}))
        results = tuple(np.array(view(v), order="C") for v in program.outputs)
        for array, before in zip(arrays, given, strict=True):
            if array.dtype != object and array.tobytes() != before.tobytes():
                raise PlanInvalid("the run changes an input of the caller")
        for result in results:
            if any(np.shares_memory(result, other) for other in (self._storage.arena, *arrays)):
                raise PlanInvalid("a result shares memory with the plan or with an input")
        return results

    def _poison(self, roots: Iterable[Value]) -> None:
        """NaN in floats of any width, numbers far out of range in integers."""
        for root in roots:
            self._storage.buffer(root).fill(0x81 if root.dtype.kind in "iub" else 0xFF)


def _root(storage: Storage, value: Value) -> Value:
    """The value whose buffer holds this one. Raises PlanInvalid for views that go round in a circle."""
    seen = {value}
    while (source := storage.source(value)) is not None:
        value = source
        if value in seen:
            raise PlanInvalid(f"{value} is a view of itself")
        seen.add(value)
    return value


def _last_uses(program: Program) -> dict[Value, int]:
    """The position of the step that takes each value last; beyond the end for what the program returns."""
    last: dict[Value, int] = dict.fromkeys(program.inputs, -1)
    for k, step in enumerate(program.steps):
        last.update(dict.fromkeys((*step.outputs, *step.inputs), k))
    last.update(dict.fromkeys(program.outputs, len(program.steps)))
    return last


def _arrays(found: object) -> Iterator[Array]:
    """The arrays in nested arguments."""
    if isinstance(found, np.ndarray):
        yield cast(Array, found)
    elif isinstance(found, list | tuple):
        for each in cast(Iterable[Any], found):
            yield from _arrays(each)
