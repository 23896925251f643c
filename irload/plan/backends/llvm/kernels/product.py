"""Products of data with packed weights: matmuls and direct convolutions, their epilogue in registers.

The output has outer axes, columns, of which a tile takes some in a row, and channels. Data, output and operands of the
epilogue are read by strides; weights lie in panels as tile.py reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.results import TileResults
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tile import UNROLL, Level, Row, Tile, write_sums
from irload.plan.ir.expression import Expression
from irload.record import record

FEW_WEIGHTS = 256 * 1024
"""Bytes of weights that stay in the second level of the cache, whatever goes by."""
LITTLE = 192 * 1024
"""Bytes of data, operands and results that go by such weights at once: their lines are then read and written in turn.

With twenty times as many a 1×1 convolution of 3136 × 64 → 256 with a residual takes a tenth to a third longer.
"""


@record()
class Product(Kernel):
    """y[outer…, column, channel] = epilogue(Σ x · w, operands). Pointers: x, w, y, then the operands.

    `lanes`: f32 of a vector. `rows` and `vectors`: a tile; `panel`: vectors of a panel of the weights. `weights`: bytes
    between weights along the outer axes, for batches and groups. `shared`: what threads take parts of, the `rows` or
    the `panels`.

    The code is the same for any size of the first outer axis, or of columns where there is none: it reads how many
    tiles there are, and how many of them are of the first of two heights. `heights`, those of the tiles of a line, and
    `block`, how many tiles meet the same weights at most, are then given.

    `cached`: the bytes of data that stay in the cache while weights go by. `split`: each turn of the outermost level is
    a part of the sum, which all tiles of a block take before the next; sums then lie where results will.
    """

    lanes: int
    outer: tuple[int, ...]
    columns: int
    channels: int
    levels: tuple[Level, ...]
    x: Access
    y: Access
    operands: tuple[Access, ...]
    epilogue: Expression
    rows: int
    vectors: int
    panel: int
    weights: tuple[int, ...]
    shared: str = "rows"
    heights: tuple[int, ...] = ()
    block: int = 0
    cached: int = LITTLE
    split: bool = False

    @property
    def code(self) -> Product:
        if self.outer:
            return replace(self, outer=(0, *self.outer[1:]), block=self._block)
        if any(level.axis is not None for level in self.levels):
            return self
        return replace(self, columns=0, rows=self._heights[0], heights=self._heights, block=self._block)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self._tiles, self.columns % self._line

    @property
    def count(self) -> int:
        return self._tiles if self.shared == "rows" else self._groups

    @property
    def cycles(self) -> float:
        length = prod(level.count for level in self.levels)
        return prod(self.outer) * self.columns * self._all_vectors * length / 2 + self._tiles * self._groups * 20

    @property
    def _all_vectors(self) -> int:
        return -(-self.channels // self.lanes)

    @property
    def _groups(self) -> int:
        """Groups of channels that one tile computes."""
        return -(-self._all_vectors // self.vectors)

    @property
    def _line(self) -> int:
        """Tiles of one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def _tiles(self) -> int:
        return prod(self.outer) * self._line

    @property
    def _heights(self) -> tuple[int, ...]:
        """The heights of the tiles of a line: the first ones may be taller by a row."""
        if self.heights:
            return self.heights
        height, taller = divmod(self.columns, self._line)
        return (height + 1, height) if taller else (height,)

    @property
    def _parts(self) -> int:
        """How often the tiles of a block are added to."""
        return self.levels[0].count if self.split else 1

    @property
    def _limited(self) -> list[int]:
        """The levels of which a tile does not take all turns."""
        return [
            k
            for k, level in enumerate(self.levels)
            if (level.axis is not None and level.axis >= 0) or (k == 0 and self.split)
        ]

    @property
    def _block(self) -> int:
        """The most tiles that meet the same weights; a power of two where there are not as many.

        Their data stays in the cache while all weights go by. Where all weights stay there, it is a few tiles.
        """
        if self.block:
            return self.block
        read = prod(min(each.count, each.step) if each.size else each.count for each in self.levels) // self._parts
        weights = 4 * self.channels * prod(level.count for level in self.levels)
        go_by = read + self.channels * (1 + len(self.operands))
        room, each = (self.cached, read) if weights > FEW_WEIGHTS else (LITTLE, go_by)
        return max(1, min(1 << (self._tiles - 1).bit_length(), room // max(4 * self.rows * each, 1)))

    @property
    def _ahead(self) -> int:
        """Cache lines of each of the next group's panels that a turn of a tile asks for: all of them over a block.

        A block may have as few as half of the most tiles.
        """
        if self._block == 1 or self._groups == 1:
            return 0
        return -(-UNROLL * self.panel * self.lanes * 4 // (LINE * (self._block // 2 + 1)))

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(3 + len(self.operands))]
        tiles, taller = (f.load_int(f["arguments"], 8 * (len(pointers) + k)) for k in range(2))
        begin, end, first, last = f["begin"], f["end"], 0, self._groups
        if self.shared == "panels":
            begin, end, first, last = 0, tiles, f["begin"], f["end"]

        own = f.subtract(end, begin)
        blocks = f.maximum(f.divide(f.add(own, self._block - 1), self._block), 1)
        size = f.divide(f.add(own, f.subtract(blocks, 1)), blocks)

        def block(start: Value, _: list[Value]) -> None:
            stop = f.minimum(f.add(start, size), end)

            def panels(part: Int) -> None:
                def tiles(group: Value, _: list[Value]) -> None:
                    f.loop(start, stop, 1, lambda tile, _: self._tile(f, pointers, tile, group, part, start, taller))

                f.loop(first, last, 1, tiles)

            if self._parts == 1:
                panels(0)
            else:
                f.loop(0, self._parts, 1, lambda part, _: panels(part))

        f.loop(begin, end, size, block)

    def _tile(
        self, f: Function, pointers: list[Value], tile: Value, group: Value, part: Int, start: Value, taller: Int
    ) -> None:
        """Compute the addresses of one tile of a block, and call the function for its kind."""
        line, q = f.divmod(tile, self._line) if self.outer else (0, tile)
        indices: list[Int] = []
        for n in reversed(self.outer):
            line, at = f.divmod(line, n) if len(indices) < len(self.outer) - 1 else (0, line)
            indices.insert(0, at)
        heights = self._heights
        column = f.add(f.multiply(q, heights[-1]), f.minimum(q, taller) if len(heights) > 1 else 0)
        channel = f.multiply(group, self.vectors * self.lanes)
        bounds: list[Int] = [part] if self.split else []
        for k, level in enumerate(self.levels):
            if k in self._limited:
                outer = level.axis is not None and level.axis >= 0
                low, high = level.bounds(f, indices[level.axis or 0]) if outer else (0, level.count)
                if k == 0 and self.split:
                    low, high = f.maximum(low, part), f.minimum(high, f.add(part, 1))
                bounds += [low, high]

        def place(pointer: Value, access: Access) -> Value:
            offset: Int = access.start
            for index, stride in zip(indices, access.outer, strict=True):
                offset = f.add(offset, f.multiply(index, stride))
            offset = f.add(offset, f.multiply(column, access.column))
            return f.at(pointer, f.add(offset, f.multiply(channel, access.channel)))

        length = prod(level.count for level in self.levels)
        w: Int = f.multiply(group, self.vectors * length * self.lanes * 4)
        for index, stride in zip(indices, self.weights, strict=True):
            w = f.add(w, f.multiply(index, stride))
        places = [place(pointers[0], self.x), f.at(pointers[1], w)]
        ahead: Int = 0
        if self._ahead:
            each = length // self._parts // UNROLL * self._ahead * LINE
            ahead = f.add(f.multiply(f.subtract(tile, start), each), self.vectors * length * self.lanes * 4)
            ahead = f.add(ahead, f.multiply(part, length // self._parts * self.panel * self.lanes * 4))
        places.append(f.at(places[1], ahead))
        places += [place(p, a) for p, a in zip(pointers[2:], (self.y, *self.operands), strict=True)]
        self._dispatch(f, q, group, taller, [*places, *bounds])

    def _dispatch(self, f: Function, q: Int, group: Value, taller: Int, arguments: list[Int]) -> None:
        """Call the function for tiles at this place of a line, and for whole groups of channels or the last one."""
        kinds = self._kinds(taller)
        whole, rest = divmod(self.channels, self.vectors * self.lanes)

        def columns(rows: tuple[Row, ...]) -> None:
            def call(channels: int) -> Callable[[], None]:
                return lambda: f.call(self._function(f, rows, channels), arguments)

            full, tail = call(self.vectors * self.lanes), call(rest)
            if whole and rest:
                f.when(f.compare("eq", group, whole), tail, full)
            else:
                (full if whole else tail)()

        def choose(at: int) -> None:
            last, rows = kinds[at]
            if at == len(kinds) - 1:
                columns(rows)
            else:
                f.when(f.compare("slt", q, last), lambda: columns(rows), lambda: choose(at + 1))

        choose(0)

    def _kinds(self, taller: Int) -> list[tuple[Int, tuple[Row, ...]]]:
        """Tiles of a line that run the same code: where they end, and their rows. The last ones end with the line."""
        level = next((each for each in self.levels if each.axis == -1), None)
        if level is None:
            return [(taller, tuple(Row(k * self.x.column) for k in range(height))) for height in self._heights]
        found: list[tuple[Int, tuple[Row, ...]]] = []
        height, taller = divmod(self.columns, self._line)
        start = 0
        for q in range(self._line):
            count = height + (q < taller)
            rows = tuple(Row(k * self.x.column, level.valid(start + k)) for k in range(count))
            start += count
            if found and found[-1][1] == rows:
                found.pop()
            found.append((q + 1, rows))
        return found

    def _function(self, f: Function, rows: tuple[Row, ...], channels: int) -> str:
        """The name of the function for such tiles, written when it is first needed."""
        taps = [f"{row.valid[0]}.{row.valid[1]}" for row in rows if row.valid is not None]
        name = "_".join(["tile", str(len(rows)), *taps, str(channels)])
        if not f.module.has(name):
            names = [f"operand{k}" for k in range(len(self.operands))]
            parameters = [f"ptr {n}" for n in ("x", "w", "ahead", "y", *names)]
            parameters += ["i64 part"] if self.split else []
            parameters += [f"i64 {end}{k}" for k in self._limited for end in ("first", "last")]
            own = f.module.function(name, parameters)
            self._write_tile(own, rows, channels, {k: (own[f"first{k}"], own[f"last{k}"]) for k in self._limited})
        return name

    def _write_tile(
        self, f: Function, rows: tuple[Row, ...], channels: int, bounds: dict[int, tuple[Int, Int]]
    ) -> None:
        vectors = -(-channels // self.lanes)
        tile = Tile(rows, vectors, self.panel, self.levels, self._ahead)
        operands = [(f[f"operand{k}"], access) for k, access in enumerate(self.operands)]
        results = TileResults(self.epilogue, len(rows), channels, (f["y"], self.y), operands)
        results.ask(f)

        def sums(start: Sequence[Value]) -> list[Value]:
            return write_sums(f, tile, f["x"], f["w"], bounds, f["ahead"], start)

        if self.split:
            results.write_part(f, f["part"], self._parts, sums)
        else:
            results.write(f, sums(()))
