"""Merge the constants of the epilogues of integer products: ((Σ·a + b)·c + d) → Σ·(a·c) + (b·c + d).

Scales of data, weights and results, zero points and biases are constants. They become one factor and one term per
channel. A ReLU before a clamp at 0 is removed. Results change by far less than a quantization step, due to rounding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import ConvStep, MatMulStep
from irload.record import record


def compose_factors(program: Program) -> None:
    """Merge the constants in the epilogue of each integer product."""
    for step in program.steps:
        if isinstance(step, ConvStep | MatMulStep) and step.integers is not None and step.epilogue.instructions:
            operands, epilogue = _Epilogue(step).composed()
            if len(epilogue.instructions) < len(step.epilogue.instructions):
                program.replace([step], [replace(step, inputs=[*step.inputs[:2], *operands], epilogue=epilogue)])


@record(eq=False)
class _Form:
    """`register` · `factor` + `term`, where `register` belongs to the new expression.

    `relu`: the argument of the ReLU, if the register is the result of a ReLU.
    """

    register: int
    factor: Array | None = None
    term: Array | None = None
    relu: _Form | None = None


class _Epilogue:
    """Rewrites the instructions of one epilogue."""

    def __init__(self, step: ConvStep | MatMulStep) -> None:
        self._expression = step.epilogue
        self._channels = step.output.shape[1 if isinstance(step, ConvStep) else -1]
        self._operands = list(step.operands)
        self._uses = Counter(a for i in step.epilogue.instructions for a in i.args)
        self._instructions: list[tuple[Instruction, tuple[int, ...]]] = []
        """The new instructions and their arguments: registers, or −1 − k for the added operand `_operands[k]`."""

    def composed(self) -> tuple[list[Value], Expression]:
        """Return the operands of the new epilogue, and its expression."""
        expression = self._expression
        forms = [_Form(k) for k in range(expression.operands)]
        for k, i in enumerate(expression.instructions):
            form = self._affine(i, forms) or self._function(i, forms)
            forms.append(form if self._uses[expression.operands + k] == 1 else _Form(self._register(form)))
        result = self._register(forms[expression.result])
        return self._renamed(result)

    def _affine(self, i: Instruction, forms: list[_Form]) -> _Form | None:
        """Return the form of a multiplication by a constant or an addition of one; None for other instructions."""
        opcode = i.opcode.removesuffix("_number")
        if opcode not in ("multiply", "add"):
            return None
        if i.numbers:
            form, constant = forms[i.args[0]], np.array(i.numbers[0], np.float64)
        else:
            known = [self._constant(a) for a in i.args]
            if (known[0] is None) == (known[1] is None):
                return None
            at = 0 if known[1] is not None else 1
            form, constant = forms[i.args[at]], known[1 - at]
            assert constant is not None
        if opcode == "add":
            return replace(form, term=constant if form.term is None else form.term + constant)
        return _scaled(form, constant)

    def _constant(self, register: int) -> Array | None:
        """Return the constant of an operand with one number, or one number per channel; None for other registers."""
        if not 0 < register < self._expression.operands:
            return None
        value = self._operands[register - 1]
        small = value.is_constant and value.size in (1, self._channels) and value.dtype == np.float32
        return value.source.array.astype(np.float64) if small and value.source is not None else None

    def _function(self, i: Instruction, forms: list[_Form]) -> _Form:
        args = [forms[a] for a in i.args]
        if i.opcode == "relu":
            before = args[0]
            return replace(self._append(i, (self._register(before),)), relu=before)
        if i.opcode == "clamp" and i.numbers[0] >= 0 and args[0].relu is not None and args[0].term is None:
            scaled, before = args[0].factor, args[0].relu
            if scaled is None or np.all(scaled > 0):
                args = [_scaled(before, scaled)]
        return self._append(i, tuple(map(self._register, args)))

    def _register(self, form: _Form) -> int:
        """Append the multiplication and the addition of a form, and return the register of the result."""
        emitted = form
        for opcode, constant in (("multiply", form.factor), ("add", form.term)):
            if constant is None:
                continue
            if constant.size == 1:
                instruction = Instruction(f"{opcode}_number", (0,), (float(constant.reshape(-1)[0]),))
                emitted = self._append(instruction, (emitted.register,))
            else:
                self._operands.append(Value.of(constant.astype(np.float32)))
                emitted = self._append(Instruction(opcode, (0, 0)), (emitted.register, -len(self._operands)))
        return emitted.register

    def _append(self, i: Instruction, args: tuple[int, ...]) -> _Form:
        self._instructions.append((i, args))
        return _Form(self._expression.operands + len(self._instructions) - 1)

    def _renamed(self, result: int) -> tuple[list[Value], Expression]:
        """Return the operands in use, and the expression over them."""
        old, needed = self._expression.operands, {result}
        for k in range(len(self._instructions) - 1, -1, -1):
            if old + k in needed:
                needed.update(self._instructions[k][1])
        used = [-k - 1 if k + 1 >= old else k + 1 for k in range(len(self._operands))]
        kept = [k for k, name in enumerate(used) if name in needed]
        names = {0: 0} | {used[k]: 1 + n for n, k in enumerate(kept)}
        instructions: list[Instruction] = []
        for k, (i, args) in enumerate(self._instructions):
            if old + k in needed:
                names[old + k] = 1 + len(kept) + len(instructions)
                instructions.append(replace(i, args=tuple(names[a] for a in args)))
        return [self._operands[k] for k in kept], Expression(1 + len(kept), tuple(instructions))


def _scaled(form: _Form, factor: Array | None) -> _Form:
    if factor is None:
        return form
    return replace(
        form,
        factor=factor if form.factor is None else form.factor * factor,
        term=None if form.term is None else form.term * factor,
    )
