"""3×3 convolutions of stride 1 by Winograd's F(4,3): a quarter of the multiplications, ten times the rounding error.

A tile is 4×4 outputs, from 6×6 inputs. Blocks of tiles are transformed into 36 matrices, multiplied by the transformed
weights and transformed back while they lie in the cache. Where a tile reaches into padding it reads zeros; what it
makes beyond the map is not stored.
"""

from __future__ import annotations

from dataclasses import replace

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import each_vector, offset
from irload.plan.backends.llvm.kernels.winograd_transforms import transform_inputs, transform_outputs
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tile import UNROLL, Level, Row, Tile, write_sums
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Winograd(Kernel):
    """y = epilogue(conv3x3(x, w), operands). Pointers: x, w, y, then the operands. A unit is a block of tiles.

    `sizes`: height and width of x; `outputs`: of y; `begin`: padding above and left. `depth` and `channels` are those
    of x and y. Strides of [N,C,H,W] count bytes. `rows` × `vectors`: the tile of registers of the products.
    """

    lanes: int
    batch: int
    sizes: tuple[int, int]
    outputs: tuple[int, int]
    begin: tuple[int, int]
    depth: int
    channels: int
    x: tuple[int, ...]
    y: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    epilogue: Expression
    tiles: int
    rows: int
    vectors: int

    @property
    def _all(self) -> int:
        return count_tiles(self.batch, *self.outputs)

    @property
    def code(self) -> Winograd:
        return replace(self, batch=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self._all,)

    @property
    def count(self) -> int:
        return -(-self._all // self.tiles)

    @property
    def cycles(self) -> float:
        products = 36 * self._all * self.depth * self._wide / self.lanes / 2
        return products + self._all * 300 * (self.depth + self._wide) / self.lanes

    @property
    def _deep(self) -> int:
        """Floats of a row of transformed inputs."""
        return -(-self.depth // self.lanes) * self.lanes

    @property
    def _wide(self) -> int:
        """Floats of a row of sums: whole panels."""
        panel = self.vectors * self.lanes
        return -(-self.channels // panel) * panel

    @property
    def _lines(self) -> int:
        """Tiles of registers that meet the same weights."""
        return -(-self.tiles // self.rows)

    @property
    def _ahead(self) -> int:
        """Cache lines of the next panel of weights that each turn of a tile asks for: all of them by all tiles."""
        return -(-UNROLL * self.vectors * self.lanes * 4 // (LINE * self._lines))

    @property
    def _pitches(self) -> tuple[int, int]:
        """Bytes from one matrix of transformed inputs, and of sums, to the next."""
        return _pitch(self.tiles * self._deep * 4), _pitch(self.tiles * self._wide * 4)

    @property
    def _places(self) -> list[int]:
        """Where scratch has zeros, pointers to inputs, vectors of one tile, transformed inputs, sums, and its end."""
        parts = [self._deep * 4, 36 * 8, 40 * self.lanes * 4, 36 * self._pitches[0], 36 * self._pitches[1]]
        found = [0]
        for nbytes in parts:
            found.append(found[-1] + -(-nbytes // LINE) * LINE)
        return found

    @property
    def scratch(self) -> int:
        return self._places[-1]

    def write(self, function: Function) -> None:
        f = function
        x, w, y, *operands = (f.load_pointer(f["arguments"], 8 * k) for k in range(3 + len(self.operands)))
        zeros, table, square, inputs, sums = (f.at(f["scratch"], place) for place in self._places[:-1])
        count = f.load_int(f["arguments"], 8 * (3 + len(operands)))
        self._write_inputs(f)
        self._write_outputs(f)
        f.loop(0, self._deep, self.lanes, lambda at, _: f.store(f.zero(), zeros, f.multiply(at, 4)))

        def block(index: Value, _: list[Value]) -> None:
            first = f.multiply(index, self.tiles)
            last = f.minimum(f.add(first, self.tiles), count)

            def before(tile: Value, _: list[Value]) -> None:
                sample, top, left = self._position(f, tile)
                top, left = f.subtract(top, self.begin[0]), f.subtract(left, self.begin[1])
                source = f.at(x, offset(f, self.x, (sample, 0, top, left)))
                target = f.at(inputs, f.multiply(f.subtract(tile, first), self._deep * 4))
                f.call("inputs", [source, target, zeros, table, square, top, left])

            def after(tile: Value, _: list[Value]) -> None:
                sample, top, left = self._position(f, tile)
                results = [
                    f.at(p, offset(f, s, (sample, 0, top, left)))
                    for p, s in zip((y, *operands), (self.y, *self.operands), strict=True)
                ]
                height, width = (
                    f.minimum(f.subtract(n, at), 4) for n, at in zip(self.outputs, (top, left), strict=True)
                )
                source = f.at(sums, f.multiply(f.subtract(tile, first), self._wide * 4))
                f.call("outputs", [source, square, f.minimum(height, 4), f.minimum(width, 4), *results])

            f.loop(first, last, 1, before)
            self._write_products(f, inputs, w, sums)
            f.loop(first, last, 1, after)

        f.loop(f["begin"], f["end"], 1, block)

    def _position(self, f: Function, tile: Value) -> tuple[Int, Int, Int]:
        """The sample of a tile, and its first row and column of outputs."""
        line, across = f.divmod(tile, -(-self.outputs[1] // 4))
        sample, down = f.divmod(line, -(-self.outputs[0] // 4))
        return sample, f.multiply(down, 4), f.multiply(across, 4)

    def _write_inputs(self, caller: Function) -> None:
        """The inputs of a tile, whose first one stands at top, left, transformed: columns first, then rows."""
        pointers = ["ptr x", "ptr v", "ptr zeros", "ptr table", "ptr square"]
        f = caller.module.function("inputs", [*pointers, "i64 top", "i64 left"])
        height, width = self.sizes

        def row(i: Value, _: list[Value]) -> None:
            on_map = _within(f, f.add(f["top"], i), height)

            def column(j: Value, _: list[Value]) -> None:
                inside = f.both(on_map, _within(f, f.add(f["left"], j), width))
                place = f.select(inside, f.at(f["x"], offset(f, self.x[2:], (i, j))), f["zeros"])
                f.emit(f"store ptr {place}, ptr {f.at(f['table'], offset(f, (48, 8), (i, j)))}, align 8")

            f.loop(0, 6, 1, column)

        f.loop(0, 6, 1, row)
        nbytes = 4 * self.lanes

        def vector(at: Int, count: int | None) -> None:
            def column(j: Value, _: list[Value]) -> None:
                places, made = f.at(f["table"], f.multiply(j, 8)), f.at(f["square"], f.multiply(j, nbytes))
                data = [f.load(f.load_pointer(places, 48 * i), f.multiply(at, 4), count) for i in range(6)]
                for i, value in enumerate(transform_inputs(f, data)):
                    f.store(value, made, 6 * nbytes * i)

            def row(i: Value, _: list[Value]) -> None:
                made = f.at(f["square"], f.multiply(i, 6 * nbytes))
                target = f.at(f["v"], offset(f, (4, 6 * self._pitches[0]), (at, i)))
                for j, value in enumerate(transform_inputs(f, [f.load(made, nbytes * j) for j in range(6)])):
                    f.store(value, target, self._pitches[0] * j)

            f.loop(0, 6, 1, column)
            f.loop(0, 6, 1, row)

        each_vector(f, self.depth, vector)

    def _write_outputs(self, caller: Function) -> None:
        """The outputs of a tile: `rows` × `columns` of them lie on the map."""
        names = ["y", *(f"operand{k}" for k in range(len(self.operands)))]
        parameters = ["ptr m", "ptr square", "i64 rows", "i64 columns", *(f"ptr {name}" for name in names)]
        f = caller.module.function("outputs", parameters)
        nbytes = 4 * self.lanes
        line = f.at(f["square"], 36 * nbytes)

        def vector(at: Int, count: int | None) -> None:
            def column(j: Value, _: list[Value]) -> None:
                source = f.at(f["m"], offset(f, (4, self._pitches[1]), (at, j)))
                made = f.at(f["square"], f.multiply(j, nbytes))
                sums = [f.load(source, 6 * self._pitches[1] * i) for i in range(6)]
                for i, value in enumerate(transform_outputs(f, sums)):
                    f.store(value, made, 6 * nbytes * i)

            def row(i: Value, _: list[Value]) -> None:
                made = f.at(f["square"], f.multiply(i, 6 * nbytes))
                for j, value in enumerate(transform_outputs(f, [f.load(made, nbytes * j) for j in range(6)])):
                    f.store(value, line, nbytes * j)
                f.loop(0, f["columns"], 1, lambda j, _: output(i, j))

            def output(i: Value, j: Value) -> None:
                values = [f.load(line, f.multiply(j, nbytes))]
                places = [
                    f.at(f[name], offset(f, strides[1:], (at, i, j)))
                    for name, strides in zip(names, (self.y, *self.operands), strict=True)
                ]
                for place, strides in zip(places[1:], self.operands, strict=True):
                    values.append(read(f, place, 0, strides[1], count))
                (result,) = evaluate(f, self.epilogue, values)
                write(f, result, places[0], 0, self.y[1], count)

            f.loop(0, 6, 1, column)
            f.loop(0, f["rows"], 1, row)

        each_vector(f, self.channels, vector)

    def _write_products(self, f: Function, x: Value, w: Value, y: Value) -> None:
        """36 products of [tiles, depth] by the weights."""
        length, width = self.depth * 4, self.vectors * self.lanes * 4
        lines = self._lines
        height, taller = divmod(self.tiles, lines)
        names = {rows: self._tile(f, rows) for rows in {height, height + 1 if taller else height}}
        groups = self._wide // (self.vectors * self.lanes)

        def panel(index: Value, _: list[Value]) -> None:
            matrix, group = f.divmod(index, groups)
            data = f.at(x, f.multiply(matrix, self._pitches[0]))
            weights = f.at(w, f.multiply(index, length * self.vectors * self.lanes))
            target = f.at(y, offset(f, (self._pitches[1], width), (matrix, group)))

            def rows(count: int, first: int, last: int) -> None:
                def tile(line: Value, _: list[Value]) -> None:
                    at = f.add(f.multiply(line, count), taller if count == height else 0)
                    place, result = (
                        f.at(data, f.multiply(at, self._deep * 4)),
                        f.at(target, f.multiply(at, self._wide * 4)),
                    )
                    ahead = f.at(following, f.multiply(line, self.depth // UNROLL * self._ahead * LINE))
                    f.call(names[count], [place, weights, ahead, result])

                f.loop(first, last, 1, tile)

            following = f.at(weights, length * self.vectors * self.lanes)
            if taller:
                rows(height + 1, 0, taller)
            rows(height, taller, lines)

        f.loop(0, 36 * groups, 1, panel)

    def _tile(self, caller: Function, rows: int) -> str:
        """The name of the function for a tile of so many rows."""
        name = f"product{rows}"
        f = caller.module.function(name, ["ptr x", "ptr w", "ptr ahead", "ptr y"])
        data = tuple(Row(k * self._deep * 4) for k in range(rows))
        tile = Tile(data, self.vectors, self.vectors, (Level(self.depth, 4),), self._ahead)
        for k, value in enumerate(write_sums(f, tile, f["x"], f["w"], {}, f["ahead"])):
            row, vector = divmod(k, self.vectors)
            f.store(value, f["y"], row * self._wide * 4 + vector * f.target.bytes)
        return name


def count_tiles(batch: int, height: int, width: int) -> int:
    """The tiles of so many outputs."""
    return batch * -(-height // 4) * -(-width // 4)


def _within(f: Function, position: Int, size: int) -> Value:
    return f.both(f.compare("sge", position, 0), f.compare("slt", position, size))


def _pitch(nbytes: int) -> int:
    """An odd number of lines, so that the same place of all matrices falls into different sets of the cache."""
    return (-(-nbytes // LINE) | 1) * LINE
