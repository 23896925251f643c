"""The memory of one program: where each value lies in one arena, by the steps between which it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Program, Value, walk_values
from irload.plan.ir.strides import Strided
from irload.plan.memory.aliases import Aliases
from irload.plan.memory.arena import Lifetime, aligned_bytes, place
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests
from irload.record import record
from irload.safety import DEFAULT, Limits


@record()
class Placement:
    """Where a value lies: its buffer begins `start` bytes into the arena, and holds it under a layout.

    `strided` counts elements of `dtype`, from the start of the buffer; None where blocks are no strides.
    """

    start: int
    nbytes: int
    layout: Layout
    dtype: np.dtype[Any]
    strided: Strided | None


class Memory:
    """Placements for all values of a program that are not constant, and the arena in which they lie."""

    def __init__(self, program: Program, requests: MemoryRequests | None = None, limits: Limits = DEFAULT) -> None:
        self._aliases = Aliases(program, requests or MemoryRequests())
        self._strided: dict[Value, Strided] = {}
        self._arrays: dict[Value, Array] = {}
        self._starts, total = _placed(program, self._aliases)
        limits.require(
            "peak_bytes", total + _constant_bytes(program), "the plan's constants and activations are too large"
        )
        self.arena = aligned_bytes(max(total, 1))

    @property
    def nbytes(self) -> int:
        """The size of the arena."""
        return self.arena.size

    def layout(self, value: Value) -> Layout:
        """How a value lies if it has a buffer of its own."""
        return self._aliases.layout(value)

    def is_view(self, value: Value) -> bool:
        """True for results of a ViewOp that need no copy."""
        return self._aliases.is_view(value)

    def source(self, value: Value) -> Value | None:
        """The value that this one is an alias of, None for roots."""
        alias = self._aliases.alias(value)
        return None if alias is None else alias.source

    def root(self, value: Value) -> Value:
        """The value whose buffer holds this one."""
        return self._aliases.root(value)

    def placement(self, value: Value) -> Placement:
        """Where a value lies."""
        root = self.root(value)
        layout = self.layout(root)
        dtype = layout.storage or root.dtype
        return Placement(
            self._starts[root],
            layout.size(root.shape) * dtype.itemsize,
            layout,
            dtype,
            self.strided(value) if layout.block == 1 else None,
        )

    def strided(self, value: Value) -> Strided:
        """The elements of a value, counted from the start of its buffer. Raises ValueError for blocked layouts."""
        chain: list[Value] = []
        at = value
        while at not in self._strided:
            chain.append(at)
            alias = self._aliases.alias(at)
            if alias is None:
                self._strided[at] = self.layout(at).strided(at.shape)
                chain.pop()
                break
            at = alias.source
        for each in reversed(chain):
            alias = self._aliases.alias(each)
            assert alias is not None
            source = self._strided[alias.source]
            seen = source if alias.view is None else alias.view.of(source)
            if seen is None:
                raise ValueError(f"{each} is no view of {alias.source}")
            self._strided[each] = seen
        return self._strided[value]

    def array(self, value: Value) -> Array:
        """The value in its logical shape, as a view of the arena; a constant itself."""
        if value.source is not None:
            return value.source.array
        if value not in self._arrays:
            self._arrays[value] = self._array(value, self.strided(value))
        return self._arrays[value]

    def with_border(self, value: Value) -> Array | None:
        """A value that has a border together with it, None for others."""
        layout = self.layout(value)
        return self._array(value, layout.whole(value.shape)) if layout.border else None

    def buffer(self, root: Value) -> Array:
        """The bytes of the buffer that holds a root, its border included."""
        found = self.placement(root)
        return self.arena[found.start : found.start + found.nbytes]

    def _array(self, value: Value, strided: Strided) -> Array:
        root = self.root(value)
        dtype = self.layout(root).storage or root.dtype
        offset = self._starts[root] + strided.offset * dtype.itemsize
        strides = tuple(s * dtype.itemsize for s in strided.strides)
        return np.ndarray(strided.shape, dtype, self.arena, offset, strides)


def _placed(program: Program, aliases: Aliases) -> tuple[dict[Value, int], int]:
    """The start of every root's buffer in the arena, in bytes, and the size of the arena."""
    when = {step: k for k, step in enumerate(program.steps)}
    born: dict[Value, int] = dict.fromkeys(program.inputs, -1)
    for step, k in when.items():
        born.update(dict.fromkeys(step.outputs, k))
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    end = len(program.steps)
    for value in walk_values(program):
        root = aliases.root(value)
        first[root] = min(first.get(root, end), born[value])
        uses = (when[s] for s in aliases.uses.get(value, ()))
        final = end if value in program.returned else max(uses, default=born[value])
        last[root] = max(last.get(root, -1), final)
    roots = list(first)
    lives = {k: Lifetime(_nbytes(root, aliases), first[root], last[root]) for k, root in enumerate(roots)}
    offsets, total = place(lives)
    return {root: offsets[k] for k, root in enumerate(roots)}, total


def _nbytes(root: Value, aliases: Aliases) -> int:
    layout = aliases.layout(root)
    return max(layout.size(root.shape) * (layout.storage or root.dtype).itemsize, 1)


def _constant_bytes(program: Program) -> int:
    """The bytes of the constants that steps take; those that share memory count once."""
    found: dict[object, int] = {}
    for value in (v for s in program.steps for v in s.inputs):
        if value.source is not None:
            root = value.source.root
            found[root.place or root] = root.nbytes
    return sum(found.values())
