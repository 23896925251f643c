"""Copies between tensors of any strides: views that are not aliases, Concat, changes of layout or stored type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments, moved, walk_lines
from irload.plan.backends.llvm.axes import Axis, axes_of, by_memory, row_key, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, element_of, is_contiguous
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary, address
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, RowCode, VectorCode
from irload.plan.backends.llvm.kernels.elementwise import Pointwise, pointwise
from irload.plan.backends.llvm.kernels.loops import either
from irload.plan.backends.llvm.kernels.permuting import PermutedCopy, permuted_blocks
from irload.plan.backends.llvm.kernels.reorder import in_chunks
from irload.plan.backends.llvm.kernels.runs import move, move_short
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tuning import COPIED_BLOCK
from irload.plan.ir.steps import IDENTITY, ConcatStep, RelayoutStep, ViewStep
from irload.plan.ir.strides import Strided, View
from irload.plan.memory.layout import RowCodes
from irload.record import record


@record()
class CopyOperand:
    """A tensor in memory. `strided`: shape, strides and offset in bytes. `keep`: arrays that must outlive a launch."""

    pointer: int | Temporary
    strided: Strided
    keep: Sequence[Array] = ()

    @staticmethod
    def of(array: Array) -> CopyOperand:
        """The operand for an array."""
        return CopyOperand(address(array), Strided(array.shape, array.strides), [array])

    def through(self, view: View) -> CopyOperand | None:
        """The view of the tensor, None if strides cannot express it."""
        strided = view.of(self.strided)
        return None if strided is None else CopyOperand(self.pointer, strided, self.keep)

    @property
    def start(self) -> int | Temporary:
        """The address of position 0."""
        pointer, offset = self.pointer, self.strided.offset
        return Temporary(pointer.offset + offset) if isinstance(pointer, Temporary) else pointer + offset


def select_view(step: ViewStep, selector: Selector) -> list[Launch]:
    """The copy of a view, unless the memory plan makes the output an alias of the input."""
    if selector.memory.is_view(step.output):
        return []
    array = selector.stored(step.output)
    itemsize = array.itemsize
    source, out = CopyOperand.of(selector.stored(step.inputs[0])), CopyOperand.of(array)
    viewed = source.through(step.view)
    if viewed is not None:
        return [copy(out, viewed, itemsize, selector)]
    shape = source.strided.shape
    reshaped_out = out.through(View("reshape", shape))
    if reshaped_out is not None:
        return [copy(reshaped_out, source, itemsize, selector)]
    temporary = selector.temporary(step.output.nbytes)
    packed, reshaped = (CopyOperand(temporary, Strided.dense(s).in_bytes(itemsize)) for s in (shape, out.strided.shape))
    return [copy(packed, source, itemsize, selector), copy(out, reshaped, itemsize, selector)]


def select_concat(step: ConcatStep, selector: Selector) -> list[Launch]:
    """Copies of the inputs into slices of the output. An input that was computed in its slice is not copied."""
    array = selector.stored(step.output)
    out = CopyOperand.of(array)
    launches: list[Launch] = []
    start = 0
    for value in step.inputs:
        ranges = [(0, n, 1) for n in value.shape]
        ranges[step.axis] = (start, value.shape[step.axis], 1)
        start += value.shape[step.axis]
        target = out.through(View("slice", ranges=tuple(ranges)))
        if target is not None:
            source = CopyOperand.of(selector.stored(value))
            if (source.start, source.strided.strides) != (target.start, target.strided.strides):
                launches.append(copy(target, source, array.itemsize, selector))
    return launches


def select_relayout(step: RelayoutStep, selector: Selector) -> list[Launch]:
    """A copy to another layout or another type of storage."""
    source, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    chunks = selector.chunks(step.output)
    codes = selector.memory.layout(step.output).codes
    if chunks is not None and codes is not None:
        return _quantize(source, chunks, codes, selector)
    if chunks is not None:
        return [selector.launch(in_chunks(source.shape, source.strides), [source, chunks])]
    if source.dtype != out.dtype:
        return [pointwise(IDENTITY, [out], [source], selector)]
    return [copy(CopyOperand.of(out), CopyOperand.of(source), out.itemsize, selector)]


def _quantize(x: Array, to: Array, codes: RowCodes, selector: Selector) -> list[Launch]:
    """The quantization of rows, after a copy of rows that are not contiguous."""
    from irload.plan.backends.llvm.kernels.quantize_rows import QuantizeRows  # not needed by f32

    rows, strides, copies = (x, x.strides, []) if is_contiguous(x, -1) else contiguous_rows(x, selector)
    kernel = QuantizeRows.of(selector.target.lanes, x.shape, strides, codes, element_of(x))
    return [*copies, selector.launch(kernel, [rows, to])]


def contiguous_rows(x: Array, selector: Selector) -> tuple[Temporary, tuple[int, ...], list[Launch]]:
    """A copy of an array whose last axis is not contiguous: the memory, its strides and the launch."""
    dense = Strided.dense(x.shape).in_bytes(x.itemsize)
    rows = selector.temporary(prod(x.shape) * x.itemsize)
    return rows, dense.strides, [copy(CopyOperand(rows, dense), CopyOperand.of(x), x.itemsize, selector)]


def copy(target: CopyOperand, source: CopyOperand, itemsize: int, selector: Selector) -> Launch:
    """The kernel that copies elements of `itemsize` bytes between tensors of one shape."""
    elements = axes_of(target.strided.shape, target.strided.strides, source.strided.strides)
    blocks = permuted_blocks(by_memory(elements), itemsize)
    if blocks is not None:
        return Launch(PermutedCopy(itemsize, *blocks), [target.start, source.start], [*target.keep, *source.keep])
    axes = by_memory([*elements, Axis(itemsize, (1, 1))])
    if not axes or axes[-1].strides != (1, 1):
        axes.append(Axis(1, (1, 1)))
    kernel: Kernel = RunCopy(selector.target.lanes, tuple(axes))
    if itemsize == 4 and axes[-1].size == 4:
        words = tuple(axes[:-1]) or (Axis(1, (4, 4)),)
        ends = contiguous_axes(words)
        kernel = Pointwise(selector.target.lanes, words, IDENTITY, (F32, F32))
        if ends is not None:
            kernel = TransposedCopy(selector.target.lanes, *ends)
    return Launch(kernel, [target.start, source.start], [*target.keep, *source.keep])


@record()
class RunCopy(BlockKernel):
    """Copies runs of bytes, which are contiguous along the last axis. Pointers: to, from."""

    @property
    def cycles(self) -> float:
        return size_of(self.axes[:-1]) * (4 + self.axes[-1].size / 16)

    @property
    def width(self) -> int:
        return 4 * self.lanes

    @property
    def block(self) -> int:
        return COPIED_BLOCK

    @property
    def row(self) -> Axis:
        return row_key(self.axes[-1], self.width, (1, 1))

    def row_code(self, f: Function, arguments: Arguments) -> RowCode:
        def run(addresses: list[Pointer], _: tuple[AnyInt, ...]) -> VectorCode:
            def vector(at: AnyInt, count: AnyInt | None) -> None:
                if count is None:
                    move(f, addresses, at * self.width, self.width)
                    return
                is_first = at == 0 if isinstance(at, int) else f.equal(at, 0)
                for is_short in either(f, is_first, True, False):
                    if is_short:
                        move_short(f, addresses, count, self.width)
                    else:
                        move(f, addresses, at * self.width + (count - self.width), self.width)

            return vector

        return run


def contiguous_axes(axes: Sequence[Axis]) -> tuple[tuple[Axis, ...], Axis, Axis] | None:
    """The outer axes, the axis along which the target is contiguous, and the axis along which the source is.

    None unless these are two different axes. Each axis has the strides of the target and the source.
    """
    inner = next((axis for axis in axes if axis.strides[0] == 4), None)
    other = next((axis for axis in axes if axis.strides[1] == 4), None)
    if inner is None or other is None or inner is other:
        return None
    return tuple(axis for axis in axes if axis is not inner and axis is not other), inner, other


@record()
class TransposedCopy(Kernel):
    """Transposes squares of `lanes` × `lanes` elements in registers. Pointers: to, from.

    `rows`: the axis along which the target is contiguous; `columns`: the axis along which the source is. A unit is a
    band of columns with all rows. The last squares overlap their neighbours. The code reads all sizes and strides;
    sizes smaller than a square, and the squares per band, are compiled in.
    """

    lanes: int
    outer: tuple[Axis, ...]
    rows: Axis
    columns: Axis

    @property
    def code(self) -> TransposedCopy:
        rows, columns = min(self.rows.size, self.lanes), self._width * self._squares
        return replace(self, outer=(), rows=Axis(rows, ()), columns=Axis(columns, ()))

    @property
    def numbers(self) -> tuple[int, ...]:
        sizes = self.rows.size, self.columns.size, self._bands
        return (*sizes, self.rows.strides[1], self.columns.strides[0], *table(self.outer, 2))

    @property
    def count(self) -> int:
        return size_of(self.outer) * self._bands

    @property
    def cycles(self) -> float:
        return size_of((*self.outer, self.rows, self.columns))

    @property
    def _height(self) -> int:
        """Rows of a square."""
        return min(self.lanes, self.rows.size)

    @property
    def _width(self) -> int:
        """Columns of a square."""
        return min(self.lanes, self.columns.size)

    @property
    def _squares(self) -> int:
        """The squares per row of a band, as many as a cache line of the source has."""
        return min(max(1, LINE // (4 * self.lanes)), -(-self.columns.size // self._width))

    @property
    def _bands(self) -> int:
        return -(-self.columns.size // (self._width * self._squares))

    def write(self, function: Function) -> None:
        f, arguments = function, Arguments(function)
        pointers = arguments.pointers(2)
        rows, columns, bands, down, right = arguments.integers(5)
        for starts, number in walk_lines(f, bands, arguments.table(2), pointers):
            first = number * (self._width * self._squares)
            lefts = [f.minimum(first + k * self._width, columns - self._width) for k in range(self._squares)]
            for row in f.range(0, rows, self._height):
                top = f.minimum(row, rows - self._height)
                for column in lefts:
                    self._transpose(f, moved(starts, [top * 4 + column * right, top * down + column * 4]), down, right)

    def _transpose(self, f: Function, addresses: list[Pointer], down: AnyInt, right: AnyInt) -> None:
        """Transpose one square. `down`: row stride of the source; `right`: column stride of the target."""
        target, source = addresses
        square = [f.load(source, down * k, self._width) for k in range(self._height)]
        square += [f.zero()] * (self.lanes - self._height)
        for k, line in enumerate(transposed(f, square)[: self._width]):
            _store_first(f, line, target + right * k, self._height)


def _store_first(f: Function, value: Vec, pointer: Pointer, count: int) -> None:
    """Store the first elements in powers of 2, since masked stores are slow on some processors."""
    done = 0
    while done < count:
        width = 1 << ((count - done).bit_length() - 1)
        if width == 1:
            f.store_scalar(value.lane(done), pointer, 4 * done)
        else:
            f.store(f.shuffle(value, value, range(done, done + width)), pointer, 4 * done)
        done += width
