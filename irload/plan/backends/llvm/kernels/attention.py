"""Attention: two kernels pack keys and values into panels, a third computes one block of queries at a time.

The scores of a block stay in the cache between the product with the keys, the softmax and the product with the values.
With few queries, there is only one kernel, which reads keys and values in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irload.core.size import applied, fixed, is_size
from irload.core.tensor import Array
from irload.plan.backends.llvm import tuning
from irload.plan.backends.llvm.arguments import WORD, Arguments, float_word, unknown
from irload.plan.backends.llvm.axes import ANY, Axis
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import BF16
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.attended_keys import without_dropped_keys
from irload.plan.backends.llvm.kernels.attention_sums import MOST_ROWS, AttentionSums, Block, PairSums, RowSums
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.kernels.loops import first_above, repeat
from irload.plan.backends.llvm.kernels.packing import Pack
from irload.plan.backends.llvm.kernels.score_rows import ScoreRows, Scoring
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tile import tile_shape
from irload.plan.backends.llvm.tiles import ROWS
from irload.plan.ir.softmax_threshold import least_exponent
from irload.plan.ir.steps import AttentionStep
from irload.record import record


@record()
class Attend(LineKernel):
    """out = softmax(q kᵀ · scale + mask) v. Pointers: q, k, v, out, then mask and sink if present.

    k and v are packed in panels, except for `RowSums`, which read them in place. A unit is a block of `block` queries
    of one matrix, divided into strips; the last strip overlaps the previous one. Strides in bytes: `outer`, between the
    matrices of each pointer; `q`, `out`, `mask`, between rows, and between columns; `sink`, between rows.

    The code reads the outer axes, the numbers of queries and keys, the block, and all row strides. Compiled in: width
    and depth, whose loops are unrolled or divided into vectors; the column strides of q, out and the mask, which are
    offsets in a tile; the shape of a tile (`sums`), which has fewer rows if there are fewer queries; scale and kind of
    the mask.
    """

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
    def instruction(self) -> Dot:
        return self.sums.dot

    @property
    def code(self) -> Attend:
        mask = None if self.mask is None else (ANY if self.mask[0] else 0, self.mask[1])
        sink = None if self.sink is None else ANY if self.sink else 0
        shape = (ANY, ANY, *self.shape[2:])
        q, out = (ANY, self.q[1]), (ANY, self.out[1])
        return replace(self, outer=(), shape=shape, q=q, out=out, mask=mask, sink=sink, sums=self.sums.code, block=ANY)

    @property
    def given_numbers(self) -> tuple[int, ...]:
        least = applied(lambda count: float_word(least_exponent(count)), self.shape[1])
        return (*self.sums.numbers, least, *unknown(self, self.code))

    @property
    def tensors(self) -> int:
        return 4 + (self.mask is not None) + (self.sink is not None)

    @property
    def parts(self) -> int:
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

    def read(self, arguments: Arguments) -> tuple[Vec, Attend]:
        arguments.integers(len(self.sums.numbers))
        (least,) = arguments.vectors(1)
        return least, arguments.filled(self)

    def write(self, f: Function) -> None:
        self.sums.begin(f, f["arguments"] + WORD * self.tensors, f["scratch"])
        LineKernel.write(self, f)
        self.sums.end(f, f["scratch"])

    def write_part(self, f: Function, given: tuple[Vec, Attend], starts: list[Pointer], part: AnyInt) -> None:
        (least, kernel), (q, k, v, out, *optional) = given, starts
        queries, keys, width, depth = kernel.shape
        layout, scores = kernel.sums.layout(kernel.block, keys), f["scratch"] + self.sums.nbytes
        copies = scores + layout.all_bytes(f.lanes)
        mask = None if kernel.mask is None else optional[0], kernel.mask[0] if kernel.mask else 0
        sink = None if kernel.sink is None else optional[-1], kernel.sink or 0
        first, last = part * kernel.block, queries - layout.rows
        memory = layout.of(f, queries - first), scores
        rows = ScoreRows(f, self.scoring, *memory, keys, least, first, last, *mask, *sink)
        block = Block(f, rows, q, *kernel.q, width, k, v, f["scratch"], copies, keys)
        block = without_dropped_keys(block, kernel.sums, queries, depth) if self.sums.skips else block
        kernel._write_block(block, out)  # noqa: SLF001

    def _write_block(self, b: Block, out: Pointer) -> None:
        """Emit a block of queries. Fields that the code reads are run-time values."""
        f, rows, sums, (row, column) = b.f, b.rows, self.sums, self.out
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
                    at = (rows.first(s) + r) * row + panel * (sums.values * f.lanes * column)
                    inverse = rows.inverse(s * rows.layout.rows + r)
                    for v, total in enumerate(totals):
                        count = tail if v == vectors - 1 else None
                        write(f, total * inverse, out, at + v * f.lanes * column, column, count)


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


def select_attention(step: AttentionStep, selector: Selector) -> list[Launch]:
    """The kernels of attention: in bf16 if this is allowed and faster, else in f32."""
    q, k, v = (selector.array(value) for value in step.inputs[:3])
    masks = [selector.array(value) for value in step.masks]
    out = selector.array(step.output)
    *outer, queries, depth = out.shape
    keys, width = k.shape[-2:]
    q = np.broadcast_to(q, (*outer, queries, width))
    mask = np.broadcast_to(masks[0], (*outer, queries, keys)) if masks else None
    sink = np.broadcast_to(selector.array(step.inputs[-1]), (*outer, queries, 1)) if step.has_sink else None
    if queries == 1 and outer and not step.causal and all(a.ndim > 2 and a.shape[-3] == 1 for a in (k, v)):
        q, out, k, v = q[..., 0, :], out[..., 0, :], k[..., 0, :, :], v[..., 0, :, :]
        mask, sink = (None if array is None else array[..., 0, :] for array in (mask, sink))
        *outer, queries = outer  # the heads that share keys and values are rows of one matrix
    if _are_few(q, k, v, selector.target.lanes):
        # if other numbers of queries share the code: the largest power of two up to 4
        rows = next(n for n in (4, 2, 1) if queries >= n) if is_size(queries) else queries
        sums = RowSums.of(selector.target.lanes, rows, depth, (k.strides[-2], v.strides[-2]))
        block = -(-queries // rows) * rows
        strides = [np.broadcast_to(a, (*outer, *a.shape[-2:])).strides[:-2] for a in (k, v)]
        pointers, packs = [k, v], list[Launch]()
    else:
        sums, block = _sums(step, selector, (queries, keys, width, depth), prod(outer))
        pointers, strides, packs = _packed(selector, (k, v), len(outer), sums)
    dropped = step.dropped if mask is not None and mask.dtype == np.bool_ else None
    column = None if mask is None else mask.strides[-1]
    optional = [array for array in (mask, sink) if array is not None]
    strides = [q.strides[:-2], *strides, out.strides[:-2], *(a.strides[:-2] for a in optional)]
    axes = tuple(Axis(n, tuple(along)) for n, *along in zip(outer, *strides, strict=True))
    rows = _matrix(q), _matrix(out), None if mask is None else _matrix(mask), None if sink is None else sink.strides[-2]
    scale, coarse = step.query_scale * step.scale, sums.dot.b == BF16
    scoring = Scoring(scale, column, dropped, step.causal, sink is not None, coarse)
    attend = Attend(axes, (queries, keys, width, depth), *rows, scoring, sums, block)
    return [*packs, selector.launch(attend, [q, *pointers, out, *optional])]


def _are_few(q: Array, k: Array, v: Array, lanes: int) -> bool:
    """True if keys and values can be read in place, and packing them would take as long as the products."""
    contiguous = all(a.strides[-1] == 4 and a.shape[-1] % lanes == 0 for a in (q, k, v))
    return contiguous and k.shape[-1] <= tuning.WIDEST_KEY and q.shape[-2] <= MOST_ROWS


def _matrix(array: Array) -> tuple[int, int]:
    """Bytes between rows and between columns."""
    return array.strides[-2], array.strides[-1]


def _sums(
    step: AttentionStep, selector: Selector, shape: tuple[int, int, int, int], matrices: int
) -> tuple[AttentionSums, int]:
    """The micro-kernel of the products, and the number of queries per block."""
    target, (queries, keys, _, depth) = selector.target, shape
    if selector.bf16 and target.tiles and pays_in_tiles(step):
        from irload.plan.backends.llvm.kernels.tile_sums import TileSums

        rows, height = strips(queries, keys, matrices, selector.threads)
        return TileSums.of(rows, height), rows * height
    most = fixed(min(queries, tuning.ATTENTION_ROWS))
    kind = PairSums if selector.bf16 and target.bf16 and not target.tiles else AttentionSums
    rows, vectors = tile_shape(
        target, most, tuning.ATTENTION_COLUMNS, tuning.PANEL, widest=tuning.ATTENTION_WIDEST, dot=kind.dot
    )
    values = min(vectors, -(-depth // target.lanes))
    sums = kind(target.lanes, rows, vectors, values)
    return sums, rows * strips_of_block(queries, keys, rows, matrices, selector.threads)


def pays_in_tiles(step: AttentionStep) -> bool:
    """True if tiles of AMX are mostly filled, and the number of products is worth the conversion to bf16."""
    queries, depth = step.output.shape[-2:]
    keys, width = step.inputs[1].shape[-2:]
    products = step.output.size // depth * keys * (width + depth)
    filled = (
        queries >= tuning.LEAST_QUERIES and keys >= tuning.LEAST_KEYS and min(width, depth) >= tuning.LEAST_KEY_WIDTH
    )
    return filled and products >= tuning.LEAST_ATTENTION


def strips_of_block(queries: int, keys: int, rows: int, matrices: int, threads: int) -> int:
    """Strips of `rows` queries per block. Their scores fit the cache, and all threads have blocks if possible."""
    strips = -(-queries // rows)
    most = max(1, tuning.SCORES // (rows * keys * 4))
    blocks = max(-(-strips // most), min(strips, -(-2 * threads // matrices)))
    return -(-strips // blocks)


def strips(queries: int, keys: int, matrices: int, threads: int) -> tuple[int, int]:
    """The rows per tile of AMX and the tiles per block that take the fewest cycles.

    Two tiles share each load of keys and values if their scores fit the L2 cache.
    """
    tiles = 2 if queries > ROWS and 2 * ROWS * keys * 4 <= tuning.TILE_SCORES else 1

    def cost(rows: int) -> float:
        turns = -(-matrices * -(-queries // (rows * tiles)) // threads)
        return turns * tiles * (max(rows + 1, 9) * 4 + rows * 8)

    return min(range(min(ROWS, queries // tiles), 0, -1), key=cost), tiles


def _packed(
    selector: Selector, matrices: tuple[Array, Array], rank: int, sums: AttentionSums
) -> tuple[list[Temporary], list[tuple[int, ...]], list[Launch]]:
    """Keys and values in panels, packed once along broadcast axes; their strides, and the launches that pack them."""
    pointers, strides, packs = list[Temporary](), list[tuple[int, ...]](), list[Launch]()
    keys, values = matrices
    for matrix, panel in ((keys.swapaxes(-1, -2), sums.keys), (values, sums.values)):
        sizes = tuple(n if stride else 1 for n, stride in zip(matrix.shape[:-2], matrix.strides, strict=False))
        packing = Packing.read_by(sums.dot, sums.lanes, panel)
        pack = Pack.of(packing, matrix[tuple(slice(None) if n > 1 else 0 for n in sizes)])
        along = (prod(sizes[k + 1 :]) * pack.matrix if n > 1 else 0 for k, n in enumerate(sizes))
        strides.append((*(0,) * (rank - len(sizes)), *along))
        pointers.append(selector.temporary(pack.nbytes))
        packs.append(selector.launch(pack, [matrix, pointers[-1]]))
    return pointers, strides, packs
