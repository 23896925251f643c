"""The 36 matrix products of Winograd's algorithm: [tiles, depth] by [depth, channels], in scratch memory.

They are not `Product` kernels, since a block of tiles is transformed, multiplied and transformed back in the cache.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from irload.core.size import largest
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.kernels.loops import tail_key
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tile import RegisterTile, SumLevel, write_sums
from irload.plan.backends.llvm.tuning import UNROLL
from irload.record import record


@record()
class WinogradProducts:
    """The products of a block of any number of tiles, divided into register tiles of `rows` and `rows` − 1 rows.

    The code reads `depth` and `channels`.

    `rows` × `vectors`: the register tile. `spread`: the number of register tiles, at most two, that prefetch parts of
    the next panel; a single burst would occupy all line fill buffers.
    """

    lanes: int
    depth: int
    channels: int
    rows: int
    vectors: int
    spread: int

    @property
    def code(self) -> WinogradProducts:
        """The key of the code: the tails of the depth and of the channels, and whether there are whole vectors."""
        return replace(self, depth=tail_key(self.depth, self.lanes), channels=tail_key(self.channels, self.lanes))

    @property
    def deep(self) -> int:
        """The number of f32 per row of transformed inputs: the depth, padded to whole vectors."""
        return (self.depth + (self.lanes - 1)) // self.lanes * self.lanes

    @property
    def wide(self) -> int:
        """The number of f32 per row of sums: the channels, padded to whole panels."""
        panel = self.vectors * self.lanes
        return (self.channels + (panel - 1)) // panel * panel

    @property
    def _prefetch_lines(self) -> int:
        """Cache lines of the next panel that each iteration of a register tile prefetches."""
        return -(-UNROLL * self.vectors * self.lanes * 4 // (LINE * self.spread))

    def _write_tile(self, f: Function, rows: int) -> None:
        """Write the function of a register tile."""
        data = [f["x"] + k * f["deep"] for k in range(rows)]
        levels = (SumLevel(f["depth"], 4),)
        tile = RegisterTile(rows, 0, self.vectors, self.vectors, levels, self._prefetch_lines, turn=UNROLL)
        for k, value in enumerate(write_sums(f, tile, data, f["w"], {}, f["ahead"])):
            row, vector = divmod(k, self.vectors)
            f.store(value, f["y"] + row * f["wide"], vector * f.target.bytes)

    def write(
        self, f: Function, pointers: tuple[Pointer, Pointer, Pointer], pitches: tuple[AnyInt, AnyInt], count: AnyInt
    ) -> None:
        """Multiply the matrices of `count` tiles, `pitches` bytes apart. Pointers: inputs, weights, sums."""
        x, w, y = pointers
        width = self.vectors * self.lanes * 4
        deep, wide = self.deep * 4, self.wide * 4
        groups, panel_bytes = wide // width, self.depth * width
        lines = (count + self.rows - 1) // self.rows
        taller = f.maximum(count - lines * self._lower, 0)
        prefetched = self.depth // UNROLL * self._prefetch_lines * LINE
        for index in f.range(0, 36 * groups):
            matrix, group = divmod(index, groups)
            data, weights = x + matrix * pitches[0], w + index * panel_bytes
            target = y + (matrix * pitches[1] + group * width)
            for rows, first, last in ((self.rows, 0, taller), (self._lower, taller, lines)):
                for line in f.range(first, last):
                    at = line * rows + (taller if rows < self.rows else 0)
                    ahead = weights + (line * prefetched + panel_bytes)
                    places = {"x": data + at * deep, "w": weights, "ahead": ahead, "y": target + at * wide}
                    places |= {"depth": self.depth, "deep": deep, "wide": wide}
                    f.call(f"product{rows}", places, partial(self._write_tile, rows=rows))

    @property
    def _lower(self) -> int:
        return max(self.rows - 1, 1)


def filled(tiles: int, rows: int) -> int:
    """The smallest number of tiles ≥ `tiles` that can be divided into register tiles of `rows` and `rows` − 1 rows."""
    return largest(tiles, -(-tiles // rows) * (rows - 1))
