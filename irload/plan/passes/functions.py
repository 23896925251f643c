"""Match activations that are decomposed into arithmetic: x·0.5·(1 + erf(x/√2)) → gelu(x); also Swish, HSwish and Mish.

Expressions are compared as normal forms (plan/passes/algebra.py), so association does not matter. Only functions with
an instruction that is faster than the arithmetic are matched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isclose, pi
from typing import Any

from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ExpressionStep
from irload.plan.passes.algebra import Algebra, Form, NotRepresentable
from irload.plan.passes.scalars import used_inputs

CHARACTERISTIC = {"sigmoid", "exp", "tanh", "erf", "clamp", "minimum_number"}
"""Opcodes of which a match requires at least one. Other expressions are skipped."""


def recognise_functions(program: Program) -> None:
    """Rewrite the expressions of all Elementwise steps and epilogues."""
    program.steps = [_rewritten(step) for step in program.steps]


def _rewritten(step: Step) -> Step:
    if not isinstance(step, ExpressionStep) or not _may_hold(step.elementwise_part):
        return step
    inputs, expression = used_inputs(step.inputs, simplified(step.elementwise_part), step.MAIN_INPUTS)
    return step if expression == step.elementwise_part else step.with_expression(inputs, expression)


def _may_hold(expression: Expression) -> bool:
    return len(expression.instructions) > 1 and any(i.opcode in CHARACTERISTIC for i in expression.instructions)


def simplified(expression: Expression) -> Expression:
    """Return the expression with every recognised function as one instruction, and unused instructions removed."""
    algebra = Algebra()
    uses = [a for i in expression.instructions for a in i.args]
    forms: list[Form] = [algebra.atom("unknown", k) for k in range(expression.operands)]
    instructions: list[Instruction] = []
    for k, i in enumerate(expression.instructions):
        register = expression.operands + k
        unknown = algebra.atom("unknown", register)
        try:
            form = algebra.apply(i.opcode, [forms[a] for a in i.args], i.numbers)
        except NotRepresentable:
            form = unknown
        instructions.append(_recognised(algebra, form) or _merged(i, instructions, expression.operands))
        # A register with several uses is an unknown, so that a function can match it as x.
        forms.append(unknown if uses.count(register) > 1 else form)
    return Expression(expression.operands, tuple(instructions), expression.results).pruned()


def _merged(i: Instruction, before: Sequence[Instruction], operands: int) -> Instruction:
    """Drop a relu before a clamp that makes it redundant, as in FakeQuantize after ReLU."""
    source = before[i.args[0] - operands] if i.args[0] >= operands else None
    covers = i.opcode == "clamp" and i.numbers[0] >= 0 and source is not None and source.opcode == "relu"
    return Instruction(i.opcode, source.args, i.numbers) if covers and source is not None else i


def _recognised(algebra: Algebra, form: Form) -> Instruction | None:
    """Return the instruction that computes the form, or None if no instruction does."""
    for function, recognise in _PRODUCTS.items():
        match = _product(algebra, form, function)
        if match is not None:
            return recognise(algebra, *match)
    return _gelu(algebra, form)


def _swish(algebra: Algebra, x: int, args: Sequence[Any], c: float) -> Instruction | None:
    """Match x · sigmoid(b·x)."""
    slope = _multiple(algebra, args[0], x)
    return None if slope is None or c != 1 else Instruction("swish", (x,), () if slope == 1 else (slope,))


def _mish(algebra: Algebra, x: int, args: Sequence[Any], c: float) -> Instruction | None:
    """Match x · tanh(ln(1 + eˣ))."""
    key = algebra.key_of(args[0])
    softplus = key is not None and key[0] == "softplus" and _multiple(algebra, key[1], x) == 1
    return Instruction("mish", (x,)) if softplus and c == 1 else None


def _hard_swish(algebra: Algebra, x: int, args: Sequence[Any], c: float) -> Instruction | None:
    """Match x · min(max(x + 3, 0), 6) / 6."""
    inner, low, high = args
    standard = low == 0 and high == 6 and isclose(c * 6, 1, rel_tol=1e-6)
    shifted = inner == algebra.add(algebra.atom("unknown", x), algebra.number(3.0))
    return Instruction("hard_swish", (x,)) if standard and shifted else None


_PRODUCTS: Mapping[str, Callable[[Algebra, int, Sequence[Any], float], Instruction | None]] = {
    "sigmoid": _swish,
    "tanh": _mish,
    "clamp": _hard_swish,
}
"""By function f: recognises a product c·x·f(…) from x, the arguments of f, and c."""


def _gelu(algebra: Algebra, form: Form) -> Instruction | None:
    """Match x/2 · (1 + erf(x/√2)), or with tanh(√(2/π)·(x + 0.044715·x³)) for erf."""
    factors = [c for _, c in form]
    if len(factors) != 2 or not all(isclose(c, factors[0], rel_tol=1e-6) for c in (factors[1], 0.5)):
        return None
    for alone, product in (form, form[::-1]):
        for function in ("erf", "tanh"):
            match = _product(algebra, (product,), function)
            if match is None or alone[0] != ((_atom(algebra, match[0]), 1.0),):
                continue
            x, (inner,), _ = match
            if function == "erf" and isclose(_multiple(algebra, inner, x) or 0, 0.5**0.5, rel_tol=1e-6):
                return Instruction("gelu", (x,))
            if function == "tanh" and _is_cubic(algebra, inner, x):
                return Instruction("gelu_tanh", (x,))
    return None


def _product(algebra: Algebra, form: Form, function: str) -> tuple[int, tuple[Any, ...], float] | None:
    """Return (register of x, arguments of f, c) if the form is c·x·f(…) for an unknown x."""
    if len(form) != 1 or len(form[0][0]) != 2 or any(e != 1 for _, e in form[0][0]):
        return None
    monomial, c = form[0]
    keys = [algebra.keys[atom] for atom, _ in monomial]
    for x, f in (keys, keys[::-1]):
        if x[0] == "unknown" and f[0] == function:
            return x[1], f[1:], c
    return None


def _multiple(algebra: Algebra, form: Form, x: int) -> float | None:
    """Return c if the form is c·x."""
    return form[0][1] if len(form) == 1 and form[0][0] == ((_atom(algebra, x), 1.0),) else None


def _is_cubic(algebra: Algebra, form: Form, x: int) -> bool:
    """True for √(2/π)·(x + 0.044715·x³)."""
    atom, root = _atom(algebra, x), (2 / pi) ** 0.5
    terms = dict(form)
    linear, cubic = terms.get(((atom, 1.0),), 0.0), terms.get(((atom, 3.0),), 0.0)
    return len(terms) == 2 and isclose(linear, root, rel_tol=1e-6) and isclose(cubic, root * 0.044715, rel_tol=1e-6)


def _atom(algebra: Algebra, register: int) -> int:
    return algebra.atom("unknown", register)[0][0][0][0]
