"""The micro-kernel of products: a tile of rows × vectors of accumulators, which stay in registers over the whole sum.

Rows are pixels of a convolution or rows of a matrix; their elements are broadcast. Columns are channels. Their weights
are packed into panels of vectors, in the order of the sum. For each element of the sum, the micro-kernel loads the
vectors of weights, broadcasts one element per row, and multiplies and accumulates all pairs (an outer product).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd, prod
from typing import Any

from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.dot import FMA, Dot
from irload.plan.backends.llvm.elements import F32, I32, WORD
from irload.plan.backends.llvm.intrinsics import load_after, opaque
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.backends.llvm.tuning import L2_RATE, PRODUCTS, TAIL_GAIN, UNROLL
from irload.plan.backends.llvm.widening import CompressedPanel
from irload.record import record

WIDEST = 32
"""Maximum number of vectors of a tile."""


@record()
class SumLevel:
    """One loop of the sum: `count` iterations, `x` bytes apart in the data.

    For loops over the taps of a convolution: `stride`, the stride of the windows; `axis`, the axis of the grid of
    outputs if tiles may cover several lines, or windows may contain padding.

    For code that reads `count` and `x`: `even`, true if the unrolled loop has no tail; `contiguous`, true if `x` is the
    bytes of all iterations of the next level, so that both levels are one loop.
    """

    count: int
    x: int
    axis: int | None = None
    stride: int | None = None
    even: bool = False
    contiguous: bool = False

    def key(self, inner: Sequence[SumLevel], turn: int, *, free: bool) -> SumLevel:
        """The level in the key of code that reads `x`, unless words are contiguous, and `count` if `free`.

        `inner`: the nested levels. `turn`: elements per iteration. A small count of the innermost level is compiled in.
        """
        free = free and (len(inner) > 0 or self.count > 2 * turn)
        return replace(
            self,
            count=ANY if free else self.count,
            x=WORD if not inner and self.x == WORD else ANY,
            even=free and self.count % turn == 0,
            contiguous=len(inner) == 1 and self.x == inner[0].count * inner[0].x,
        )

    @property
    def read(self) -> int:
        """Approximately, the iterations for one output whose data the neighbouring outputs do not read."""
        return self.count if self.stride is None else min(self.count, self.stride)


@record()
class RegisterTile:
    """A tile of `rows` rows by `vectors` vectors. A panel has the weights of `panel` vectors for the whole sum.

    `row`: the row stride of the data in bytes, unless each row has a separate address. `prefetch_lines`: cache lines of
    each later panel that an iteration of the innermost loop prefetches, a few at a time, since a burst would occupy all
    line fill buffers; `advance`: the bytes by which the next iteration prefetches further, by default all lines. An
    element of the sum is a word of the `dot`; `turn`: elements per iteration, by default the result of `unrolled`.

    If the weights are compressed, or the data quantized, in groups, the first of two levels is the loop over groups.
    """

    rows: int
    row: AnyInt
    vectors: int
    panel: int
    levels: tuple[SumLevel, ...]
    prefetch_lines: int = 0
    dot: Dot = FMA
    advance: AnyInt | None = None
    turn: int = 0

    @property
    def length(self) -> int:
        """The number of elements of the whole sum."""
        return prod(level.count for level in self.levels)

    @property
    def elements(self) -> int:
        """The elements of the sum per iteration of the innermost loop."""
        return max(self.turn or unrolled(self.rows, self.vectors), self.dot.members)


def unrolled(rows: int, vectors: int) -> int:
    """The elements of the sum per iteration of a tile."""
    return 2 if 2 * rows * vectors >= PRODUCTS else UNROLL


@record()
class WindowedRows:
    """The windows of the rows of a tile, at any positions on a grid of outputs. Taps outside the data read `zeros`.

    `first`: the position of the first tap of each row along each axis; `sizes`: of the data, None for axes without
    padding; `dilations`: of the windows.
    """

    first: Sequence[Sequence[AnyInt]]
    sizes: Sequence[AnyInt | None]
    dilations: Sequence[int]
    zeros: Pointer


class TileSum:
    """Emits the loops of a tile. The data have one address, or one address per row."""

    def __init__(
        self, f: Function, tile: RegisterTile, bounds: dict[int, tuple[AnyInt, AnyInt]], windows: WindowedRows | None
    ) -> None:
        self.f = f
        self.tile = tile
        self.bounds = bounds
        self.windows = windows
        columns, dot = tile.panel * f.lanes, tile.dot
        self.width = columns * WORD
        """The bytes of a row of words in a panel."""
        self.panel = dot.nbytes(tile.length, columns)
        """The bytes of a panel."""
        self.compressed = None if dot.weights is None else CompressedPanel(dot.weights, tile.length * dot.k, columns)
        self.apply: list[Callable[[Vec], Vec]] = []
        """For each vector of compressed weights, the function that applies scale and zero point."""
        self.loaded: dict[tuple[int, int], Vec] = {}
        """Words of compressed weights in the current iteration, by row and vector."""

    def level(self, k: int, x: list[Pointer], w: Pointer, state: list[Any]) -> list[Any]:
        """Emit the loops of level `k` and the nested levels. Returns the pointer to prefetched weights, then the sums.

        `state`: the pointer and the sums before the loops. `x`: the addresses of the data; `w`: the address of the
        weights.
        """
        levels = self.tile.levels
        if k == len(levels):
            return self._element(self.rows(x), w, 0, 0, state)
        level = levels[k]
        if level.axis is not None and self.windows is not None:
            return self._taps(k, x, w, state, [True] * len(x))
        whole = k not in self.bounds
        if k == len(levels) - 1 and whole:
            return self._run(level.count, level.x, x, w, state, even=level.even)
        if k == len(levels) - 2 and whole and self.compressed is None:
            after = levels[k + 1]
            if level.contiguous and (self.windows is None or after.axis is None):
                return self._run(level.count * after.count, after.x, x, w, state, even=after.even)
        return self._turns(k, x, w, state)

    def enter(self, w: Pointer, group: AnyInt) -> None:
        """Load the scales and zero points of a group of compressed weights. `w`: the address of the first panel."""
        if self.compressed is not None:
            positions = [self.weights_at(v) for v in range(self.tile.vectors)]
            self.apply = [self.compressed.factors(self.f, w + panel, group, column) for panel, column in positions]

    def weights_at(self, v: int) -> tuple[int, int]:
        """The offset of the panel with vector `v` of the weights, and the column of the vector in this panel."""
        panel, at = divmod(v, self.tile.panel)
        return panel * self.panel, at * self.f.lanes

    def _turns(self, k: int, x: list[Pointer], w: Pointer, state: list[Any]) -> list[Any]:
        """Emit the loop of level `k` and the nested levels."""
        (first, last), inner = self.range_of(k)
        step, count = self.tile.levels[k].x, len(x)
        panel, x, w = w, [p + first * step for p in x], w + first * inner
        if isinstance(first, int) and last == first + 1:
            return self.level(k + 1, x, w, state)

        carried = [*x, w, *state]
        for turn in self.f.range(first, last, 1, carried):
            xs, ws, current = carried[:count], carried[count], carried[count + 1 :]
            self.enter(panel, turn)
            carried[:] = [*(p + step for p in xs), ws + inner, *self.level(k + 1, xs, ws, current)]
        return carried[count + 1 :]

    def range_of(self, k: int) -> tuple[tuple[AnyInt, AnyInt], int]:
        """The range of iterations of a level, and the bytes of weights per iteration."""
        levels = self.tile.levels
        inner = prod(each.count for each in levels[k + 1 :]) // self.tile.dot.members * self.width
        return self.bounds.get(k, (0, levels[k].count)), inner

    def _taps(self, k: int, x: list[Pointer], w: Pointer, state: list[Any], inside: list[Any]) -> list[Any]:
        """Emit the loop over the taps along an axis, and the nested levels. `inside`: per row, if it is in the data."""
        f, level = self.f, self.tile.levels[k]
        assert self.windows is not None
        assert level.axis is not None
        windows: WindowedRows = self.windows
        axis, size = level.axis, windows.sizes[level.axis]
        (first, last), inner = self.range_of(k)
        w = w + first * inner

        def turn(at: AnyInt, w: Pointer, state: list[Any]) -> list[Any]:
            rows_inside = list(inside)
            if size is not None:
                firsts = [row[axis] + at * windows.dilations[axis] for row in windows.first]
                rows_inside = [f.integer(n).below(size) & ok for n, ok in zip(firsts, rows_inside, strict=True)]
            moved = [p + at * level.x for p in x]
            if k + 1 < len(self.tile.levels) and self.tile.levels[k + 1].axis is not None:
                return self._taps(k + 1, moved, w, state, rows_inside)
            moved = [f.select(ok, p, windows.zeros) for ok, p in zip(rows_inside, moved, strict=True)]
            return self.level(k + 1, moved, w, state)

        if isinstance(first, int) and last == first + 1:
            return turn(first, w, state)
        carried = [w, *state]
        for at in f.range(first, last, 1, carried):
            ws, *current = carried
            carried[:] = [ws + inner, *turn(at, ws, current)]
        return carried[1:]

    def _run(
        self, count: AnyInt, stride: AnyInt, x: list[Pointer], w: Pointer, state: list[Any], *, even: bool
    ) -> list[Any]:
        """Emit the innermost loop, over elements of the data `stride` bytes apart, unrolled. `even`: without a tail."""
        members, pointers, turn = self.tile.dot.members, len(x), self.tile.elements
        short = isinstance(count, int) and count <= 2 * turn and not self.tile.dot.group  # loops of groups prefetch
        whole = 0 if short else count if even else count // turn * turn
        offsets = [u * stride for u in range(turn + 1)]
        prefetch_offsets = [
            panel * self.panel + LINE * line
            for panel in range(-(-self.tile.vectors // self.tile.panel))
            for line in range(self.tile.prefetch_lines)
        ]
        carried = [*x, w, *state]
        for _ in () if short else self.f.range(0, whole, turn, carried):
            xs, ws, current = carried[:pointers], carried[pointers], carried[pointers + 1 :]
            self.loaded, rows = {}, self.rows(xs)
            for u in range(turn):
                for offset in prefetch_offsets[u::turn]:
                    self.f.prefetch(current[0], offset)
                current = self._element(rows, ws, offsets[u], u, current)
            if self.tile.prefetch_lines:
                advance = self.tile.advance
                current[0] = current[0] + (LINE * self.tile.prefetch_lines if advance is None else advance)
            carried[:] = [*(p + offsets[turn] for p in xs), ws + turn // members * self.width, *current]
        x, w, state = carried[:pointers], carried[pointers], carried[pointers + 1 :]
        rest = 0 if even and not short else count - whole
        self.loaded, rows = {}, self.rows(x) if isinstance(rest, int) and rest else []
        for u in range(rest) if isinstance(rest, int) else ():
            state = self._element(rows, w, offsets[u] if u <= turn else u * stride, u, state)
        for _ in () if isinstance(rest, int) else self.f.range(0, rest, 1, carried):
            xs, ws, current = carried[:pointers], carried[pointers], carried[pointers + 1 :]
            current = self._element(self.rows(xs), ws, 0, 0, current)
            carried[:] = [*(p + stride for p in xs), ws + self.width, *current]
        return state if isinstance(rest, int) else carried[pointers + 1 :]

    def rows(self, x: list[Pointer]) -> list[tuple[Pointer, AnyInt]]:
        """An address and an offset for each row, to be used within one iteration of a loop.

        If the row stride is in a register, three rows share an address, since x86 scales index registers by 1 and 2.
        LLVM would otherwise keep an address per row in registers across the loop, and spill accumulators.
        """
        rows, row = self.tile.rows, self.tile.row
        if len(x) > 1:
            return [(p, 0) for p in x]
        if isinstance(row, int):
            return [(x[0], r * row) for r in range(rows)]
        offsets, starts = [0, row, 2 * row], [opaque(self.f, x[0])]
        for _ in range(3, rows, 3):
            starts.append(opaque(self.f, starts[-1] + 3 * row))
        return [(starts[r // 3], offsets[r % 3]) for r in range(rows)]

    def _element(
        self, rows: list[tuple[Pointer, AnyInt]], w: Pointer, offset: AnyInt, k: int, state: list[Any]
    ) -> list[Any]:
        """Add the products of an element, row by row.

        LLVM's scheduler would load the data of many rows and of the next element early, and spill accumulators.
        """
        f, tile = self.f, self.tile
        state = list(state)
        weights = [self._weights(w, k, v) for v in range(tile.vectors)]
        for r, (x, row) in enumerate(rows):
            element = f.broadcast(x, offset + row)
            sums = slice(1 + r * tile.vectors, 1 + (r + 1) * tile.vectors)
            totals = zip(state[sums], weights, strict=True)
            state[sums] = [tile.dot.multiply(f, total, element, weight) for total, weight in totals]
            load_after(f, state[sums])
        return state

    def _weights(self, w: Pointer, k: int, v: int) -> Vec:
        """Vector `v` of the weights of element `k` of an iteration, as f32 or as words of the dot."""
        panel, column = self.weights_at(v)
        row, member = divmod(k, self.tile.dot.members)
        word = self.loaded.get((row, v))
        if word is None:
            offset = panel + row * self.width + column * WORD
            kind = F32 if self.compressed is None else I32
            word = self.f.load(w, offset, align=self.f.target.bytes, element=kind)
        if self.compressed is None:
            return word
        self.loaded[row, v] = word
        widening = self.compressed.compression.widening
        if self.tile.dot.group:
            return widening.bytes(word, member)
        return self.apply[v](widening.widen(self.f, word, member))


def write_sums(
    f: Function,
    tile: RegisterTile,
    x: list[Pointer],
    w: Pointer,
    bounds: dict[int, tuple[AnyInt, AnyInt]],
    ahead: Pointer | None = None,
    start: Sequence[Vec] = (),
    windows: WindowedRows | None = None,
) -> list[Vec]:
    """Emit the sums of a tile, and return them: the vectors of row 0, then of row 1, and so on.

    `x`: the address of the data, or of each row. `bounds`: the ranges of levels that skip iterations. `ahead`: the
    address of the weights to prefetch. `start`: the initial sums, by default zeros. `windows`: the windows of rows on
    several lines, or with padding.
    """
    sums = start or [f.zero(tile.dot.sums)] * (tile.rows * tile.vectors)
    loops = TileSum(f, tile, bounds, windows)
    if len(tile.levels) == 1:
        loops.enter(w, 0)
    return loops.level(0, x, w, [ahead or w, *sums])[1:]


@lru_cache(1024)
def tile_shape(
    target: Target, rows: int, channels: int, panel: int = 1, pitch: int = LINE, widest: int = WIDEST, dot: Dot = FMA
) -> tuple[int, int]:
    """The rows and vectors of the tiles that take the fewest cycles for a number of rows and channels.

    The cost model: an element of the sum takes a cycle per two loads, or per products that the `dot` issues per cycle
    (two FMAs) plus the `load` of the target. It takes at least the latency of an accumulation: four cycles for FMAs.
    Weights are read from L2. So are the data if their rows, with a stride of `pitch` bytes, share too few sets of L1,
    where streamed weights occupy two ways of each set. Vectors are a multiple of `panel` if there are enough channels,
    and at most `widest`. Of tiles that take equally many cycles, the largest is chosen, then the widest, which loads
    least.
    """
    vectors = -(-channels // target.lanes)
    panel = min(panel, vectors)
    registers = target.registers - dot.cost.registers
    shapes = [
        (r, v)
        for v in range(panel, min(vectors, registers, widest) + 1, panel)
        for r in range(1, min(rows, registers) + 1)
        if dot.cost.sums * r * v + v + 1 <= registers or (r == 1 and v + 4 <= registers)
    ]

    sets = target.page // gcd(pitch, target.page)

    def streamed(height: int, width: int) -> int:
        """Bytes read from L2 per element of the sum."""
        return width * target.bytes + (height * LINE if height > (target.ways - 2) * sets else 0)

    def element(height: int, width: int) -> float:
        """Cycles per element of the sum."""
        loads = height + width
        products = height * width / dot.cost.products + height * dot.cost.row + width * dot.cost.vector
        return max(products + loads * target.load, loads / 2, streamed(height, width) / L2_RATE, dot.cost.latency)

    def cost(shape: tuple[int, int]) -> tuple[float, int, int]:
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
        return round(cycles * (TAIL_GAIN if vectors % v else 1), 6), -r * v, -v

    return min(shapes, key=cost)
