"""Matmuls as contractions. Constant weights are packed when they are loaded, computed ones in each inference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from irload.core.size import is_size
from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.choosing import chosen
from irload.plan.backends.llvm.dot import Dot, compressed_dot, quantized_dot
from irload.plan.backends.llvm.elements import BF16, F32, element_of
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.kernels.contraction import build
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks, reads_in_place
from irload.plan.backends.llvm.kernels.contraction.nest import Contraction
from irload.plan.backends.llvm.kernels.copying import contiguous_rows
from irload.plan.backends.llvm.kernels.packing import Pack
from irload.plan.backends.llvm.kernels.precision import chosen_dot
from irload.plan.backends.llvm.kernels.weights import compression_of, narrow_form, pack_panels, pack_weights
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.sized_arrays import spread
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import PANEL
from irload.plan.backends.llvm.widening import CompressedPanel, Compression
from irload.plan.ir.compressed import compressed
from irload.plan.ir.expression import ADD, Expression
from irload.plan.ir.program import Value
from irload.plan.ir.steps import MatMulStep
from irload.record import record


def select_matmul(step: MatMulStep, selector: Selector) -> list[Launch]:
    """The kernels of a matmul, whose leading axes broadcast."""
    dot, b = chosen_dot(step, selector), step.inputs[1]
    axis, codes = step.summed_axis, selector.memory.layout(step.inputs[0]).codes
    if codes or dot.a == F32:
        form = compression(b, prod(step.output.shape[:-1]), axis, selector)
    else:
        form = narrow_form(b, axis) if dot.a == BF16 and not selector.bf16 else None
    if form is not None:
        dot = quantized_dot(selector.target, form, codes.group) if codes else compressed_dot(form, dot.a)
    a, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    operands, epilogue = [selector.stored(v) for v in step.operands], step.epilogue
    if step.integers is not None and step.integers.zero_point:
        from irload.plan.backends.llvm.kernels.quantized import compensation  # not needed by f32

        operands.insert(0, compensation(b, step.integers.zero_point, (1 if step.transpose_b else 0,), selector))
        epilogue = ADD.then(epilogue, 0)
    tensors = [out, *(spread(operand, out.shape) for operand in operands)]
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    common = (b.shape[:-2], tensors, epilogue, dot, selector)
    rows = RowContraction.of(step.inputs[0], a, *common, constant=b.is_constant)
    if form is not None:
        packed = packed_codes(b, CompressedPanel(form, rows.chunks.depth, rows.product.packed_channels), axis, selector)
        return [*rows.copies, rows.launch(packed, tensors, selector)]
    if b.is_constant:
        packed = packed_matrices(b, rows.packing, selector, transposed=step.transpose_b)
        return [*rows.copies, rows.launch(packed, tensors, selector)]
    weights = selector.array(b)
    pack_b = Pack.of(rows.packing, weights.swapaxes(-1, -2) if step.transpose_b else weights)
    buffer = selector.temporary(pack_b.nbytes)
    return [*rows.copies, selector.launch(pack_b, [weights, buffer]), rows.launch(buffer, tensors, selector)]


def compression(value: Value, rows: int, axis: int, selector: Selector) -> Compression | None:
    """The form of packed weights that remain compressed; None for weights that are packed as f32. `rows`: of the data.

    16-bit floats are packed as f32 if many rows reuse the weights, and the model has no variables: models with
    variables (decoders) also multiply single tokens by the weights.
    """
    weights = compressed(value.source)
    if weights is None:
        return None
    one_tile = build.widens_in_registers(selector.target, rows, PANEL)
    if weights.is_short and not (one_tile or selector.variables):
        return None
    return compression_of(weights, axis)


def packed_codes(value: Value, panel: CompressedPanel, axis: int, selector: Selector) -> Array:
    """The packed weights of a value that remain compressed."""
    pack = partial(pack_panels, panel, axis, selector.target, selector.threads)
    return selector.packed_constant(value, (panel, axis), pack)


def packed_matrices(value: Value, packing: Packing, selector: Selector, *, transposed: bool) -> Array:
    """The packed weights of a constant: matrices [depth, columns], or `transposed`."""

    def pack(weights: Array) -> Array:
        columns = weights if transposed else weights.swapaxes(-1, -2)
        return pack_weights(columns.reshape(-1, *columns.shape[-2:]), packing, selector.target, selector.threads)

    return selector.packed(value, (packing, transposed), pack, stored=True)


@record()
class RowContraction:
    """The product of rows of matrices by packed weights, and the launches that copy the data for it, if needed.

    `product`: the kernel, or the kernel at the traced shape. The weights are packed identically for all shapes.
    """

    data: Array | Temporary
    copies: list[Launch]
    kernel: Kernel
    product: Contraction
    chunks: Chunks

    @property
    def packing(self) -> Packing:
        """The layout of uncompressed weights."""
        return build.packing_of(self.product, self.chunks)

    @staticmethod
    def of(
        value: Value,
        a: Array,
        matrices: Sequence[int],
        tensors: Sequence[Array],
        epilogue: Expression,
        dot: Dot,
        selector: Selector,
        *,
        constant: bool = True,
    ) -> RowContraction:
        """The contraction of `a`, the array of `value`. `tensors`: the result and the operands, [batch…, m, n].

        `matrices`: the leading axes of the weights, which broadcast to the batch axes.
        """
        *batch, m, n = tensors[0].shape
        aligned = (*(1,) * (len(batch) - len(matrices)), *matrices)
        matrix_strides = [0 if size == 1 else prod(aligned[k + 1 :]) for k, size in enumerate(aligned)]
        order = sorted(range(len(batch)), key=lambda k: matrix_strides[k] == 0)
        a = np.broadcast_to(a, (*batch, m, a.shape[-1]))
        separate = sum(stride != 0 for stride in matrix_strides)
        data, copies, strides, chunks, nbytes = _read(value, a, order, separate, dot, selector, constant=constant)
        axes = [
            Axis(batch[k], (matrix_strides[k], stride, *(t.strides[k] for t in tensors)))
            for k, stride in zip(order, strides, strict=False)
        ]
        axes.append(Axis(m, (0, strides[-1], *(t.strides[-2] for t in tensors))))
        results = build.ResultTensors.of(tensors, -1, n, epilogue)
        choose = partial(_product, dot, selector.target, selector.threads, not selector.resized)
        given = chunks, results, axes, nbytes
        if any(is_size(axis.size) for axis in axes) and not dot.tiled:
            return RowContraction(data, copies, *chosen(choose, *given), chunks)
        product = choose(*given)
        return RowContraction(data, copies, product, product, chunks)

    def launch(self, packed: Array | Temporary, results: Sequence[Array | Temporary], selector: Selector) -> Launch:
        """The launch of the product, after the `copies`. `results`: y and the operands."""
        return selector.launch(self.kernel, [self.data, packed, *results])


def _product(
    dot: Dot,
    target: Target,
    threads: int,
    fixed: bool,
    chunks: Chunks,
    results: build.ResultTensors,
    axes: Sequence[Axis],
    nbytes: int,
) -> Contraction:
    """The kernel for these axes. `fixed`: only the batch differs between shapes. `nbytes`: the size of the data."""
    if dot.tiled:
        product = build.tile_product(dot, axes, chunks, (0,), results, build.tile_width(results.channels))
    elif dot.weights is not None:
        product = build.compressed_product(target, dot, axes, chunks.levels(dot)[0], results, PANEL, fixed=fixed)
    else:
        product = build.register_product(target, dot, axes, chunks.levels(dot), results, panel=PANEL, fixed=fixed)
    return build.shared(product, threads, nbytes)


def _read(
    value: Value, a: Array, order: Sequence[int], separate: int, dot: Dot, selector: Selector, *, constant: bool
) -> tuple[Array | Temporary, list[Launch], list[int], Chunks, int]:
    """The data [batch…, rows, length] in place or a copy, launches that copy it, its strides, its chunks and its bytes.

    `order`: of the batch axes; the first `separate` axes have separate weights.
    """
    length, copied = a.shape[-1], selector.chunks(value)
    codes = selector.memory.layout(value).codes
    if codes is not None and copied is not None:
        strides = [stride // length * codes.row(length) for stride in a.strides]
        return copied, [], [*(strides[k] for k in order), strides[-2]], Chunks.in_place(length, 1, dot), copied.size
    if copied is None and reads_in_place(a, -1, length, dot):
        chunks = Chunks.in_place(length, a.strides[-1], dot)
        if constant or not chunks.overlap:
            return a, [], [*(a.strides[k] for k in order), a.strides[-2]], chunks, a.nbytes
    if dot.arithmetic == "int8":
        buffer, strides, copies = contiguous_rows(a, selector)
        chunks = Chunks.in_place(length, a.itemsize, dot)
        return buffer, copies, [*(strides[k] for k in order), strides[-2]], chunks, a.nbytes
    from irload.plan.backends.llvm.kernels.reorder import Reorder  # not needed by f32

    axes = [Axis(a.shape[k] if a.strides[k] else 1, (a.strides[k],)) for k in order]
    rows = CopiedAxis(WindowAxis(a.shape[-2], a.shape[-2]), a.strides[-2])
    copy = Reorder(tuple(axes[:separate]), length, a.strides[-1], tuple(axes[separate:]), (rows,), element_of(a))
    strides = [*copy.strides[:separate], *copy.strides[separate + 1 : -2]]
    outer = [stride if a.strides[k] else 0 for k, stride in zip(order, strides, strict=True)]
    launches: list[Launch] = []
    if copied is None:
        copied = selector.temporary(copy.nbytes)
        launches = [selector.launch(copy, [a, copied])]
    return copied, launches, [*outer, copy.strides[-1]], Chunks.copied(length, copy.strides[separate]), copy.nbytes
