"""Contractions by tiles of AMX: the blocking. Groups of consecutive blocks share a panel of weights in the cache."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from math import prod
from typing import Self

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.kernel import Streamed
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.contraction.nest import SHARE_PANELS, Contraction
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tuning import TILE_AHEAD, TILE_DATA, TILE_NEAR, TILE_PANEL
from irload.record import record


@record()
class TileBlocks(Contraction):
    """The blocking of a contraction by tiles of AMX.

    A unit is a block of sums: `height` strips of `rows` columns by a panel of `width` tiles of channels. The sum has
    one step per tap and chunk of 32 channels in bf16. `taps`: for each tap, the offset in bytes from the row of x of an
    output to the row that the tap multiplies. Weights are in panels [chunk, tap, tile, 16 pairs of channels of x, 16
    channels of y, 2]. Outer axes with separate weights come first. The last strip of a line overlaps the previous one
    if `rows` does not divide the columns.

    The code reads the size of the first outer axis with separate weights and of the first one without, or the columns
    if each outer axis has separate weights. Compiled in are the other outer sizes and the columns of each line
    (divisions by constants), channels, chunks, taps, and `fixed`.
    """

    chunks: Chunks
    taps: tuple[int, ...]
    height: int
    width: int
    fixed: int | None = None
    """Cache lines of later weights that each step prefetches; 0 if the code reads this number. Set by `code`."""

    @property
    def code(self) -> Self:
        sizes = tuple(0 if k in (0, self.separate_axes) else size for k, size in enumerate(self.outer))
        columns = self.columns if len(sizes) > self.separate_axes else 0
        return replace(self, outer=sizes, columns=columns, fixed=self.lines_fixed)

    @property
    def numbers(self) -> tuple[int, ...]:
        last_column = self.columns - self.rows
        return self.units, self.panels, self.blocks, self._strips - 1, last_column, self.group, self._lines

    @property
    def sizes(self) -> int:
        return 7

    @property
    def units(self) -> int:
        return prod(self.outer[: self.separate_axes]) * self.blocks

    @property
    def panels(self) -> int:
        return -(-self.channels // self.packed_channels)

    @property
    def matrix_bytes(self) -> int:
        return self.panels * self.panel_bytes

    @property
    def panel_bytes(self) -> int:
        """The bytes of a panel."""
        return self.steps * self.step_bytes

    @property
    def step_bytes(self) -> int:
        """The bytes of weights of a step."""
        return self.width * tiles.NBYTES

    @property
    def steps(self) -> int:
        """The steps of a sum: the rows of x that are multiplied for one row of sums."""
        return self.chunks.count * len(self.taps)

    @property
    def packed_channels(self) -> int:
        return self.width * tiles.ROWS

    @property
    def line(self) -> int:
        """Strips of one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def separate_axes(self) -> int:
        """The number of outer axes with separate weights."""
        return sum(stride != 0 for stride in self.weights)

    @property
    def _strips(self) -> int:
        """Strips that share their weights."""
        return prod(self.outer[self.separate_axes :]) * self.line

    @property
    def blocks(self) -> int:
        """Blocks of sums, along columns, that share their weights."""
        return -(-self._strips // self.height)

    @property
    def is_near(self) -> bool:
        """True if all weights stay in the L1 cache."""
        return self.matrix_bytes <= TILE_NEAR

    @property
    def group(self) -> int:
        """The number of consecutive blocks that use one panel before the next panel. Their data fit into the cache.

        All blocks are one group if reading their data again for each panel takes less time than reading the weights
        again for each group.
        """
        if self.is_near:
            return 1
        most = max(1, bisect_right(range(1, self.blocks + 1), TILE_DATA, key=self.reads))
        weights = (-(-self.blocks // most) - 1) * self.matrix_bytes
        data = (self.panels - 1) * self.reads(self.blocks)
        return self.blocks if self.panel_bytes <= TILE_PANEL and data < weights else most

    def reads(self, blocks: int) -> int:
        """An upper bound of the bytes of data that the first `blocks` blocks read; overlapping windows count once."""
        strips = blocks * self.height
        columns, lines = min(self.columns, strips * self.rows), -(-strips // self.line)
        span = max(self.taps) - min(self.taps) + (columns - 1) * self.x.column + tiles.BYTES
        separate = 1  # parts without common data, such as samples
        for size, stride in reversed([*zip(self.outer, self.x.outer, strict=True)][self.separate_axes :]):
            if stride > span + self.chunks.last:
                separate *= min(lines, size)
            else:
                span += (min(lines, size) - 1) * stride
            lines = -(-lines // size)
        chunk = min(span, -(-strips // separate) * self.rows * len(self.taps) * tiles.BYTES)
        return separate * min(chunk * self.chunks.count, span + self.chunks.last)

    @property
    def ahead_bytes(self) -> int:
        return 0 if self.is_near else self.early * self.step_bytes

    @property
    def early(self) -> int:
        """The steps between prefetching weights and reading them: a whole panel, if several blocks use it."""
        return min(self.steps, TILE_AHEAD // self.step_bytes) if self.alone else self.steps

    @property
    def streamed(self) -> Streamed:
        return Streamed(1, self.weight_bytes, self.panels if self.shared == SHARE_PANELS else 1)

    @property
    def _lines(self) -> int:
        """Cache lines of later weights that each step prefetches."""
        return 0 if self.is_near else -(-self.step_bytes // LINE // self.group)

    @property
    def lines_fixed(self) -> int:
        """The number of lines that a step prefetches, if it is a constant of the code; otherwise 0.

        It is a constant if one block, or many blocks, use a panel. A loop over a number that the code reads takes 5 %
        of the time.
        """
        if self.fixed is not None:
            return self.fixed
        return self._lines if self._lines in (1, 2, self.step_bytes // LINE) else 0

    @property
    def alone(self) -> bool:
        """True if no two consecutive blocks use the same panel."""
        return self.is_near or self.lines_fixed == self.step_bytes // LINE
