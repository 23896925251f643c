"""Copies between tensors of any strides: views that are not aliases, Concat, changes of layout or stored type."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, axes_of, by_memory, row_key, size_of
from irload.plan.backends.llvm.builder import AnyInt
from irload.plan.backends.llvm.elements import F32, element_of, is_contiguous
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary, address
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, Row
from irload.plan.backends.llvm.kernels.elementwise import Pointwise, pointwise
from irload.plan.backends.llvm.kernels.loops import either
from irload.plan.backends.llvm.kernels.permuting import permuted_copy
from irload.plan.backends.llvm.kernels.reorder import in_chunks
from irload.plan.backends.llvm.kernels.runs import move, move_short
from irload.plan.backends.llvm.kernels.transposing import transposed_copy
from irload.plan.backends.llvm.selector import Selector
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
    kernel = permuted_copy(by_memory(elements), itemsize) or _run_copy(elements, itemsize, selector.target.lanes)
    return Launch(kernel, [target.start, source.start], [*target.keep, *source.keep])


def _run_copy(elements: Sequence[Axis], itemsize: int, lanes: int) -> Kernel:
    """The kernel that copies runs of bytes, or single words."""
    axes = by_memory([*elements, Axis(itemsize, (1, 1))])
    if not axes or axes[-1].strides != (1, 1):
        axes.append(Axis(1, (1, 1)))
    if itemsize != 4 or axes[-1].size != 4:
        return RunCopy(lanes, tuple(axes))
    words = tuple(axes[:-1]) or (Axis(1, (4, 4)),)
    return transposed_copy(words, lanes) or Pointwise(lanes, words, IDENTITY, (F32, F32))


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

    def write_vector(self, row: Row, given: None, vector: AnyInt, count: AnyInt | None) -> None:
        f, addresses = row.f, row.addresses
        if count is None:
            move(f, addresses, vector * self.width, self.width)
            return
        is_first = vector == 0 if isinstance(vector, int) else f.equal(vector, 0)
        for is_short in either(f, is_first, True, False):
            if is_short:
                move_short(f, addresses, count, self.width)
            else:
                move(f, addresses, vector * self.width + (count - self.width), self.width)
