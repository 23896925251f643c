"""Match decomposed attention: MatMul(Softmax(MatMul(q, k) · scale + mask), v) → Attention(q, k, v, mask).

Applies if no other step reads the scores. Transposes of q, k and v become views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from irload.plan.ir.expression import ADD, IDENTITY, expression_of
from irload.plan.ir.program import Producers, Program, Step, Value, origin_of
from irload.plan.ir.reshaping import transposed
from irload.plan.ir.steps import AttentionStep, ElementwiseStep, MatMulStep, SoftmaxStep
from irload.record import record


def recognise_attention(program: Program) -> None:
    """Replace the second matmul of each attention pattern by an Attention."""
    producers = program.producers()
    for softmax in program.steps:
        if not isinstance(softmax, SoftmaxStep) or softmax.axis != len(softmax.output.shape) - 1:
            continue
        weighted = program.sole_consumer(softmax.output)
        peeled = _peeled(program, producers, softmax.inputs[0])
        if peeled is None or not isinstance(weighted, MatMulStep) or weighted.inputs[0] is not softmax.output:
            continue
        product, scale, between = peeled
        if weighted.transpose_a or weighted.epilogue.instructions or not is_moderate(scale):
            continue
        if product.output.shape[-2:] != softmax.output.shape[-2:] or not product.inputs[0].size:
            continue
        steps: list[Step] = []
        q, k = product.inputs
        q = _turned(q, steps) if product.transpose_a else q
        k = k if product.transpose_b else _turned(k, steps)
        v = _turned(weighted.inputs[1], steps) if weighted.transpose_b else weighted.inputs[1]
        mask = _sum([(each.mask, each.factor) for each in between if each.mask is not None], steps)
        old = (product, *(each.step for each in between), softmax, weighted)
        attention = AttentionStep(
            [q, k, v, *([] if mask is None else [mask])], weighted.outputs, scale=scale, origin=origin_of(old)
        )
        program.replace(old, [*steps, attention])


@record(eq=False)
class _Between:
    """An Elementwise step between matmul and softmax, and the following steps (`after`).

    `mask`: the mask that the step adds, if any; `factor`: the product of the factors of this and all following steps.
    """

    step: ElementwiseStep
    mask: Value | None
    factor: float
    after: _Between | None


def _peeled(program: Program, producers: Producers, value: Value) -> tuple[MatMulStep, float, list[_Between]] | None:
    """Match scores product · scale + Σ mask · factor that no other step reads.

    Returns the product, the scale, and the steps between matmul and softmax.
    """
    waiting: list[tuple[Value, _Between | None]] = [(value, None)]
    while waiting:
        at, after = waiting.pop()
        producer, factor = producers.get(at), 1.0 if after is None else after.factor
        if producer is None or program.sole_consumer(at) is None:
            continue
        if isinstance(producer, MatMulStep) and producer.epilogue == IDENTITY and producer.output.dtype == "float32":
            return producer, factor, list(_chain(after))
        if not isinstance(producer, ElementwiseStep):
            continue
        scale = factor_of(producer)
        if scale is not None:
            waiting.append((producer.inputs[0], _Between(producer, None, factor * scale, after)))
        elif producer.expression == ADD and len(producer.inputs) == 2:
            first, second = producer.inputs
            for scores, mask in ((second, first), (first, second)):
                waiting.append((scores, _Between(producer, mask, factor, after)))
    return None


def factor_of(step: ElementwiseStep) -> float | None:
    """Return the nonzero number by which a step multiplies its input, or None for any other step."""
    i = step.expression.sole
    if i is None or i.opcode not in ("multiply_number", "divide_number") or not i.numbers[0]:
        return None
    return i.numbers[0] if i.opcode == "multiply_number" else 1 / i.numbers[0]


def is_moderate(scale: float) -> bool:
    """True if merging factors into this scale cannot cause an overflow or underflow that separate products avoid."""
    return 2.0**-60 < abs(scale) < 2.0**60


def _chain(between: _Between | None) -> Iterator[_Between]:
    while between is not None:
        yield between
        between = between.after


def _turned(value: Value, steps: list[Step]) -> Value:
    """Return the value with its last two axes exchanged; the Transpose is appended to `steps`."""
    rank = len(value.shape)
    return transposed(value, (*range(rank - 2), rank - 1, rank - 2), steps)


def _sum(masks: Sequence[tuple[Value, float]], steps: list[Step]) -> Value | None:
    """Return Σ mask · factor, or None without masks. The steps that compute it are appended to `steps`."""
    total: Value | None = None
    for mask, factor in masks:
        if factor != 1:
            scaled = mask.like()
            steps.append(ElementwiseStep([mask], [scaled], expression=expression_of("multiply_number", factor)))
            mask = scaled
        if total is not None:
            sizes = zip_longest(total.shape[::-1], mask.shape[::-1], fillvalue=1)
            both = mask.like(tuple(max(pair) for pair in sizes)[::-1])
            steps.append(ElementwiseStep([total, mask], [both], expression=ADD))
            mask = both
        total = mask
    return total
