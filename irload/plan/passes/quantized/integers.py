"""Multiply quantized data by quantized weights in integers: Conv(f32(q), w) → Conv(q, i8(w)) · scale, where q is u8.

Values stay u8 through views, poolings, and concatenations of values with equal scales. Elementwise steps read u8 and
convert it; other steps read f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import ADD, MULTIPLY, THRESHOLD, Expression
from irload.plan.ir.integer_weights import IntegerWeights, integer_weights, pairs_fit
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ConcatStep, ConvStep, ElementwiseStep, Integers, MatMulStep, PoolStep, ViewStep
from irload.plan.passes.quantized.domain import F32, QuantizedValue
from irload.plan.passes.quantized.fake_quantize import split
from irload.plan.passes.quantized.products import IntegerProducts, is_binary
from irload.record import record

Known = dict[Value, QuantizedValue]
"""The u8 value from which an f32 value is dequantized, by f32 value."""
Rewritten = tuple[Sequence[Step], QuantizedValue | None]
"""The steps that replace a step, and its result as a quantized value, or None if the result is not quantized."""
TOLERANCE = 0.05
"""The largest accepted distance, in quantization steps, from a zero point used as padding to an integer.

NNCF writes ranges whose zero points differ from 128 by up to 0.02.
"""
MOST = 2**31 // (255 * 128)
"""The number of products of u8 and i8 whose sum may exceed i32."""


def multiply_integers(program: Program, products: IntegerProducts) -> None:
    """Rewrite FakeQuantize and the steps that read its result, if a back end supports all new steps.

    A rewrite is undone if only its dequantization reads the u8 value.
    """
    known: Known = {}
    originals: dict[Value, Step] = {}
    for step in program.steps:
        if products.exact and not _multiplies_bits(step):
            continue
        rewrite = _REWRITES.get(type(step))
        rewritten = _view(step, known) if isinstance(step, ViewStep) else rewrite(step, known) if rewrite else None
        if rewritten is None or not all(map(products.supports, rewritten[0])):
            continue
        program.replace([step], rewritten[0])
        if rewritten[1] is not None:
            known[step.output] = rewritten[1]
            originals[step.output] = step
    for value, quantized in known.items():
        for reader in dict.fromkeys(program.consumers(value)):
            if isinstance(reader, ElementwiseStep):
                program.replace([reader], [_reading_bytes(reader, value, quantized)])
    producers = program.producers()
    for value, original in reversed(originals.items()):
        read, convert = known[value].value, producers[value]
        if program.consumers(read) == [convert]:  # no other step reads the bytes
            program.replace([producers[read], convert], [original])


def _multiplies_bits(step: Step) -> bool:
    """True for a threshold, for a convolution of bits, and for steps without products."""
    if isinstance(step, ElementwiseStep):
        return step.expression == THRESHOLD
    return not isinstance(step, ConvStep | MatMulStep) or is_binary(step)


def _reading_bytes(reader: ElementwiseStep, value: Value, quantized: QuantizedValue) -> ElementwiseStep:
    """Return an Elementwise step that reads u8 instead of f32, and starts with the conversion to f32."""
    while value in reader.inputs:
        at, convert = reader.inputs.index(value), quantized.to_f32(value)
        rest = [v for k, v in enumerate(reader.inputs) if k != at]
        expression = convert.expression.then(reader.expression, at)
        reader = replace(reader, inputs=[*convert.inputs, *rest], expression=expression)
    return reader


def _fake_quantize(step: ElementwiseStep, known: Known) -> Rewritten | None:
    parts = split(step)
    if parts is None:
        return None
    quantize, quantized = parts
    return [quantize, replace(quantized.to_f32(step.output), origin=step.origin)], quantized


def _view(step: ViewStep, known: Known) -> Rewritten | None:
    source = known.get(step.inputs[0])
    return None if source is None or not source.is_uniform else _carried(step, [source])


def _concat(step: ConcatStep, known: Known) -> Rewritten | None:
    sources = [known[v] for v in step.inputs if v in known]
    if len(sources) < len(step.inputs) or not all(s.is_uniform and s.alike(sources[0]) for s in sources):
        return None
    return _carried(step, sources)


def _pool(step: PoolStep, known: Known) -> Rewritten | None:
    source = known.get(step.inputs[0])
    if source is None or not all(_covers_data(step, axis) for axis in range(len(step.kernel))):
        return None
    if step.kind == "max":
        return _carried(step, [source])
    if step.divisor == "full" and np.any(source.low):
        return None
    mean = Value(step.output.shape, F32, name=step.output.name)
    return [replace(step, inputs=[source.value], outputs=[mean]), source.of(mean).to_f32(step.output)], None


def _covers_data(step: PoolStep, axis: int) -> bool:
    """True if all windows along an axis contain data."""
    window = step.windows[axis]
    last = (window.count - 1) * window.stride - window.begin
    return window.dilation == 1 and window.begin < window.kernel and last < window.size


def _conv(step: ConvStep, known: Known) -> Rewritten | None:
    source, weights = known.get(step.inputs[0]), step.inputs[1]
    groups, per_group, depth = weights.shape[:3]
    if source is None or not (source.is_uniform or depth == 1):
        return None
    channels = groups * per_group
    integers = integer_weights(weights, channels)
    if integers is None or depth * step.taps >= MOST:
        return None
    data = _Data.of(source, per_group, padded=any((*step.pads_begin, *step.pads_end)))
    return None if data is None else _product(step, data, integers, 2, (1, channels, *(1,) * len(step.strides)))


def _matmul(step: MatMulStep, known: Known) -> Rewritten | None:
    source, weights = known.get(step.inputs[0]), step.inputs[1]
    if source is None or not source.is_uniform or len(weights.shape) != 2:
        return None
    channels = step.output.shape[-1]
    integers, data = integer_weights(weights, channels, last=not step.transpose_b), _Data.of(source, 1)
    if integers is None or data is None or step.inputs[0].shape[-2 if step.transpose_a else -1] >= MOST:
        return None
    return _product(step, data, integers, 1 if step.transpose_b else 0, (channels,))


@record(eq=False)
class _Data:
    """Quantized data of a Conv or MatMul, with an integer zero point.

    `missing` is `zero_point` minus the exact zero point. `missing` and `scale` have one number, or one number per
    output channel.
    """

    value: Value
    scale: Array
    zero_point: int
    missing: Array

    @staticmethod
    def of(source: QuantizedValue, times: int, *, padded: bool = False) -> _Data | None:
        """Return the data; None if channels have different integer zero points.

        Also None if the data is `padded` and a zero point is not an integer within TOLERANCE. Each channel of the data
        contributes to `times` output channels.
        """
        exact = source.zero_points
        nearest = np.clip(np.rint(exact), 0, 255)
        missing = nearest - exact
        if np.any(nearest != nearest[0]) or (padded and np.any(np.abs(missing) > TOLERANCE)):
            return None
        scale, missing = (a.reshape(-1) if a.size == 1 else np.repeat(a, times) for a in (source.scale, missing))
        return _Data(source.value, scale, int(nearest[0]), missing)


def _product(
    step: ConvStep | MatMulStep, data: _Data, weights: IntegerWeights, axis: int, shape: tuple[int, ...]
) -> Rewritten:
    """Return the integer product, the correction for a rounded zero point, and the multiplication by the scales.

    `axis`: the axis of the weights with the input channels; `shape`: the shape of an array with one number per output
    channel that broadcasts to the result.
    """
    integers = weights.value.constant
    assert integers is not None
    first = Value(step.output.shape, F32, name=step.output.name)
    how = Integers(data.zero_point, pairs_fit(integers, axis))
    steps: list[Step] = [replace(step, inputs=[data.value, weights.value], outputs=[first], integers=how)]
    if np.any(data.missing):
        axes = tuple(range(2, integers.ndim)) if isinstance(step, ConvStep) else (axis,)
        sums = integers.sum(axes, np.int64).reshape(-1)
        second = Value(step.output.shape, F32, name=step.output.name)
        steps.append(_with_constant(ADD, first, data.missing * sums, shape, second))
        first = second
    return [*steps, _with_constant(MULTIPLY, first, data.scale * weights.scale, shape, step.output)], None


def _with_constant(function: Expression, x: Value, y: Array, shape: tuple[int, ...], output: Value) -> ElementwiseStep:
    return ElementwiseStep([x, Value.of(y.astype(np.float32).reshape(shape))], [output], expression=function)


def _carried(step: Step, sources: Sequence[QuantizedValue]) -> Rewritten:
    """Return the same step on u8 operands, and the step that dequantizes its result."""
    out = sources[0].of(Value(step.output.shape, sources[0].value.dtype, name=step.output.name))
    carried = replace(step, inputs=[s.value for s in sources], outputs=[out.value])
    return [carried, out.to_f32(step.output)], out


_REWRITES: dict[type[Step], Callable[..., Rewritten | None]] = {
    ElementwiseStep: _fake_quantize,
    ConcatStep: _concat,
    PoolStep: _pool,
    ConvStep: _conv,
    MatMulStep: _matmul,
}
