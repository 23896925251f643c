"""Selects the blocking of a contraction: from the axes and strides of its tensors to the record of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, TypeVar

from irload.core.size import hint, is_size, reaches
from irload.core.tensor import Array
from irload.plan.backends.llvm import tuning
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.dot import FMA, Dot
from irload.plan.backends.llvm.elements import BF16, F32, element_of
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.contraction.grid import Grid
from irload.plan.backends.llvm.kernels.contraction.heights import rows_of_lines, shared_columns
from irload.plan.backends.llvm.kernels.contraction.nest import SHARE_PANELS, Access, Contraction
from irload.plan.backends.llvm.kernels.contraction.product import Product
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import WIDEST, SumLevel, tile_shape
from irload.plan.backends.llvm.tiles import ROWS
from irload.plan.ir.expression import Expression
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.backends.llvm.kernels.contraction.tile_product import TileProduct

AnyContraction = TypeVar("AnyContraction", bound=Contraction)


@record()
class ResultTensors:
    """y and the operands of the epilogue: the channel stride of each in bytes (`channel`), and its element type.

    `any_channels`: the number of channels differs between shapes, so that code reads it.
    """

    channels: int
    channel: tuple[int, ...]
    elements: tuple[str, ...]
    epilogue: Expression
    any_channels: bool = False

    @staticmethod
    def of(tensors: Sequence[Array], axis: int, channels: int, epilogue: Expression) -> ResultTensors:
        """The channels and types of tensors along an axis."""
        strides = tuple(tensor.strides[axis] for tensor in tensors)
        return ResultTensors(channels, strides, tuple(map(element_of, tensors)), epilogue, is_size(channels))


def outer_and_columns(axes: Sequence[Axis]) -> list[Axis]:
    """Merge the axes. The last axis of the result is the axis of the columns, which share their weights.

    It has size 1 if no axis shares weights. Strides of an axis: of the weights, in matrices; of x, y and the operands,
    in bytes.
    """
    loops = merged(axes)
    if not loops or loops[-1].strides[0]:
        loops.append(Axis(1, (0,) * len(axes[0].strides)))
    return loops


def tile_width(channels: int) -> int:
    """Tiles per panel. The number does not depend on the rows, so weights are packed once for all shapes."""
    return 1 if channels <= ROWS else 2


def even_rows(columns: int, most: int) -> int:
    """The columns per strip if a line is divided evenly into the fewest strips of at most `most` columns."""
    return -(-columns // -(-columns // most))


def register_product(
    target: Target,
    dot: Dot,
    axes: Sequence[Axis],
    levels: Sequence[SumLevel],
    results: ResultTensors,
    *,
    panel: int | None = None,
    grid: Grid | None = None,
    ragged: bool = False,
    fixed: bool = False,
) -> Product:
    """The contraction whose accumulators are vector registers.

    `panel`: vectors per panel of weights, by default the width of a tile. `ragged`: one code for lines of any length.
    `fixed`: the length does not differ between shapes.
    """
    loops = outer_and_columns(axes)
    columns = loops[-1].size
    ragged = ragged and (is_size(columns) or columns > 1)
    if ragged or reaches(columns, tuning.MANY_COLUMNS):
        columns = tuning.ANY_COLUMNS
    elif not fixed:
        columns = shared_columns(columns)
    channels, widest = results.channels, WIDEST
    if results.any_channels and panel is not None:  # one layout of the weights for all shapes
        channels, widest = max(hint(channels), panel * target.lanes), panel
    rows, vectors = tile_shape(target, columns, channels, panel or 1, hint(loops[-1].strides[1]), widest, dot)
    panel = vectors if panel is None else min(panel, -(-channels // target.lanes))
    if grid is not None and not ragged and (_run_of(levels) * vectors < tuning.LONG_RUN or grid.skips(rows)):
        chains = int(dot.cost.latency * dot.cost.products)
        rows = rows_of_lines(grid.windows[-1].count, rows, max(rows // 2, chains // vectors) + 1)
    product = _product(target, dot, loops, results, (rows, vectors), levels, panel, fixed=fixed)
    product = replace(product, ragged=ragged, grid=grid, any_channels=results.any_channels)
    return in_parts(product)


def rows_product(
    target: Target, dot: Dot, axis: Axis, levels: Sequence[SumLevel], results: ResultTensors, shape: tuple[int, int]
) -> Product:
    """The contraction of one row, or of a ragged line of rows, with tiles of a given shape (rows, vectors)."""
    panel = min(tuning.PANEL, -(-results.channels // target.lanes))
    levels = levels if dot.weights is None else groups_of(dot, levels[0])
    product = _product(target, dot, outer_and_columns([axis]), results, shape, levels, panel, fixed=True)
    return replace(product, ragged=axis.size > 1, shared=SHARE_PANELS)


def _run_of(levels: Sequence[SumLevel]) -> int:
    """The number of words that are summed per tap: the iterations of the levels nested in the loops over taps."""
    taps = max(k for k, level in enumerate(levels) if level.axis is not None)
    return prod(level.count for level in levels[taps + 1 :])


def widens_in_registers(target: Target, rows: int, panel: int, dot: Dot = FMA) -> bool:
    """True if one tile has all rows, so that each weight is widened in registers only once."""
    return rows * panel <= _widening_sums(target, dot)


def _widening_sums(target: Target, dot: Dot) -> int:
    """The maximum number of accumulators of a tile that widens its weights in registers."""
    return int((target.registers - dot.cost.registers) * tuning.WIDENING_SUMS) // dot.cost.sums


def compressed_product(
    target: Target, dot: Dot, axes: Sequence[Axis], words: SumLevel, results: ResultTensors, panel: int, *, fixed: bool
) -> Product:
    """The contraction with compressed weights. `fixed`: the number of rows does not differ between shapes.

    If only one tile uses each weight, it widens the weights in registers. Otherwise the tiles that use a panel share a
    copy, which is widened into scratch memory, as for all products in bf16. For quantized data, all tiles widen codes
    to bytes in registers, since this takes few instructions.
    """
    assert dot.weights is not None
    loops = outer_and_columns(axes)
    vectors = -(-results.channels // target.lanes)
    panel = min(panel, vectors)
    create = partial(_product, target, dot, loops, results, fixed=fixed)
    rows, most = loops[-1].size if fixed else shared_columns(loops[-1].size), _widening_sums(target, dot)
    separate = any(axis.strides[0] for axis in loops)
    one_tile = widens_in_registers(target, rows, panel, dot) and prod(axis.size for axis in loops[:-1]) == 1
    if dot.a != BF16 and (separate or one_tile):
        rows = min(rows, max(most // panel, 1))
        vectors = panel * max(1, min(min(most, target.registers // 2) // rows, 4, vectors) // panel)
        return create((rows, vectors), groups_of(dot, words), panel)
    shape = tile_shape(target, rows, results.channels, panel, loops[-1].strides[1], widest=panel, dot=dot)
    if dot.group:
        return create(shape, groups_of(dot, words), panel)
    return in_parts(replace(create(shape, (words,), panel), widens=True))


def groups_of(dot: Dot, words: SumLevel) -> tuple[SumLevel, ...]:
    """The loop over the groups of compressed weights or of quantized data, and the loop over the words of a group."""
    assert dot.weights is not None
    count = words.count * dot.k // dot.group if dot.group else dot.weights.groups(words.count)
    if count == 1 and not dot.group:
        return (words,)
    group = words.count // count
    return SumLevel(count, group * words.x), SumLevel(group, words.x)


def in_parts(product: Product) -> Product:
    """Splits long sums into parts (blocking over k) if several tiles use the same weights.

    All tiles of a block use one part of the weights before the next, so that the part stays in the cache. A panel of
    the weights of a whole long sum and the data of a block would evict each other from L2. Partial sums are stored in
    y, so sums and y must be f32.
    """
    first, *rest = product.levels
    length = prod(level.count for level in product.levels)
    if length <= tuning.LONG_SUM or product.count == 1 or product.y.element != F32 or product.dot.sums != F32:
        return product
    if rest:
        return replace(product, split=first.stride is not None)  # a part is a row of taps
    turn = max(tuning.UNROLL, product.dot.members)
    counts = range(2, length // tuning.SUM_PART * 2 + 2)
    parts = next((n for n in counts if length % (n * turn) == 0 and length <= n * tuning.SUM_PART), 1)
    if parts == 1 or first.axis is not None:
        return product
    part = length // parts
    return replace(product, levels=(SumLevel(parts, part * first.x), SumLevel(part, first.x)), split=True)


def tile_product(
    dot: Dot, axes: Sequence[Axis], chunks: Chunks, taps: tuple[int, ...], results: ResultTensors, width: int
) -> TileProduct:
    """The contraction whose accumulators are tiles of AMX, with panels of `width` tiles."""
    from irload.plan.backends.llvm.kernels.contraction.tile_product import TileProduct  # not needed by f32

    loops = outer_and_columns(axes)
    rows = even_rows(loops[-1].size, ROWS)
    lines = prod(axis.size for axis in loops[:-1] if not axis.strides[0])
    height = min(4 // width, lines * -(-loops[-1].size // rows))
    return TileProduct(*_described(dot, loops, results), rows, chunks, taps, height, width)


def packing_of(product: Contraction, chunks: Chunks) -> Packing:
    """The layout in which a contraction reads its weights."""
    if product.dot.tiled:
        return Packing.chunked(product.packed_channels // ROWS, overlap=chunks.overlap)
    return Packing(product.dot.b, product.packed_channels, 1, chunks.rows(product.dot))


def _product(
    target: Target,
    dot: Dot,
    loops: Sequence[Axis],
    results: ResultTensors,
    shape: tuple[int, int],
    levels: Sequence[SumLevel],
    panel: int,
    *,
    fixed: bool,
) -> Product:
    """The contraction by register tiles of this shape (rows, vectors)."""
    rows, vectors = shape
    common = _described(dot, loops, results)
    return Product(*common, rows, tuple(levels), target.lanes, vectors, panel, cached=target.cached, fixed=fixed)


def _described(
    dot: Dot, axes: Sequence[Axis], results: ResultTensors
) -> tuple[Dot, tuple[int, ...], int, int, Access, Access, tuple[Access, ...], Expression, tuple[int, ...]]:
    """The values of the fields that all contractions share, in order."""
    *outer, columns = axes

    def access(k: int, channel: int = 0, element: str = dot.a) -> Access:
        return Access(tuple(axis.strides[k] for axis in outer), columns.strides[k], channel, element)

    y, *operands = (
        access(2 + k, channel, element)
        for k, (channel, element) in enumerate(zip(results.channel, results.elements, strict=True))
    )
    sizes, weights = tuple(axis.size for axis in outer), tuple(axis.strides[0] for axis in outer)
    return dot, sizes, columns.size, results.channels, access(1), y, tuple(operands), results.epilogue, weights


def shared(product: AnyContraction, threads: int, data: int) -> AnyContraction:
    """Select whether threads divide the units of data or the panels of weights. `data`: the bytes of all data.

    Each thread reads all weights if units are divided, and all data if panels are.
    """
    if threads == 1:
        return product
    panels = replace(product, shared=SHARE_PANELS)
    dividing_units = 100 * panels.count * _slots(product.count, threads)
    dividing_panels = product.count * _slots(panels.count, threads)
    widens = isinstance(product, Product) and product.widens  # once for each block
    if dividing_units > 105 * dividing_panels or (widens and dividing_units >= 80 * dividing_panels):
        return panels
    return panels if product.weight_bytes > data and dividing_units >= 95 * dividing_panels else product


def _slots(count: int, threads: int) -> int:
    """`count` rounded up to a multiple of the threads, since threads with fewer units wait for the others."""
    return -(-count // threads) * threads
