"""Expressions: elementwise programs of a few instructions over operands that broadcast.

Chains of elementwise operations are fused into expressions; an epilogue is an expression applied while the result of a
convolution or matmul is in cache. Registers 0..n−1 are the operands, and each instruction defines the next register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irload.plan.ir.opcodes import OPCODES

LONGEST = 24
"""Maximum number of instructions: longer expressions would evict their temporaries from the cache."""

DType = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Instruction:
    """`opcode` is a key of OPCODES, `args` are registers, `numbers` constants, `dtype` the result type of `convert`."""

    opcode: str
    args: tuple[int, ...]
    numbers: tuple[float, ...] = ()
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """`operands` inputs and the instructions. `results` are the result registers; empty means the last one only.

    Without instructions it is the identity of operand 0.
    """

    operands: int
    instructions: tuple[Instruction, ...] = ()
    results: tuple[int, ...] = ()

    @property
    def sole(self) -> Instruction | None:
        """The only instruction; None if there are several, or none."""
        return self.instructions[0] if len(self.instructions) == 1 else None

    @property
    def result(self) -> int:
        """The register of the only result."""
        (register,) = self.result_registers
        return register

    @property
    def result_registers(self) -> tuple[int, ...]:
        """The registers of all results."""
        return self.results or (self.operands + len(self.instructions) - 1 if self.instructions else 0,)

    def may_grow(self, other: Expression) -> bool:
        """True if this expression can be merged into `other`.

        It has one result, and the two expressions have at most LONGEST instructions together.
        """
        return not self.results and len(self.instructions) + len(other.instructions) <= LONGEST

    def types(self, operands: Sequence[DType]) -> list[DType]:
        """Return the element types of all registers. Raises ValueError for unknown or invalid instructions."""
        types = list(operands)
        for k, i in enumerate(self.instructions):
            opcode = OPCODES.get(i.opcode)
            if opcode is None or len(i.args) != opcode.arity or len(i.numbers) not in opcode.numbers:
                raise ValueError(f"instruction {k}, {i}, is unknown, or has the wrong number of arguments")
            if not all(0 <= a < len(types) for a in i.args):
                raise ValueError(f"instruction {k}, {i}, reads a register that is not defined yet")
            args = [types[a] for a in i.args]
            alike = args[1:] if i.opcode == "select" else args
            if len(set(alike)) > 1 or (i.opcode == "select" and args[0] != np.dtype(bool)):
                raise ValueError(f"instruction {k}, {i}, has arguments of the types {', '.join(map(str, args))}")
            if (i.dtype is not None) != (opcode.result == "given"):
                raise ValueError(f"instruction {k}, {i}, must name a type if and only if its opcode requires one")
            types.append(np.dtype(bool) if opcode.result == "bool" else i.dtype or alike[-1])
        return types

    def then(self, other: Expression, at: int) -> Expression:
        """Return `other` with the result of `self` as operand `at`.

        Its operands are the operands of `self`, then the remaining operands of `other`.
        """
        mine, theirs = self.operands, other.operands - 1
        shift = {r: r if r < mine else r + theirs for r in range(mine + len(self.instructions))}
        placed = _moved(self.instructions, shift)
        rest = iter(range(mine, mine + theirs))
        names = {r: shift[self.result] if r == at else next(rest) for r in range(other.operands)}
        base = mine + theirs + len(placed)
        names.update((other.operands + k, base + k) for k in range(len(other.instructions)))
        results = tuple(names[r] for r in other.results)
        return Expression(mine + theirs, (*placed, *_moved(other.instructions, names)), results)

    def renamed(self, operands: int, names: dict[int, int]) -> Expression:
        """Return the same instructions with all registers renumbered by `names`, including operands."""
        results = tuple(names[r] for r in self.results)
        return Expression(operands, _moved(self.instructions, names), results)

    def pruned(self) -> Expression:
        """Return the expression without unused instructions."""
        needed = set(self.result_registers)
        for k in range(len(self.instructions) - 1, -1, -1):
            if self.operands + k in needed:
                needed.update(self.instructions[k].args)
        names = {r: r for r in range(self.operands)}
        kept: list[Instruction] = []
        for k, i in enumerate(self.instructions):
            if self.operands + k in needed:
                names[self.operands + k] = self.operands + len(kept)
                kept.append(i)
        return Expression(self.operands, _moved(kept, names), tuple(names[r] for r in self.results))

    def __str__(self) -> str:
        return "+".join(i.opcode for i in self.instructions)


def compared_operands(expression: Expression, computed: Sequence[bool]) -> set[int]:
    """Return the operands on which both sides of a comparison depend. `computed`: False for constant operands."""
    sources = [{k} if is_computed else set[int]() for k, is_computed in enumerate(computed)]
    compared = set[int]()
    for instruction in expression.instructions:
        read = [sources[a] for a in instruction.args]
        if OPCODES[instruction.opcode].compares and all(read):
            compared.update(*read)
        sources.append(set[int]().union(*read))
    return compared


def _moved(instructions: Sequence[Instruction], names: dict[int, int]) -> tuple[Instruction, ...]:
    """Return the instructions with renamed registers."""
    return tuple(Instruction(i.opcode, tuple(names[a] for a in i.args), i.numbers, i.dtype) for i in instructions)


def expression_of(opcode: str, *numbers: float) -> Expression:
    """Return the expression of one instruction, whose arguments are the operands."""
    arity = OPCODES[opcode].arity
    return Expression(arity, (Instruction(opcode, tuple(range(arity)), numbers),))


IDENTITY = Expression(1)
ADD, SUBTRACT, MULTIPLY = map(expression_of, ("add", "subtract", "multiply"))
NEGATIONS = expression_of("negative"), expression_of("multiply_number", -1.0)

THRESHOLD = Expression(
    4,
    (
        Instruction("less", (1, 0)),
        Instruction("select", (4, 3, 0)),
        Instruction("less_equal", (0, 1)),
        Instruction("select", (6, 2, 5)),
    ),
)
"""x, threshold, low, high → low up to the threshold, high above it, x for NaN."""
