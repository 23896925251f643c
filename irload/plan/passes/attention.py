"""Attention written out: MatMul(Softmax(MatMul(q, k) · scale + mask), v) → Attention(q, k, v, mask).

Only where nothing else takes the scores. Transposes of q, k and v become views.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Attention, Elementwise, MatMul, Softmax, Transpose
from irload.record import record


def recognise_attention(program: Program) -> None:
    """Replace the second product of every attention by the whole of it."""
    producers = program.producers()
    for softmax in program.steps:
        if not isinstance(softmax, Softmax) or softmax.axis != len(softmax.output.shape) - 1:
            continue
        weighted = program.sole_consumer(softmax.output)
        scores = _peeled(program, producers, softmax.inputs[0])
        if scores is None or not isinstance(weighted, MatMul) or weighted.inputs[0] is not softmax.output:
            continue
        if weighted.transpose_a or weighted.epilogue.instructions or not isfinite(scores.scale):
            continue
        if scores.product.output.shape[-2:] != softmax.output.shape[-2:] or not scores.product.inputs[0].size:
            continue
        steps: list[Step] = []
        q, k = scores.product.inputs
        q = _turned(q, steps) if scores.product.transpose_a else q
        k = k if scores.product.transpose_b else _turned(k, steps)
        v = _turned(weighted.inputs[1], steps) if weighted.transpose_b else weighted.inputs[1]
        mask = _sum(scores.masks, steps)
        old = (scores.product, *scores.between, softmax, weighted)
        attention = Attention(
            [q, k, v, *([] if mask is None else [mask])],
            weighted.outputs,
            scale=scores.scale,
            origin=tuple(dict.fromkeys(n for s in old for n in s.origin)),
        )
        program.replace(old, [*steps, attention])


@record(eq=False)
class _Between:
    """An Elementwise between product and softmax, what it adds if anything, and what all before it is multiplied by."""

    step: Elementwise
    mask: Value | None
    factor: float
    after: _Between | None


@record()
class _Scores:
    """MatMul · scale + the sum of masks, each with a factor, and the steps between."""

    product: MatMul
    scale: float
    masks: list[tuple[Value, float]]
    between: list[Elementwise]


def _peeled(program: Program, producers: dict[Value, Step], value: Value) -> _Scores | None:
    """What a value is made of, if it is a product, perhaps scaled and masked, that nothing else takes."""
    waiting: list[tuple[Value, _Between | None]] = [(value, None)]
    while waiting:
        at, after = waiting.pop()
        producer, factor = producers.get(at), 1.0 if after is None else after.factor
        if producer is None or program.sole_consumer(at) is None:
            continue
        if isinstance(producer, MatMul) and not producer.epilogue.instructions and producer.output.dtype == "float32":
            return _scores(producer, factor, after)
        if not isinstance(producer, Elementwise) or len(producer.expression.instructions) != 1:
            continue
        scale = factor_of(producer)
        if scale is not None:
            waiting.append((producer.inputs[0], _Between(producer, None, factor * scale, after)))
        elif producer.expression.instructions[0].opcode == "add" and len(producer.inputs) == 2:  # not x + x
            first, second = producer.inputs
            waiting += [
                (scores, _Between(producer, mask, factor, after)) for scores, mask in ((second, first), (first, second))
            ]
    return None


def factor_of(step: Elementwise) -> float | None:
    """The number, but zero, that a step multiplies its input by, None where it does anything else."""
    if len(step.expression.instructions) != 1:
        return None
    (i,) = step.expression.instructions
    if i.opcode not in ("multiply_number", "divide_number") or not i.numbers[0]:
        return None
    return i.numbers[0] if i.opcode == "multiply_number" else 1 / i.numbers[0]


def _scores(product: MatMul, scale: float, after: _Between | None) -> _Scores:
    """The scores that a product becomes by the steps after it."""
    found = _Scores(product, scale, [], [])
    while after is not None:
        found.between.append(after.step)
        if after.mask is not None:
            found.masks.append((after.mask, after.factor))
        after = after.after
    return found


def _turned(value: Value, steps: list[Step]) -> Value:
    """The value with its last two axes exchanged, a view that is added to `steps`."""
    *lead, rows, columns = value.shape
    turned = Value((*lead, columns, rows), value.dtype, name=value.name)
    rank = len(value.shape)
    steps.append(Transpose([value], [turned], order=(*range(rank - 2), rank - 1, rank - 2)))
    return turned


def _sum(masks: Sequence[tuple[Value, float]], steps: list[Step]) -> Value | None:
    """The masks, each times its factor, in one value."""
    total: Value | None = None
    for mask, factor in masks:
        if factor != 1:
            times = Expression(1, (Instruction("multiply_number", (0,), (factor,)),))
            scaled = Value(mask.shape, mask.dtype, name=mask.name)
            steps.append(Elementwise([mask], [scaled], expression=times))
            mask = scaled
        if total is not None:
            shape = tuple(max(pair) for pair in zip(*_aligned(total.shape, mask.shape), strict=True))
            both = Value(shape, mask.dtype, name=mask.name)
            steps.append(Elementwise([total, mask], [both], expression=Expression(2, (Instruction("add", (0, 1)),))))
            mask = both
        total = mask
    return total


def _aligned(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = max(len(a), len(b))
    return (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
