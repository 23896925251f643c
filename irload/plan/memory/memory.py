"""The memory of a program: offsets of all values in one arena, planned from the lifetimes of the values."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.compressed import compressed
from irload.plan.ir.program import Program, Value, walk_values
from irload.plan.ir.steps import GatherStep, MatMulStep
from irload.plan.ir.strides import Strided
from irload.plan.memory.aliases import Aliases
from irload.plan.memory.arena import Lifetime, aligned_bytes, assign_offsets
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests
from irload.safety.limits import DEFAULT, Limits


class Memory:
    """The positions of all values of a program that are not constant, and the arena that contains them."""

    def __init__(self, program: Program, requests: MemoryRequests | None = None, limits: Limits = DEFAULT) -> None:
        self._aliases = Aliases(program, requests or MemoryRequests())
        self._arrays: dict[Value, Array] = {}
        lives = lifetimes(program, self._aliases)
        offsets, total = assign_offsets(dict(enumerate(lives.values())))
        self._starts = {root: offsets[k] for k, root in enumerate(lives)}
        limits.require(
            "peak_bytes", total + constant_bytes(program), "the plan's constants and activations are too large"
        )
        self.arena = aligned_bytes(max(total, 1))

    @property
    def nbytes(self) -> int:
        """The size of the arena in bytes."""
        return self.arena.size

    def layout(self, value: Value) -> Layout:
        """Return the layout that a value has as a root."""
        return self._aliases.layout(value)

    def is_view(self, value: Value) -> bool:
        """True for the result of a view step that needs no copy."""
        return self._aliases.alias(value) is not None

    def source(self, value: Value) -> Value | None:
        """Return the value of which this one is an alias, or None for a root."""
        alias = self._aliases.alias(value)
        return None if alias is None else alias.source

    def root(self, value: Value) -> Value:
        """Return the root whose buffer holds a value."""
        return self._aliases.root(value)

    def array(self, value: Value) -> Array:
        """Return the value as a view of the arena in its logical shape; for a constant, its array."""
        if value.source is not None:
            return value.source.array
        if value not in self._arrays:
            self._arrays[value] = self._array(value, self._aliases.strided(value))
        return self._arrays[value]

    def buffer(self, root: Value) -> Array:
        """Return the bytes of a root's buffer."""
        start = self._starts[root]
        return self.arena[start : start + _nbytes(root, self._aliases)]

    def _array(self, value: Value, strided: Strided) -> Array:
        root = self.root(value)
        dtype = self._aliases.stored_dtype(root)
        offset = self._starts[root] + strided.offset * dtype.itemsize
        strides = tuple(s * dtype.itemsize for s in strided.strides)
        return np.ndarray(strided.shape, dtype, self.arena, offset, strides)


def lifetimes(program: Program, aliases: Aliases) -> dict[Value, Lifetime]:
    """Return the lifetime of each root's buffer."""
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
    return {root: Lifetime(_nbytes(root, aliases), first[root], last[root]) for root in first}


def _nbytes(root: Value, aliases: Aliases) -> int:
    layout = aliases.layout(root)
    return max(layout.nbytes or layout.size(root.shape) * aliases.stored_dtype(root).itemsize, 1)


def constant_bytes(program: Program) -> int:
    """The bytes of all constants that steps read; constants that share memory count once."""
    sizes: dict[object, int] = {}
    for step, value in ((s, v) for s in program.steps for v in s.inputs):
        if value.source is not None:
            root = value.source.root
            form = compressed(root) if isinstance(step, MatMulStep | GatherStep) else None
            nbytes = root.nbytes if form is None else form.nbytes
            sizes[root.byte_range or root] = max(nbytes, sizes.get(root.byte_range or root, 0))
    return sum(sizes.values())
