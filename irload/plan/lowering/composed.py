"""Operations that are elementwise steps around a reduction: norms, normalisation by them, the logarithm of softmax."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Elementwise, Reduce
from irload.plan.lowering.values import all_f32, known_axes, rounded


def norm(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """ReduceL1 and ReduceL2 over known axes."""
    x, (out,) = inputs[0], outputs
    axes = known_axes(inputs[1], len(x.shape))
    if not axes or not all_f32([x, out]):
        return None
    if node.type == "ReduceL1":
        sizes = _mapped(x, "abs")
        return [sizes, Reduce([sizes.output], outputs, kind="sum", axes=axes)]
    squares = _mapped(x, "square")
    total = Value(out.shape, out.dtype, name=out.name)
    return [
        squares,
        Reduce([squares.output], [total], kind="sum", axes=axes),
        Elementwise([total], outputs, expression=Expression(1, (Instruction("sqrt", (0,)),))),
    ]


def normalize(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """NormalizeL2 over known axes."""
    x, attributes = inputs[0], node.op.attributes
    axes = known_axes(inputs[1], len(x.shape))
    if not axes or not all_f32([x, *outputs]):
        return None
    squares = _mapped(x, "square")
    total = _reduced(squares.output, "sum", axes)
    bounded = "add_number" if attributes["eps_mode"] == "add" else "maximum_number"
    divided = (
        Instruction(bounded, (1,), (rounded(attributes["eps"]),)),
        Instruction("sqrt", (2,)),
        Instruction("divide", (0, 3)),
    )
    return [squares, total, Elementwise([x, total.output], outputs, expression=Expression(2, divided))]


def log_softmax(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """LogSoftmax: what is left of x − max when the logarithm of the sum of its exponentials is taken away."""
    x = inputs[0]
    if not x.shape or not all_f32([x, *outputs]):
        return None
    axes = (int(node.op.attributes["axis"]) % len(x.shape),)
    largest = _reduced(x, "max", axes)
    low = Value(x.shape, x.dtype, name=x.name)
    difference = Elementwise([x, largest.output], [low], expression=Expression(2, (Instruction("subtract", (0, 1)),)))
    powers = _mapped(low, "exp")
    total = _reduced(powers.output, "sum", axes)
    left = (Instruction("log", (1,)), Instruction("subtract", (0, 2)))
    return [
        largest,
        difference,
        powers,
        total,
        Elementwise([low, total.output], outputs, expression=Expression(2, left)),
    ]


def _mapped(x: Value, opcode: str) -> Elementwise:
    """A function of each element."""
    return Elementwise(
        [x], [Value(x.shape, x.dtype, name=x.name)], expression=Expression(1, (Instruction(opcode, (0,)),))
    )


def _reduced(x: Value, kind: str, axes: tuple[int, ...]) -> Reduce:
    """A reduction whose axes stay, of length 1."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    return Reduce([x], [Value(shape, x.dtype, name=x.name)], kind=kind, axes=axes)
