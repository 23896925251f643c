"""The memory of a traced plan, and its bindings to shapes. A workspace runs one inference at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.memory.arena import Lifetime, aligned_bytes, assign_offsets
from irload.plan.traced.binding import BoundPlan, ShapeBinding
from irload.plan.traced.template import Template

SHAPES = 64
"""Maximum number of shapes to which the plan stays bound; the least recently used are dropped."""

DOUBLED_ROOM = 1.25
"""Buffers for doubled symbols are allocated if they take at most this factor times the bytes for rounded-up symbols.

This is the case if few buffers depend on the symbols, for example on the length of a KV cache.
"""


class Workspace:
    """One arena for all shapes. Its buffers have room for larger shapes than the ones bound so far.

    When a shape does not fit, buffers are assigned again for the values of its symbols rounded up, or doubled.
    """

    def __init__(self, template: Template) -> None:
        self.template = template
        self.capacities: Array = np.zeros(len(template.lives), np.int64)
        """The bytes of each root's buffer."""
        self.starts = self.capacities
        self.arena = aligned_bytes(1)
        self._bound: OrderedDict[tuple[int, ...], BoundPlan] = OrderedDict()
        self._latest: BoundPlan | None = None
        self._working: dict[object, Array] = {}

    @property
    def nbytes(self) -> int:
        """The bytes of the arena and of working memory."""
        return self.arena.size + sum(a.size for a in self._working.values())

    def bound(self, symbols: tuple[int, ...], external: Sequence[int] | Array = ()) -> BoundPlan | None:
        """Return the plan that is bound to these values of the symbols, or None if there is no such binding.

        `external`: the addresses of memory outside the arena: of variables that grow or are read in place.
        """
        plan = self._bound.get(symbols)
        if plan is None or not np.array_equal(plan.external, external):
            return None
        self._bound.move_to_end(symbols)
        return plan

    def bind(self, symbols: tuple[int, ...], external: Sequence[int] | Array = ()) -> BoundPlan:
        """Bind the plan to values of the symbols for which the guards hold. Raises LimitExceeded."""
        numbers = self.template.numbers.evaluate(symbols)
        sizes = self.template.root_sizes(numbers)
        if (sizes > self.capacities).any():
            self._grow(symbols, numbers, sizes)
        previous, self._latest = self._latest, None
        if self.template.growth is not None:
            self._bound.clear()  # the new binding changes the executables of the previous one
        plan = self._latest = self._bound[symbols] = ShapeBinding(self, symbols, numbers, external, previous).plan()
        if len(self._bound) > SHAPES:
            self._bound.popitem(last=False)
        return plan

    def working(self, name: object, nbytes: int) -> Array:
        """Return at least `nbytes` of memory, the same for equal names. Existing bindings keep the memory they use."""
        memory = self._working.get(name)
        if memory is None or memory.size < nbytes:
            memory = self._working[name] = aligned_bytes(rounded_up(max(nbytes, 64)))
        return memory

    def _grow(self, symbols: Sequence[int], numbers: Sequence[int], sizes: Array) -> None:
        """Assign offsets again, with room for sizes that are rounded up, as far as the limits allow."""
        template = self.template
        limits, rest = template.options.limits, template.constant_bytes(numbers)
        self._bound.clear()  # before the allocation, which may reuse the memory of the bindings
        self._latest = None
        self.capacities = np.maximum(sizes, self.capacities)
        rounded = self._with_room([rounded_up(n) for n in symbols])
        doubled = self._with_room([2 * n for n in symbols])
        self.capacities = doubled if doubled.sum() <= DOUBLED_ROOM * rounded.sum() else rounded
        starts, total = self._placed()
        if limits.peak_bytes is not None and total + rest > limits.peak_bytes:
            self.capacities = sizes
            starts, total = self._placed()
        limits.require("peak_bytes", total + rest, "the plan's constants and activations are too large")
        self.starts = np.array([starts[k] for k in range(len(starts))], np.int64)
        if self.arena.size < total:
            self.arena = aligned_bytes(max(total, 1))

    def _with_room(self, symbols: Sequence[int]) -> Array:
        """Return the buffer sizes for these values of the symbols, at least the current capacities."""
        sizes = self.template.root_sizes(self.template.numbers.evaluate(symbols))
        return np.maximum(sizes, self.capacities)

    def _placed(self) -> tuple[dict[int, int], int]:
        lives = enumerate(zip(self.capacities.tolist(), self.template.lives.values(), strict=True))
        return assign_offsets({k: Lifetime(size, life.first, life.last) for k, (size, life) in lives})


def rounded_up(size: int) -> int:
    """Round up to three significant bits: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, …."""
    step = 1 << max(size.bit_length() - 3, 0)
    return -(-size // step) * step
