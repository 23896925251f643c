"""3×3 convolutions of stride 1 by Winograd's F(4,3): a quarter of the multiplications, ten times the rounding error.

A tile is 4×4 outputs, computed from 6×6 inputs. For each block of tiles, the inputs are transformed to 36 matrices
[tiles, depth], multiplied by the transformed weights, and the products are transformed to outputs, all while they are
in the cache. Inputs in the padding are read from a row of zeros. Outputs beyond the map are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from irload.core.size import largest
from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES, WORD
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, each_vector, offset
from irload.plan.backends.llvm.kernels.winograd_transforms import transform_inputs, transform_outputs
from irload.plan.backends.llvm.operands import load_lanes, read, write
from irload.plan.backends.llvm.target import LINE, odd_pitch
from irload.plan.backends.llvm.tile import RegisterTile, SumLevel, write_sums
from irload.plan.backends.llvm.tuning import UNROLL
from irload.plan.ir.expression import Expression
from irload.record import record

TILE = 6
"""Rows and columns of inputs for 4 × 4 outputs."""
MATRICES = TILE**2


@record()
class WinogradProducts:
    """The 36 matrix products [tiles, depth] by [depth, channels] of a block of any number of tiles, in scratch memory.

    The tiles are divided into register tiles of `rows` and `rows` − 1 rows. The products are not `Product` kernels,
    since a block is transformed, multiplied and transformed back in the cache. The code reads `depth` and `channels`;
    `known`: the `tail_key` of both.

    `rows` × `vectors`: the register tile. `spread`: the number of register tiles, at most two, that prefetch parts of
    the next panel; a single burst would occupy all line fill buffers.
    """

    lanes: int
    depth: int
    channels: int
    known: tuple[int, int]
    rows: int
    vectors: int
    spread: int

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
        data = [f["x"] + k * f["deep"] for k in range(rows)]
        levels = (SumLevel(f["depth"], 4),)
        tile = RegisterTile(rows, 0, self.vectors, self.vectors, levels, self._prefetch_lines, turn=UNROLL)
        for k, value in enumerate(write_sums(f, tile, data, f["w"], {}, f["ahead"])):
            row, vector = divmod(k, self.vectors)
            f.store(value, f["y"] + row * f["wide"], vector * f.target.bytes)

    def write(
        self, f: Function, pointers: tuple[Pointer, Pointer, Pointer], pitches: Sequence[AnyInt], count: AnyInt
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


@record()
class Winograd(Kernel):
    """y = epilogue(conv3x3(x, w), operands). Pointers: x, w, y, then the operands. A unit is a block of tiles.

    `sizes`: height and width of x; `outputs`: of y; `begin`: padding above and left. Strides of [N,C,H,W] are in bytes.
    `tiles`: tiles per block. `strides`, `elements`: of x, y and the operands. `zero_point`: subtracted from x, and the
    value of padding.

    The batch, the sizes of the maps, the channels, strides and `tiles` are read at run time. Compiled in are the tails
    of the channels, and the rows of the products, which unroll loops.
    """

    products: WinogradProducts
    batch: int
    sizes: tuple[int, int]
    outputs: tuple[int, int]
    begin: tuple[int, int]
    strides: tuple[tuple[int, ...], ...]
    elements: tuple[str, ...]
    epilogue: Expression
    tiles: int
    zero_point: int = 0

    @property
    def code(self) -> Winograd:
        def known(strides: tuple[int, ...]) -> tuple[int, ...]:
            return ANY, strides[1], ANY, ANY if strides[3] else 0

        products = replace(self.products, depth=ANY, channels=ANY)
        sizes = {"batch": 0, "sizes": (ANY, ANY), "outputs": (ANY, ANY), "tiles": ANY}
        return replace(self, products=products, strides=tuple(map(known, self.strides)), **sizes)

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self._all, *self._pitches, *unknown(self, self.code))

    @property
    def count(self) -> int:
        return -(-self._all // self.tiles)

    @property
    def cycles(self) -> float:
        p = self.products
        return self._all * (MATRICES * p.depth * p.wide / 2 + 300 * (p.depth + p.wide)) / p.lanes

    @property
    def _all(self) -> int:
        return count_tiles(self.batch, *self.outputs)

    @property
    def _pitches(self) -> tuple[int, int]:
        """Bytes between consecutive matrices of transformed inputs, and of sums."""
        rows = self.products.deep, self.products.wide
        first, second = (odd_pitch(-(-self.tiles * row * 4 // LINE)) for row in rows)
        return first, second

    @property
    def _offsets(self) -> list[int]:
        """Offsets in scratch memory: pointers to inputs, vectors of one tile, and zeros; transformed inputs follow."""
        pointers = -(-MATRICES * 8 // LINE) * LINE
        return [0, pointers, pointers + 40 * self.products.lanes * 4]

    @property
    def scratch(self) -> int:
        return self._offsets[-1] + self.products.deep * 4 + MATRICES * sum(self._pitches)

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        x, w, y, *operands = arguments.pointers(1 + len(self.strides))
        (count, *pitches), given = arguments.integers(3), arguments.filled(self)
        products, tiles, outputs, strides = given.products, given.tiles, given.outputs, given.strides
        deep, wide = f.integer(products.deep), f.integer(products.wide)
        table, square, zeros = (f["scratch"] + start for start in self._offsets)
        inputs = zeros + deep * 4
        sums = inputs + pitches[0] * MATRICES
        size = SIZES[self.elements[0]]
        word = self.zero_point.to_bytes(size, "little") * (WORD // size)
        padding = f.zero("i32").constant(int.from_bytes(word, "little", signed=True))
        for at in f.range(0, deep, f.lanes):
            f.store(padding, zeros, at * 4)

        def place_of(tile: Int) -> tuple[AnyInt, AnyInt, AnyInt]:
            """The sample of a tile, and its first row and column of outputs."""
            sample, (down, across) = digits(tile, [(n + 3) // 4 for n in outputs])
            return sample, down * 4, across * 4

        for index in f.range(f["begin"], f["end"]):
            first = index * tiles
            last = f.minimum(first + tiles, count)
            was_inside: list[Any] = [f.integer(0)]
            for tile in f.range(first, last, 1, was_inside):
                sample, top, left = place_of(tile)
                top, left = top - self.begin[0], left - self.begin[1]
                source = x + offset(strides[0], (sample, 0, top, left))
                target = inputs + (tile - first) * (deep * 4)
                pointers = {"x": source, "v": target, "zeros": zeros, "table": table, "square": square}
                position = {"top": top, "left": left, "height": given.sizes[0], "width": given.sizes[1]}
                below = [f.maximum(size - (TILE - 1), 0) for size in given.sizes]
                inside = (f.integer(top).below(below[0]) & f.integer(left).below(below[1])).as_int()
                position["listed"], was_inside[0] = was_inside[0] * inside, inside
                steps = {"stride": strides[0][2], "across": strides[0][3], "pitch": pitches[0]}
                steps["depth"] = products.depth
                f.call("inputs", {**pointers, **position, **steps}, self._write_inputs)
            products.write(f, (inputs, w, sums), pitches, last - first)
            for tile in f.range(first, last):
                sample, top, left = place_of(tile)
                results: dict[str, AnyInt | Pointer] = {}
                for name, pointer, steps in zip(self._results, (y, *operands), strides[1:], strict=True):
                    results[name] = pointer + offset(steps, (sample, 0, top, left))
                for name, steps in zip(self._results, strides[1:], strict=True):
                    results |= {f"stride_{name}": steps[2], f"across_{name}": steps[3]}
                rows, columns = (f.minimum(n - at, 4) for n, at in zip(outputs, (top, left), strict=True))
                source = sums + (tile - first) * (wide * 4)
                shape = {"m": source, "square": square, "pitch": pitches[1], "rows": rows, "columns": columns}
                shape["channels"] = products.channels
                f.call("outputs", {**shape, **results}, self._write_outputs)

    @property
    def _results(self) -> list[str]:
        """The parameters for y and the operands."""
        return ["y", *(f"operand{k}" for k in range(len(self.strides) - 2))]

    def _write_inputs(self, f: Function) -> None:
        """Emit the function that transforms the inputs of the tile at row `top`, column `left`: columns, then rows.

        Offsets of the inputs from x are listed first. All tiles without padding share one list. `listed`: 1 if memory
        contains it, since the previous tile had no padding.
        """
        outside = f["zeros"] - f["x"]
        with f.when(f.equal(f["listed"], 0)):
            for i in f.range(0, TILE):
                on_map = (f["top"] + i).below(f["height"])
                for j in f.range(0, TILE):
                    inside = on_map & (f["left"] + j).below(f["width"])
                    distance = f.select(inside, f.integer(i * f["stride"] + j * f["across"]), outside)
                    f.store_scalar(distance, f["table"], offset((8 * TILE, 8), (i, j)))
        nbytes, element, size = f.target.bytes, self.elements[0], SIZES[self.elements[0]]
        for at, count in each_vector(f, f["depth"], self.products.known[0]):
            for column in f.range(0, 6):
                distances, vectors = f["table"] + column * 8, f["square"] + column * nbytes
                inputs = [f["x"] + f.load_int(distances, 8 * TILE * i) for i in range(TILE)]
                data = [load_lanes(f, pointer, at * size, count, element) for pointer in inputs]
                data = [value - self.zero_point if self.zero_point else value for value in data]
                for i, value in enumerate(transform_inputs(data)):
                    f.store(value, vectors, 6 * nbytes * i)
            for row in f.range(0, 6):
                vectors = f["square"] + row * (6 * nbytes)
                target = f["v"] + (at * 4 + row * (f["pitch"] * 6))
                for j, value in enumerate(transform_inputs([f.load(vectors, nbytes * j) for j in range(6)])):
                    f.store(value, target, f["pitch"] * j)

    def _write_outputs(self, f: Function) -> None:
        """Emit the function that transforms the sums of a tile to outputs, `rows` × `columns` of them on the map."""
        nbytes = f.target.bytes
        line = f["square"] + MATRICES * nbytes
        for at, count in each_vector(f, f["channels"], self.products.known[1]):
            operands = list(zip(self._results[1:], self.strides[2:], self.elements[2:], strict=True))

            def address(name: str, strides: tuple[int, ...], i: Int, j: AnyInt) -> Pointer:
                return f[name] + (at * strides[1] + i * f[f"stride_{name}"] + j * f[f"across_{name}"])

            def operand(k: int, i: Int, j: AnyInt) -> Vec:
                name, strides, element = operands[k]
                return read(f, address(name, strides, i, j), 0, strides[1], count, element)

            def output(i: Int, j: Int, fixed: Mapping[int, Vec]) -> None:
                values = [fixed[k] if k in fixed else operand(k, i, j) for k in range(len(operands))]
                (result,) = evaluate(self.epilogue, [f.load(line, j * nbytes), *values])
                write(f, result, address("y", self.strides[1], i, j), 0, self.strides[1][1], count, self.elements[1])

            for column in f.range(0, 6):
                source, vectors = f["m"] + (at * 4 + column * f["pitch"]), f["square"] + column * nbytes
                sums = [f.load(source, f["pitch"] * (6 * i)) for i in range(6)]
                for i, value in enumerate(transform_outputs(sums)):
                    f.store(value, vectors, 6 * nbytes * i)
            for row in f.range(0, f["rows"]):
                vectors = f["square"] + row * (6 * nbytes)
                for j, value in enumerate(transform_outputs([f.load(vectors, nbytes * j) for j in range(6)])):
                    f.store(value, line, nbytes * j)
                fixed = {k: operand(k, row, 0) for k, (_, strides, _) in enumerate(operands) if strides[3] == 0}
                for j in f.range(0, f["columns"]):
                    output(row, j, fixed)


def count_tiles(batch: int, height: int, width: int) -> int:
    """The number of tiles that cover a batch of maps."""
    return batch * -(-height // 4) * -(-width // 4)
