"""Merge the constants of the epilogues of integer products: ((Σ·a + b)·c + d) → Σ·(a·c) + (b·c + d).

Scales of data, weights and results, zero points and biases are constants. They become one factor per value, and one
term. A ReLU before a clamp at 0 is removed, and so is the conversion of rounded values to bytes and back. Results
change by far less than a quantization step, due to rounding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import ConvStep, MatMulStep
from irload.record import record

F32, U8 = np.dtype(np.float32), np.dtype(np.uint8)


def compose_factors(program: Program) -> None:
    """Merge the constants in the epilogue of each integer product."""
    for step in program.steps:
        if isinstance(step, ConvStep | MatMulStep) and step.integers is not None and step.epilogue.instructions:
            operands, epilogue = _Epilogue(step).composed()
            if len(epilogue.instructions) < len(step.epilogue.instructions):
                program.replace([step], [replace(step, inputs=[*step.inputs[:2], *operands], epilogue=epilogue)])


@record(eq=False)
class _Form:
    """The sum of registers · factors, plus a term. The registers belong to the new expression; a factor may be None.

    `relu`: the argument of the ReLU, if the only register is the result of a ReLU.
    """

    parts: tuple[tuple[int, Array | None], ...]
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
        forms = [_of(k) for k in range(expression.operands)]
        for k, i in enumerate(expression.instructions):
            form = self._affine(i, forms) or self._function(i, forms)
            forms.append(form if self._uses[expression.operands + k] == 1 else _of(self._register(form)))
        result = self._register(forms[expression.result])
        return self._renamed(result)

    def _affine(self, i: Instruction, forms: list[_Form]) -> _Form | None:
        """Return the form of a sum, or of a multiplication by a constant; None for other instructions."""
        opcode = i.opcode.removesuffix("_number")
        if opcode not in ("multiply", "add"):
            return None
        if i.numbers:
            form, constant = forms[i.args[0]], np.array(i.numbers[0], np.float64)
        else:
            known = [self._constant(a) for a in i.args]
            if known[0] is None and known[1] is None and opcode == "add":
                a, b = (forms[k] for k in i.args)
                return _Form(a.parts + b.parts, _sum(a.term, b.term))
            if (known[0] is None) == (known[1] is None):
                return None
            at = 0 if known[1] is not None else 1
            form, constant = forms[i.args[at]], known[1 - at]
            assert constant is not None
        return replace(form, term=_sum(form.term, constant)) if opcode == "add" else self._scaled(form, constant)

    def _scaled(self, form: _Form, factor: Array | None) -> _Form:
        """Return a form multiplied by a factor. If a sum has parts without factors, the sum itself is multiplied."""
        if factor is None:
            return form
        if len(form.parts) > 1 and any(each is None for _, each in form.parts):
            form = _of(self._register(form))
        parts = tuple((k, factor if each is None else each * factor) for k, each in form.parts)
        return replace(form, parts=parts, term=None if form.term is None else form.term * factor)

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
            ((_, factor),) = args[0].parts
            if factor is None or np.all(factor > 0):
                args = [self._scaled(args[0].relu, factor)]
        registers = tuple(map(self._register, args))
        if i.opcode == "convert" and i.dtype == F32:
            rounded = self._rounded(registers[0])
            if rounded is not None:
                return _of(rounded)
        return self._append(i, registers)

    def _rounded(self, register: int) -> int | None:
        """Return the register of the rounded f32 that is converted to the bytes in a register; None for others.

        It is an integer in the range of the bytes.
        """
        rounded = self._argument(register, "convert", U8)
        return None if rounded is None or self._argument(rounded, "round") is None else rounded

    def _argument(self, register: int, opcode: str, dtype: np.dtype[Any] | None = None) -> int | None:
        """Return the argument of the instruction that defines a register; None for other instructions and operands."""
        if register < self._expression.operands:
            return None
        instruction, arguments = self._instructions[register - self._expression.operands]
        return arguments[0] if (instruction.opcode, instruction.dtype) == (opcode, dtype) else None

    def _register(self, form: _Form) -> int:
        """Append the instructions of a form, and return the register of the result."""
        products = [self._with_constant("multiply", *part) for part in form.parts]
        total = products[0]
        for product in products[1:]:
            ((total, _),) = self._append(Instruction("add", (0, 0)), (total, product)).parts
        return self._with_constant("add", total, form.term)

    def _with_constant(self, opcode: str, register: int, constant: Array | None) -> int:
        """Append a multiplication by a constant, or an addition of one."""
        if constant is None:
            return register
        if constant.size == 1:
            instruction, args = Instruction(f"{opcode}_number", (0,), (float(constant.reshape(-1)[0]),)), (register,)
        else:
            self._operands.append(Value.of(constant.astype(np.float32)))
            instruction, args = Instruction(opcode, (0, 0)), (register, -len(self._operands))
        ((result, _),) = self._append(instruction, args).parts
        return result

    def _append(self, i: Instruction, args: tuple[int, ...]) -> _Form:
        self._instructions.append((i, args))
        return _of(self._expression.operands + len(self._instructions) - 1)

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


def _of(register: int) -> _Form:
    return _Form(((register, None),))


def _sum(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a + b
