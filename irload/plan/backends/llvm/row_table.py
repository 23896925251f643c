"""Segments bound to a shape. To bind another shape, array operations write the words that differ into the table."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from irload.plan.backends.base import BoundSizes
from irload.plan.backends.llvm.executable import BoundKernels, bundled
from irload.plan.backends.llvm.launching import TableForm
from irload.plan.backends.llvm.parts import TEMPORARY_BYTES, Words
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Step


class BoundTable(BoundKernels):
    """A segment bound to a shape. `steps`: its symbolic steps; `words`: the numbers of each group of its parts."""

    def __init__(
        self, steps: Sequence[Step], form: TableForm, words: Sequence[Words], target: Target, sizes: BoundSizes
    ) -> None:
        super().__init__(steps, form, words, sizes.addresses, target, sizes.working, sizes.memory.arena)

    def at(self, changed: Sequence[int], words: Sequence[Words], sizes: BoundSizes) -> BoundTable | None:
        """The table for another shape; None if its temporary memory is too small.

        `changed`: the groups whose words differ, or whose memory has moved; `words`: of all groups.
        """
        numbers = [words[k] for k in changed]
        temporary = max((group_numbers[TEMPORARY_BYTES] for group_numbers in numbers), default=0)
        if sizes.working("temporary", temporary) is not self._rows.temporary:
            return None
        table = self if sizes.replaces else self._copied()
        table._update(changed, words, numbers, sizes)
        return table

    def _copied(self) -> BoundTable:
        other = copy(self)
        other._rows = self._rows.copied()
        other.table = self.table.like(other._rows.rows, (other._rows, self._keep))
        return other

    def _update(
        self, changed: Sequence[int], words: Sequence[Words], numbers: Sequence[Words], sizes: BoundSizes
    ) -> None:
        self.words = words
        rows, table = self._rows, self.table
        rows.update(self.form.words_of(changed, numbers), numbers, sizes.addresses)
        self.calls = bundled(rows.flops, self.form.ranges)
        table.set_scratch(rows.stride, sizes.working("scratch", rows.stride * table.threads))
        if table.threads > 1:
            table.set_rows(rows.rows)
