"""The kernel of attention, one block of queries at a time.

The scores of a block stay in the cache between the product with the keys, the softmax and the product with the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from irload.core.size import applied
from irload.plan.backends.llvm.arguments import Arguments, float_word
from irload.plan.backends.llvm.axes import ANY, Axis, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.attended_keys import without_dropped_keys
from irload.plan.backends.llvm.kernels.attention_sums import AttentionSums, Block
from irload.plan.backends.llvm.kernels.loops import first_above, repeat
from irload.plan.backends.llvm.kernels.score_rows import ScoreRows, Scoring
from irload.plan.backends.llvm.operands import write
from irload.plan.ir.softmax_threshold import least_exponent
from irload.record import record


@record()
class Attend(Kernel):
    """out = softmax(q kᵀ · scale + mask) v. Pointers: q, k, v, out, then mask and sink if present.

    k and v are packed in panels, except for `RowSums`, which read them in place. A unit is a block of `block` queries
    of one matrix, divided into strips; the last strip overlaps the previous one. Strides in bytes: `outer`, between the
    matrices of each pointer; `q`, `out`, `mask`, between rows, and between columns; `sink`, between rows.

    The code reads the outer axes, the numbers of queries and keys, the block, and all row strides. Compiled in: width
    and depth, whose loops are unrolled or divided into vectors; the column strides of q, out and the mask, which are
    offsets in a tile; the shape of a tile (`sums`), which has fewer rows if there are fewer queries; scale and kind of
    the mask.
    """

    outer: tuple[Axis, ...]
    shape: tuple[int, int, int, int]
    """Number of queries, number of keys, elements of a key (width), elements of a value (depth)."""
    q: tuple[int, int]
    out: tuple[int, int]
    mask: tuple[int, int] | None
    sink: int | None
    scoring: Scoring
    sums: AttentionSums
    block: int

    @property
    def why(self) -> str:
        return self.sums.dot.why

    @property
    def arithmetic(self) -> str:
        return self.sums.dot.arithmetic

    @property
    def code(self) -> Attend:
        mask = None if self.mask is None else (ANY if self.mask[0] else 0, self.mask[1])
        sink = None if self.sink is None else ANY if self.sink else 0
        shape = (0, 0, *self.shape[2:])
        q, out = (ANY, self.q[1]), (ANY, self.out[1])
        return replace(self, outer=(), shape=shape, q=q, out=out, mask=mask, sink=sink, sums=self.sums.code, block=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        queries, keys, *_ = self.shape
        rows = [stride for stride in (self.mask and self.mask[0], self.sink) if stride]
        least = applied(lambda count: float_word(least_exponent(count)), keys)
        sizes = (queries, keys, self.block, self._blocks, self.q[0], self.out[0], *rows, least)
        return (*self.sums.numbers, *sizes, *table(self.outer, self._tensors))

    @property
    def _tensors(self) -> int:
        return 4 + (self.mask is not None) + (self.sink is not None)

    @property
    def count(self) -> int:
        return size_of(self.outer) * self._blocks

    @property
    def _blocks(self) -> int:
        return -(-self.shape[0] // self.block)

    @property
    def cycles(self) -> float:
        _, keys, width, depth = self.shape
        products = (width + depth) / self.sums.rate
        return self.count * self.block * keys * (products + 10) / self.sums.lanes

    @property
    def scratch(self) -> int:
        _, keys, width, _ = self.shape
        scores = self.sums.layout(self.block, keys).all_bytes(self.sums.lanes)
        return self.sums.nbytes + scores + self.sums.copies(self.block, keys, width)

    def write(self, function: Function) -> None:
        f, arguments = function, Arguments(function)
        pointers, config = arguments.pointers(self._tensors), f["arguments"] + 8 * self._tensors
        arguments.integers(len(self.sums.numbers))
        queries, keys, block, blocks, q_row, out_row = arguments.integers(6)
        mask_row = arguments.integer() if self.mask is not None and self.mask[0] else 0
        sink_row = arguments.integer() if self.sink else 0
        (least,), outer = arguments.vectors(1), arguments.table(self._tensors)
        layout, scores = self.sums.layout(block, keys), f["scratch"] + self.sums.nbytes
        copies = scores + layout.all_bytes(f.lanes)

        self.sums.begin(f, config, f["scratch"])
        depth = self.shape[3]
        for index in f.range(f["begin"], f["end"]):
            matrix, b = divmod(index, blocks)
            q, k, v, out, *optional = outer.pointers(matrix, pointers)
            mask = optional[0] if self.mask is not None else None
            sink = optional[-1] if self.sink is not None else None
            first, last = b * block, queries - layout.rows
            memory = layout.of(f, queries - first), scores
            rows = ScoreRows(f, self.scoring, *memory, keys, least, first, last, mask, mask_row, sink, sink_row)
            work = Block(f, rows, q, q_row, self.q[1], self.shape[2], k, v, f["scratch"], copies, keys)
            work = without_dropped_keys(work, self.sums, queries, depth) if self.sums.skips else work
            self._write_block(work, out, out_row)
        self.sums.end(f, f["scratch"])

    def _write_block(self, b: Block, out: Pointer, row: AnyInt) -> None:
        f, rows, sums = b.f, b.rows, self.sums
        sums.prepare(b)
        rows.begin()

        for panel, vectors, tail in each_panel(f, rows.keys, sums.keys):
            for s in repeat(f, 0, rows.layout.strips):
                scores = rows.scores_of(s) + panel * rows.layout.panel
                counts = [(count + 1, count) for count in sums.counts]
                for count in [vectors] if isinstance(vectors, int) else first_above(f, vectors, counts):
                    sums.scores(b, s, panel, count, scores)
                rows.update(s, panel * sums.keys, scores, vectors, tail)
        sums.finish(b)
        for panel, vectors, tail in each_panel(f, self.shape[3], sums.values):
            for s in repeat(f, 0, rows.layout.strips):
                for r, totals in sums.results(b, s, panel, vectors):
                    at = (rows.first(s) + r) * row + panel * (sums.values * f.lanes * self.out[1])
                    inverse = rows.inverse(s * rows.layout.rows + r)
                    for v, total in enumerate(totals):
                        count = tail if v == vectors - 1 else None
                        write(f, total * inverse, out, at + v * f.lanes * self.out[1], self.out[1], count)


def each_panel(f: Function, columns: AnyInt, most: int) -> Iterator[tuple[AnyInt, Any, AnyInt | None]]:
    """Loop over panels of `most` vectors of columns.

    Yields the index of a panel, its number of vectors, and the columns of its last vector (None: all lanes). The last
    panel may be partial, so it has separate code.
    """
    vectors = (columns + f.lanes - 1) // f.lanes
    last = (vectors - 1) // most
    for number in repeat(f, 0, last):
        yield number, most, None
    yield last, vectors - last * most, columns - (vectors - 1) * f.lanes
