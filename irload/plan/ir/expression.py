"""Expressions: elementwise programs of a few instructions, run tile by tile while the tile is in cache.

They are what is left of chains of elementwise operations, and what follows a convolution or matmul while its result is
still warm. Registers 0..n−1 are the operands, each instruction makes the next one, the last one is the result.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 24
"""Instructions of one expression: longer ones would push their own temporaries out of the cache."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """`function` names an entry of the table in kernels/elementwise.py; `args` are registers, `numbers` constants."""

    function: str
    args: tuple[int, ...]
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """`operands` inputs, then the instructions. Without instructions it is the identity of operand 0."""

    operands: int
    instructions: tuple[Instruction, ...] = ()

    @property
    def result(self) -> int:
        """The register that holds the result."""
        return self.operands + len(self.instructions) - 1 if self.instructions else 0

    def may_grow(self, other: Expression) -> bool:
        """True when the two together are not too long for one."""
        return len(self.instructions) + len(other.instructions) <= LONGEST

    def then(self, other: Expression, at: int) -> Expression:
        """`other` with this expression's result as its operand `at`; this one's operands first, then other's rest."""
        mine, theirs = self.operands, other.operands - 1
        if mine == 1 and not theirs:  # both of one operand: no number changes but for those of `other`
            shift = len(self.instructions)
            moved = (Instruction(i.function, tuple(a + shift for a in i.args), i.numbers) for i in other.instructions)
            return Expression(1, (*self.instructions, *moved))
        shift = {r: r if r < mine else r + theirs for r in range(mine + len(self.instructions))}
        placed = [Instruction(i.function, tuple(shift[a] for a in i.args), i.numbers) for i in self.instructions]
        result = shift[self.result]
        rest = iter(range(mine, mine + theirs))
        names = {r: result if r == at else next(rest) for r in range(other.operands)}
        base = mine + theirs + len(placed)
        for k, i in enumerate(other.instructions):
            placed.append(Instruction(i.function, tuple(names[a] for a in i.args), i.numbers))
            names[other.operands + k] = base + k
        return Expression(mine + theirs, tuple(placed))

    def __str__(self) -> str:
        return "+".join(i.function for i in self.instructions)
