"""Split FakeQuantize(x) into dequantize(quantize(x)), so that the u8 result of quantize is a value of the program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import THRESHOLD, Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ElementwiseStep
from irload.plan.passes.quantized.domain import U8, QuantizedValue, quantizing
from irload.record import record

MOST_LEVELS = 256
CONVERT = Expression(1, (Instruction("convert", (0,), (), U8),))


@record(eq=False)
class Ranges:
    """The parameters of a FakeQuantize: round((clamp(x) − low) · steps / width) · scale + out_low."""

    low: Array
    width: Array
    steps: float
    scale: Array
    out_low: Array


def split(step: Step) -> tuple[ElementwiseStep, QuantizedValue] | None:
    """Return the step that quantizes like a FakeQuantize, and its u8 result; None if the step is not a FakeQuantize.

    Also None for more than 256 levels, or for bounds that are not increasing and finite. Thresholds return 0 or 1.
    """
    if not isinstance(step, ElementwiseStep) or len(step.origin) != 1 or step.origin[0].type != "FakeQuantize":
        return None
    if step.expression == THRESHOLD:
        return _split_threshold(step)
    ranges = _ranges(step)
    output = step.output
    if ranges is None or ranges.steps + 1 > MOST_LEVELS or not _is_increasing(ranges, output):
        return None
    value = Value(output.shape, U8, name=output.name)
    # In f64, so that 0, which is frequent after a ReLU, is exactly between two levels in a symmetric range.
    factor = ranges.steps / ranges.width.astype(np.float64)
    term = -ranges.low * factor
    levels = int(ranges.steps) + 1
    quantize = quantizing(step.inputs[0], factor.astype(np.float32), term.astype(np.float32), levels, value)
    quantize.origin = step.origin
    return quantize, QuantizedValue(value, ranges.scale, ranges.out_low)


def _split_threshold(step: ElementwiseStep) -> tuple[ElementwiseStep, QuantizedValue] | None:
    """Return a threshold with bytes as result; None for results other than 0 and 1."""
    low, high = (value.constant for value in step.inputs[2:])
    if low is None or high is None or low.any() or not np.all(high == 1):
        return None
    value = Value(step.output.shape, U8, name=step.output.name)
    expression = THRESHOLD.then(CONVERT, 0)
    bits = ElementwiseStep(step.inputs, [value], expression=expression, origin=step.origin)
    return bits, QuantizedValue(value, np.ones(1, np.float32), np.zeros(1, np.float32))


def _is_increasing(ranges: Ranges, output: Value) -> bool:
    """True if all parameters are finite, single or one per channel, and width and scale are above 2⁻⁶⁰."""
    shape = (1, *output.shape[1:2], *(1,) * (len(output.shape) - 2))
    arrays = (ranges.low, ranges.width, ranges.scale, ranges.out_low)
    positive = all(bool((np.isfinite(a) & (a > 2.0**-60)).all()) for a in (ranges.width, ranges.scale))
    finite = all(bool(np.isfinite(a).all()) for a in arrays)
    return positive and finite and all(a.size == 1 or a.shape == shape for a in arrays)


def _ranges(step: ElementwiseStep) -> Ranges | None:
    """Return the parameters of a FakeQuantize from the expression to which it is lowered, None for other steps."""
    links = iter(_links(step))
    none = (Instruction("none", ()), np.zeros(1, np.float32))
    link, number = next(links, none)
    if link.opcode == "maximum":
        link, number = next(links, none)
    if link.opcode not in ("clamp", "minimum"):
        return None
    low = np.zeros(1, np.float32)
    link, number = next(links, none)
    if link.opcode in ("subtract", "add_number"):
        low = number if link.opcode == "subtract" else -number
        link, number = next(links, none)
    width = number
    if link.opcode not in ("divide", "divide_number"):
        return None
    link, steps = next(links, none)
    rounded, _ = next(links, none)
    scaled, scale = next(links, none)
    if (link.opcode, rounded.opcode) != ("multiply_number", "round") or not scaled.opcode.startswith("multiply"):
        return None
    out_low = np.zeros(1, np.float32)
    for link, number in links:
        if link.opcode not in ("add", "add_number"):
            return None
        out_low = number
    return Ranges(low, width, float(steps.reshape(-1)[0]), scale, out_low)


def _links(step: ElementwiseStep) -> Iterator[tuple[Instruction, Array]]:
    """Yield the instructions of a chain, each with its constant operand or its first number."""
    for link in step.expression.instructions:
        if len(link.args) > 1:
            constant = step.inputs[link.args[1]].constant
            yield link, np.zeros(0, np.float32) if constant is None else constant
        else:
            yield link, np.array(link.numbers[:1] or [0.0], np.float32)
