"""Rotary embedding written out: x·cos + Concat(−x₂, x₁)·sin, x₁ and x₂ halves of x → RotaryEmbedding(x, cos, sin)."""

from __future__ import annotations

from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Concat, Elementwise, RotaryEmbedding, Slice

WIDEST = 1 << 14
"""Elements of the last axis beyond which halves are no tiles."""


def recognise_rotary(program: Program) -> None:
    """Replace the sum; what it was made of is dead then, if nothing else takes it."""
    producers = program.producers()
    for step in program.steps:
        operands = _operands(step, "add")
        if operands is None:
            continue
        for plain, turned in (operands, operands[::-1]):
            rotate = _rotate(producers, step, plain, turned)
            if rotate is not None:
                program.replace([step], [rotate])
                break


def _rotate(producers: dict[Value, Step], step: Step, plain: Value, turned: Value) -> RotaryEmbedding | None:
    """The rotation that plain + turned is, None where it is none."""
    first, second = (_operands(producers.get(v), "multiply") for v in (plain, turned))
    if first is None or second is None:
        return None
    for join, sine in (second, second[::-1]):
        x = _turned(producers, join)
        if x is None or x not in first or x.shape != step.output.shape or x.shape[-1] > WIDEST:
            continue
        cosine = first[1] if first[0] is x else first[0]
        steps = (producers[join], producers[plain], producers[turned], step)
        origin = tuple(dict.fromkeys(n for s in steps for n in s.origin))
        return RotaryEmbedding([x, cosine, sine], step.outputs, origin=origin)
    return None


def _turned(producers: dict[Value, Step], value: Value) -> Value | None:
    """X where the value is Concat(−x₂, x₁) along the last axis."""
    join = producers.get(value)
    if not isinstance(join, Concat) or len(join.inputs) != 2 or join.axis != len(value.shape) - 1:
        return None
    negated = producers.get(join.inputs[0])
    if not isinstance(negated, Elementwise) or len(negated.expression.instructions) != 1:
        return None
    (i,) = negated.expression.instructions
    if i.opcode != "negative" and (i.opcode != "multiply_number" or i.numbers != (-1.0,)):
        return None
    second, first = producers.get(negated.inputs[0]), producers.get(join.inputs[1])
    if not isinstance(first, Slice) or not isinstance(second, Slice) or first.inputs[0] is not second.inputs[0]:
        return None
    x = first.inputs[0]
    half, odd = divmod(x.shape[-1], 2)
    halves = (_last(first, x), _last(second, x))
    return x if not odd and halves == ((0, half), (half, 2 * half)) and x.shape == value.shape else None


def _last(cut: Slice, x: Value) -> tuple[int, int] | None:
    """The range of the last axis that a cut takes, None where it cuts other axes, too, or leaves elements out."""
    if len(cut.index) != len(x.shape):
        return None
    ranges = [s.indices(n) for s, n in zip(cut.index, x.shape, strict=True)]
    whole = all(r == (0, n, 1) for r, n in zip(ranges[:-1], x.shape[:-1], strict=True))
    return ranges[-1][:2] if whole and ranges[-1][2] == 1 else None


def _operands(step: Step | None, function: str) -> tuple[Value, Value] | None:
    """The two operands of an Elementwise step that is one sum or one product."""
    if not isinstance(step, Elementwise) or len(step.inputs) != 2 or len(step.expression.instructions) != 1:
        return None
    (i,) = step.expression.instructions
    return (step.inputs[0], step.inputs[1]) if i.opcode == function and len(i.args) == 2 else None
