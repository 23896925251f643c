"""Match decomposed rotary embeddings: x·cos + Concat(−x₂, x₁)·sin → RotaryEmbedding(x, cos, sin).

x₁ and x₂ are the halves of x along the last axis.
"""

from __future__ import annotations

from itertools import permutations

from irload.core.size import extent
from irload.plan.ir.expression import ADD, MULTIPLY, NEGATIONS, Expression
from irload.plan.ir.program import Producers, Program, Step, Value, origin_of
from irload.plan.ir.steps import ConcatStep, ElementwiseStep, RotaryEmbeddingStep, SliceStep

WIDEST = 1 << 14
"""Length of the last axis above which the halves do not fit a tile."""


def recognise_rotary(program: Program) -> None:
    """Replace each sum of this form; dead code elimination removes the steps that are no longer used."""
    producers = program.producers()
    for step in program.steps:
        for plain, turned in permutations(_operands(step, ADD), 2):
            rotate = _rotate(producers, step, plain, turned)
            if rotate is not None:
                program.replace([step], [rotate])
                break


def _rotate(producers: Producers, step: Step, plain: Value, turned: Value) -> RotaryEmbeddingStep | None:
    """Return the rotary embedding that a sum of two products computes, or None if the sum does not match."""
    first, second = (_operands(producers.get(v), MULTIPLY) for v in (plain, turned))
    for join, sine in permutations(second, 2):
        x = _turned(producers, join)
        if x is None or x not in first or x.shape != step.output.shape or x.shape[-1] > WIDEST:
            continue
        cosine = first[1] if first[0] is x else first[0]
        origin = origin_of([producers[join], producers[plain], producers[turned], step])
        return RotaryEmbeddingStep([x, cosine, sine], step.outputs, origin=origin)
    return None


def _turned(producers: Producers, value: Value) -> Value | None:
    """Return x if the value is Concat(−x₂, x₁) along the last axis."""
    join = producers.get(value)
    if not isinstance(join, ConcatStep) or len(join.inputs) != 2 or join.axis != len(value.shape) - 1:
        return None
    negated = producers.get(join.inputs[0])
    if not isinstance(negated, ElementwiseStep) or negated.expression not in NEGATIONS:
        return None
    second, first = producers.get(negated.inputs[0]), producers.get(join.inputs[1])
    if not isinstance(first, SliceStep) or not isinstance(second, SliceStep) or first.inputs[0] is not second.inputs[0]:
        return None
    x = first.inputs[0]
    half, odd = divmod(x.shape[-1], 2)
    halves = (_last(first, x), _last(second, x))
    return x if not odd and halves == ((0, half), (half, 2 * half)) and x.shape == value.shape else None


def _last(cut: SliceStep, x: Value) -> tuple[int, int] | None:
    """Return the range of the last axis that a Slice selects, or None if it slices other axes or has a step."""
    if len(cut.index) != len(x.shape):
        return None
    ranges = [extent(s, n) for s, n in zip(cut.index, x.shape, strict=True)]
    whole = all(r == (0, n, 1) for r, n in zip(ranges[:-1], x.shape[:-1], strict=True))
    start, count, step = ranges[-1]
    return (start, start + count) if whole and step == 1 else None


def _operands(step: Step | None, function: Expression) -> list[Value]:
    """Return the operands of an Elementwise with this expression; none for any other step."""
    return step.inputs if isinstance(step, ElementwiseStep) and step.expression == function else []
