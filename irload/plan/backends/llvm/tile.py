"""The microkernel of products: a tile of rows × vectors held in registers over the whole sum.

Rows are pixels of a convolution or rows of a matrix; their elements are broadcast. Columns are channels, whose weights
are packed into panels of vectors in the order of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd, prod

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.dots import dot
from irload.plan.backends.llvm.target import LINE, Target
from irload.record import record

UNROLL = 4
"""Elements of the sum that one turn of the innermost loop takes."""

STREAM = 24
"""Bytes that a core reads from the second level of its cache in a cycle."""
REST = 1.03
"""What tiles must save whose last vectors of a row, which are fewer, take code of their own."""
PAGE = 4096
"""Bytes after which addresses share a set of the first level of the cache again."""


@record()
class Level:
    """One loop of the sum: `count` turns, `x` bytes apart in the data.

    `axis`: where turns may fall into padding, the axis of the output that decides it: an outer one by position, −1 for
    the columns of a tile; None where all turns are within the data. Turn k of output o reads position
    o·step + k·dilation − begin of `size`.
    """

    count: int
    x: int
    axis: int | None = None
    step: int = 1
    dilation: int = 1
    begin: int = 0
    size: int = 0

    def valid(self, o: int) -> tuple[int, int]:
        """The turns first…last−1 that read data for output o."""
        found = [k for k in range(self.count) if 0 <= o * self.step + k * self.dilation - self.begin < self.size]
        return (found[0], found[-1] + 1) if found else (0, 0)

    def bounds(self, f: Function, o: Int) -> tuple[Int, Int]:
        """`valid` for an output that is known when it runs."""
        base = f.subtract(f.multiply(o, self.step), self.begin)
        first, last = f.maximum(f.subtract(0, base), 0), f.maximum(f.subtract(self.size, base), 0)
        if self.dilation > 1:
            first = f.divide(f.add(first, self.dilation - 1), self.dilation)
            last = f.divide(f.add(last, self.dilation - 1), self.dilation)
        return f.minimum(first, self.count), f.minimum(last, self.count)


@record()
class Row:
    """One row of a tile: the bytes from the tile's data to its own, and its valid turns of the level of columns."""

    x: int
    valid: tuple[int, int] | None = None


@record()
class Tile:
    """Rows × `vectors` columns. The weights lie in panels of `panel` vectors, each with all elements of the sum.

    `ahead`: cache lines of each panel needed later that each turn of the innermost loop asks for, a few at a time, or
    they take all buffers that loads wait for. `pairs`: an element of the sum is two bf16 beside each other, of data and
    of weights, multiplied by AVX512_BF16.
    """

    rows: tuple[Row, ...]
    vectors: int
    panel: int
    levels: tuple[Level, ...]
    ahead: int = 0
    pairs: bool = False

    @property
    def length(self) -> int:
        """The elements of the whole sum."""
        return prod(level.count for level in self.levels)


class _Sum:
    """Emits the loops of one tile."""

    def __init__(self, f: Function, tile: Tile, bounds: dict[int, tuple[Int, Int]]) -> None:
        self.f = f
        self.tile = tile
        self.bounds = bounds
        self.width = tile.panel * f.target.bytes
        """The bytes of one element of the sum in a panel."""

    def level(self, k: int, x: Value, w: Value, state: list[Value], rows: Sequence[int]) -> list[Value]:
        """The pointer to later weights, and the sums of the tile, after the loops from `k` inwards for those rows."""
        levels = self.tile.levels
        if k == len(levels):
            return self._element(x, w, 0, 0, state, rows)
        level = levels[k]
        if level.axis == -1 and any(self.tile.rows[r].valid != (0, level.count) for r in rows):
            return self._edge(k, x, w, state, rows)
        whole = k not in self.bounds
        if k == len(levels) - 1 and whole:
            return self._run(level.count, level.x, x, w, state, rows)
        if k == len(levels) - 2 and whole:
            after = levels[k + 1]
            if after.axis is None and level.x == after.count * after.x:
                return self._run(level.count * after.count, after.x, x, w, state, rows)
        first, last = self.bounds.get(k, (0, level.count))
        return self._turns(k, first, last, x, w, state, rows)

    def _turns(
        self, k: int, first: Int, last: Int, x: Value, w: Value, state: list[Value], rows: Sequence[int]
    ) -> list[Value]:
        """A loop of level `k`, with all levels within it."""
        step = self.tile.levels[k].x
        inner = prod(each.count for each in self.tile.levels[k + 1 :]) * self.width
        x, w = self.f.at(x, self.f.multiply(first, step)), self.f.at(w, self.f.multiply(first, inner))
        if isinstance(first, int) and last == first + 1:
            return self.level(k + 1, x, w, state, rows)

        def body(_: Value, carried: list[Value]) -> list[Value]:
            xs, ws, *own = carried
            return [self.f.at(xs, step), self.f.at(ws, inner), *self.level(k + 1, xs, ws, own, rows)]

        return self.f.loop(first, last, 1, body, [x, w, *state])[2:]

    def _edge(self, k: int, x: Value, w: Value, state: list[Value], rows: Sequence[int]) -> list[Value]:
        """The turns of columns at an edge: each run of turns that the same rows take is a loop."""
        count = self.tile.levels[k].count
        reading = [[r for r in rows if _within(turn, self.tile.rows[r].valid)] for turn in range(count)]
        first = 0
        for last in range(1, count + 1):
            if last == count or reading[last] != reading[first]:
                if reading[first]:
                    state = self._turns(k, first, last, x, w, state, reading[first])
                first = last
        return state

    def _run(self, count: int, stride: int, x: Value, w: Value, state: list[Value], rows: Sequence[int]) -> list[Value]:
        """The innermost loop: elements of the data `stride` bytes apart."""
        whole = count // UNROLL * UNROLL if count > 2 * UNROLL else 0

        def body(_: Value, carried: list[Value]) -> list[Value]:
            xs, ws, *own = carried
            asked = [
                panel * self.tile.length * self.width + LINE * line
                for panel in range(-(-self.tile.vectors // self.tile.panel))
                for line in range(self.tile.ahead)
            ]
            for u in range(UNROLL):
                for place in asked[u::UNROLL]:
                    self.f.prefetch(own[0], place)
                own = self._element(xs, ws, u * stride, u, own, rows)
            if self.tile.ahead:
                own[0] = self.f.at(own[0], LINE * self.tile.ahead)
            return [self.f.at(xs, UNROLL * stride), self.f.at(ws, UNROLL * self.width), *own]

        if whole:
            x, w, *state = self.f.loop(0, whole, UNROLL, body, [x, w, *state])
        for u in range(count - whole):
            state = self._element(x, w, u * stride, u, state, rows)
        return state

    def _element(self, x: Value, w: Value, offset: int, k: int, state: list[Value], rows: Sequence[int]) -> list[Value]:
        f, tile = self.f, self.tile
        state = list(state)
        panels = tile.length * self.width
        weights = [
            f.load(w, v // tile.panel * panels + k * self.width + v % tile.panel * f.target.bytes, align=f.target.bytes)
            for v in range(tile.vectors)
        ]
        for r in rows:
            element = f.broadcast(x, tile.rows[r].x + offset)
            for v in range(tile.vectors):
                at = 1 + r * tile.vectors + v
                if tile.pairs:
                    state[at] = dot(f, state[at], element, weights[v])
                else:
                    state[at] = f.fma(weights[v], element, state[at])
        return state


def _within(turn: int, valid: tuple[int, int] | None) -> bool:
    return valid is None or valid[0] <= turn < valid[1]


def write_sums(
    f: Function,
    tile: Tile,
    x: Value,
    w: Value,
    bounds: dict[int, tuple[Int, Int]],
    ahead: Value | None = None,
    start: Sequence[Value] = (),
) -> list[Value]:
    """Emit the sums of a tile: vectors in the order row by row.

    `bounds`: the turns of levels that do not take all of theirs. `ahead`: where the weights lie that are needed later.
    `start`: what is added to, zeros by default.
    """
    sums = start or [f.zero()] * (len(tile.rows) * tile.vectors)
    return _Sum(f, tile, bounds).level(0, x, w, [ahead or w, *sums], range(len(tile.rows)))[1:]


@lru_cache(1024)
def tile_shape(
    target: Target, rows: int, channels: int, panel: int = 1, pitch: int = LINE, widest: int = 32
) -> tuple[int, int]:
    """Rows and vectors of the tiles that take the fewest cycles for so many rows and channels.

    An element of the sum takes a cycle for two FMAs or for two loads, and four where fewer than eight sums are under
    way, as long as one FMA takes, and what the target adds for each load; weights come from the second level of the
    cache, and so do the data where their rows, `pitch` bytes apart, share too few sets of the first one: weights that
    go by need two places of a set. Vectors are a multiple of `panel` where there are as many, and `widest` at most.
    """
    vectors = -(-channels // target.lanes)
    panel = min(panel, vectors)
    shapes = [
        (r, v)
        for v in range(panel, min(vectors, target.registers, widest) + 1, panel)
        for r in range(1, min(rows, target.registers) + 1)
        if r * v + v + 1 <= target.registers or (r == 1 and v + 4 <= target.registers)
    ]

    sets = PAGE // gcd(pitch, PAGE)

    def streamed(height: int, width: int) -> int:
        """Bytes from the second level for an element of the sum."""
        return width * target.bytes + (height * LINE if height > (target.ways - 2) * sets else 0)

    def element(height: int, width: int) -> float:
        """Cycles of an element of the sum."""
        loads = height + width
        return max(height * width / 2 + loads * target.load, loads / 2, streamed(height, width) / STREAM, 4)

    def cost(shape: tuple[int, int]) -> tuple[float, int]:
        r, v = shape
        tiles = -(-rows // r)
        taller = rows % tiles
        heights = [(rows // tiles + 1, taller), (rows // tiles, tiles - taller)]
        widths = [(v, vectors // v), (vectors % v, 1)]
        cycles = sum(
            often * times * element(height, width)
            for height, often in heights
            for width, times in widths
            if often and width
        )
        return cycles * (REST if vectors % v else 1), -r * v

    return min(shapes, key=cost)
