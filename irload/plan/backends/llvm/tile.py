"""The microkernel of products: a tile of rows × vectors held in registers over the whole sum.

Rows are pixels of a convolution or rows of a matrix; their elements are broadcast. Columns are channels, whose weights
are packed into panels of vectors in the order of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import gcd, prod
from typing import Any

from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.dot import FMA, Dot
from irload.plan.backends.llvm.elements import F32, I32, WORD
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.backends.llvm.tuning import L2_RATE, TAIL_GAIN, UNROLL
from irload.plan.backends.llvm.widening import Panel
from irload.record import record


@record()
class Level:
    """One loop of the sum: `count` turns, `x` bytes apart in the data.

    `windows`: for loops over the taps of a convolution, the windows that outputs read. `axis`: where turns may fall
    into padding, the axis of the output that decides it: an outer one by position, −1 for the columns of a tile; None
    where all turns are within the data.
    """

    count: int
    x: int
    axis: int | None = None
    windows: WindowAxis | None = None

    @property
    def read(self) -> int:
        """The turns for one output whose data no neighbouring output reads, about."""
        return min(self.count, self.windows.stride) if self.windows and self.windows.size else self.count


@record()
class TileRow:
    """One row of a tile: the offset of its data in bytes, and its valid turns of the level of columns."""

    x: int
    valid: range | None = None


@record()
class RegisterTile:
    """Rows × `vectors` columns. The weights are stored in panels of `panel` vectors, each with all elements of the sum.

    `ahead`: cache lines of each later panel that a turn of the innermost loop prefetches, a few at a time: a burst
    would occupy all line-fill buffers. An element of the sum is a word of the `dot`.

    If the dot's weights are compressed in groups, the first of two levels are the groups.
    """

    rows: tuple[TileRow, ...]
    vectors: int
    panel: int
    levels: tuple[Level, ...]
    ahead: int = 0
    dot: Dot = FMA

    @property
    def length(self) -> int:
        """The elements of the whole sum."""
        return prod(level.count for level in self.levels)


class _Sum:
    """Emits the loops of one tile."""

    def __init__(self, f: Function, tile: RegisterTile, bounds: dict[int, tuple[AnyInt, AnyInt]]) -> None:
        self.f = f
        self.tile = tile
        self.bounds = bounds
        columns, dot = tile.panel * f.lanes, tile.dot
        self.width = columns * WORD
        """The bytes of a row of words in a panel."""
        self.panel = dot.nbytes(tile.length, columns)
        """The bytes of a panel."""
        self.compressed = None if dot.weights is None else Panel(dot.weights, tile.length, columns)
        self.apply: list[Callable[[Vec], Vec]] = []
        """For each vector of compressed weights, the function that applies scale and zero point."""
        self.loaded: dict[tuple[int, int], Vec] = {}
        """Words of compressed weights in the current turn, by row and vector."""

    def level(self, k: int, x: Pointer, w: Pointer, state: list[Any], rows: Sequence[int]) -> list[Any]:
        """The pointer to later weights, and the sums of the tile, after the loops from `k` inwards for those rows."""
        levels = self.tile.levels
        if k == len(levels):
            return self._element(x, w, 0, 0, state, rows)
        level = levels[k]
        if level.axis == -1 and any(self.tile.rows[r].valid != range(level.count) for r in rows):
            return self._edge(k, x, w, state, rows)
        whole = k not in self.bounds
        if k == len(levels) - 1 and whole:
            return self._run(level.count, level.x, x, w, state, rows)
        if k == len(levels) - 2 and whole:
            after = levels[k + 1]
            if after.axis is None and level.x == after.count * after.x and self.compressed is None:
                return self._run(level.count * after.count, after.x, x, w, state, rows)
        first, last = self.bounds.get(k, (0, level.count))
        return self._turns(k, first, last, x, w, state, rows)

    def enter(self, w: Pointer, group: AnyInt) -> None:
        """Begin a group of compressed weights. `w`: the first panel."""
        if self.compressed is not None:
            places = [self._place(v) for v in range(self.tile.vectors)]
            self.apply = [self.compressed.factors(self.f, w + panel, group, column) for panel, column in places]

    def _place(self, v: int) -> tuple[int, int]:
        """The offset of the panel that has a vector of weights, and its first column there."""
        panel, at = divmod(v, self.tile.panel)
        return panel * self.panel, at * self.f.lanes

    def _turns(
        self, k: int, first: AnyInt, last: AnyInt, x: Pointer, w: Pointer, state: list[Any], rows: Sequence[int]
    ) -> list[Any]:
        """A loop of level `k`, with all levels within it."""
        step = self.tile.levels[k].x
        inner = prod(each.count for each in self.tile.levels[k + 1 :]) // self.tile.dot.members * self.width
        panel, x, w = w, x + first * step, w + first * inner
        if isinstance(first, int) and last == first + 1:
            return self.level(k + 1, x, w, state, rows)

        carried = [x, w, *state]
        for turn in self.f.range(first, last, 1, carried):
            xs, ws, *own = carried
            self.enter(panel, turn)
            carried[:] = [xs + step, ws + inner, *self.level(k + 1, xs, ws, own, rows)]
        return carried[2:]

    def _edge(self, k: int, x: Pointer, w: Pointer, state: list[Any], rows: Sequence[int]) -> list[Any]:
        """The turns of columns at an edge: each run of turns that the same rows take is a loop."""
        count = self.tile.levels[k].count
        valid = {r: self.tile.rows[r].valid for r in rows}
        reading = [[r for r, turns in valid.items() if turns is None or turn in turns] for turn in range(count)]
        first = 0
        for last in range(1, count + 1):
            if last == count or reading[last] != reading[first]:
                if reading[first]:
                    state = self._turns(k, first, last, x, w, state, reading[first])
                first = last
        return state

    def _run(self, count: int, stride: int, x: Pointer, w: Pointer, state: list[Any], rows: Sequence[int]) -> list[Any]:
        """The innermost loop: elements of the data `stride` bytes apart."""
        members = self.tile.dot.members
        turn = max(UNROLL, members)
        whole = count // turn * turn if count > 2 * turn else 0
        asked = [
            panel * self.panel + LINE * line
            for panel in range(-(-self.tile.vectors // self.tile.panel))
            for line in range(self.tile.ahead)
        ]
        carried = [x, w, *state]
        for _ in self.f.range(0, whole, turn, carried) if whole else ():
            xs, ws, *own = carried
            self.loaded = {}
            for u in range(turn):
                for place in asked[u::turn]:
                    self.f.prefetch(own[0], place)
                own = self._element(xs, ws, u * stride, u, own, rows)
            if self.tile.ahead:
                own[0] = own[0] + LINE * self.tile.ahead
            carried[:] = [xs + turn * stride, ws + turn // members * self.width, *own]
        x, w, *state = carried
        self.loaded = {}
        for u in range(count - whole):
            state = self._element(x, w, u * stride, u, state, rows)
        return state

    def _element(self, x: Pointer, w: Pointer, offset: int, k: int, state: list[Any], rows: Sequence[int]) -> list[Any]:
        f, tile = self.f, self.tile
        state = list(state)
        weights = [self._weights(w, k, v) for v in range(tile.vectors)]
        for r in rows:
            element = f.broadcast(x, tile.rows[r].x + offset)
            for v in range(tile.vectors):
                at = 1 + r * tile.vectors + v
                state[at] = tile.dot.multiply(f, state[at], element, weights[v])
        return state

    def _weights(self, w: Pointer, k: int, v: int) -> Vec:
        """A vector of weights of element `k` of a turn."""
        panel, column = self._place(v)
        row, member = divmod(k, self.tile.dot.members)
        word = self.loaded.get((row, v))
        if word is None:
            offset = panel + row * self.width + column * WORD
            kind = F32 if self.compressed is None else I32
            word = self.f.load(w, offset, align=self.f.target.bytes, element=kind)
        if self.compressed is None:
            return word
        self.loaded[row, v] = word
        return self.apply[v](self.compressed.compression.widening.widen(self.f, word, member))


def write_sums(
    f: Function,
    tile: RegisterTile,
    x: Pointer,
    w: Pointer,
    bounds: dict[int, tuple[AnyInt, AnyInt]],
    ahead: Pointer | None = None,
    start: Sequence[Vec] = (),
) -> list[Vec]:
    """Emit the sums of a tile: vectors in the order row by row.

    `bounds`: the turns of levels that do not run completely. `ahead`: the address of the weights to prefetch.
    `start`: the initial sums, zeros by default.
    """
    sums = start or [tile.dot.zero(f)] * (len(tile.rows) * tile.vectors)
    found = _Sum(f, tile, bounds)
    if len(tile.levels) == 1:
        found.enter(w, 0)
    return found.level(0, x, w, [ahead or w, *sums], range(len(tile.rows)))[1:]


@lru_cache(1024)
def tile_shape(
    target: Target, rows: int, channels: int, panel: int = 1, pitch: int = LINE, widest: int = 32, dot: Dot = FMA
) -> tuple[int, int]:
    """Rows and vectors of the tiles that take the fewest cycles for a number of rows and channels.

    An element of the sum takes one cycle for two loads, or for the products that the `dot` starts per cycle (two FMAs),
    plus the `load` of the target, and at least the latency of a sum: four for FMAs, if there are fewer than eight sums.
    Weights come from the second level of the cache; so do the data if their rows, `pitch` bytes apart, share too few
    sets of the first level, where streamed weights need two ways of a set. Vectors are a multiple of `panel` if there
    are enough channels, and `widest` at most.
    """
    vectors = -(-channels // target.lanes)
    panel = min(panel, vectors)
    registers = target.registers - dot.cost.registers
    shapes = [
        (r, v)
        for v in range(panel, min(vectors, registers, widest) + 1, panel)
        for r in range(1, min(rows, registers) + 1)
        if r * v + v + 1 <= registers or (r == 1 and v + 4 <= registers)
    ]

    sets = target.page // gcd(pitch, target.page)

    def streamed(height: int, width: int) -> int:
        """Bytes from the second level for an element of the sum."""
        return width * target.bytes + (height * LINE if height > (target.ways - 2) * sets else 0)

    def element(height: int, width: int) -> float:
        """Cycles of an element of the sum."""
        loads = height + width
        products = height * width / dot.cost.products + height * dot.cost.row + width * dot.cost.vector
        return max(products + loads * target.load, loads / 2, streamed(height, width) / L2_RATE, dot.cost.latency)

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
        return cycles * (TAIL_GAIN if vectors % v else 1), -r * v

    return min(shapes, key=cost)
