"""Panels of compressed weights, widened into scratch memory that stays in the cache while tiles of data pass."""

from __future__ import annotations

from math import gcd
from typing import Any

from irload.plan.backends.llvm.builder import Function, Pointer
from irload.plan.backends.llvm.elements import F32, SIZES, WORD
from irload.plan.backends.llvm.widening import Panel
from irload.record import record


@record()
class WidenedPart:
    """`rows` elements of the sum of a panel, in f32: [row, column]. Rows are padded to whole words."""

    panel: Panel
    rows: int

    @property
    def nbytes(self) -> int:
        """The bytes of the widened part."""
        members = self.panel.compression.members
        return -(-self.rows // members) * members * self._row

    @property
    def _row(self) -> int:
        return self.panel.columns * SIZES[F32]

    @property
    def _segment(self) -> int:
        """Elements of the sum that are in one part and in one group."""
        return gcd(self.rows, self.panel.compression.group or self.rows)

    def write(self, f: Function) -> None:
        """Write the code of a function of the `panel`, the memory `to` write, and the number of the `part`."""
        form, segment = self.panel.compression, self._segment
        members, width = form.members, self.panel.width
        words = -(-segment // members)
        first = f["part"] * self.rows if self.rows < self.panel.length else 0
        begin = f["panel"] + first // members * width
        for index in f.range(0, self.rows // segment):
            group = (first + index * segment) // form.group if form.group else 0
            columns = range(0, self.panel.columns, f.lanes)
            apply = [self.panel.factors(f, f["panel"], group, column) for column in columns]
            source, target = begin + index * (words * width), f["to"] + index * (segment * self._row)
            for at in f.range(0, words):
                here, to = source + at * width, target + at * (members * self._row)
                self._write_row(f, here, to, apply)

    def _write_row(self, f: Function, source: Pointer, target: Pointer, apply: list[Any]) -> None:
        """A row of words: some consecutive rows of the result."""
        widening = self.panel.compression.widening
        for k, column in enumerate(range(0, self.panel.columns, f.lanes)):
            word = f.load(source, column * WORD, align=f.target.bytes, element="i32")
            for member in range(widening.members):
                value = apply[k](widening.widen(f, word, member))
                f.store(value, target, member * self._row + column * SIZES[F32])
