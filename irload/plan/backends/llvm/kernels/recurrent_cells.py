"""The cells of recurrent networks, as data: the gates that a phase computes together, and their expression."""

from __future__ import annotations

from irload.plan.ir.expression import Expression, Instruction
from irload.record import record


@record()
class CellPhase:
    """Gates whose products with the state are computed together, and the expression that follows.

    Operands of the expression: the gates; if the last gate is `apart`, its product with the state plus a separate bias;
    then the cell state and the previous state, as far as `reads` lists them. Results: the new state, or the operand of
    the products of the next phase; then the new cell state if the phase `stores` it.
    """

    gates: tuple[int, ...]
    expression: Expression
    reads: tuple[str, ...] = ()
    apart: bool = False
    stores: bool = False


def _expression(operands: int, *lines: tuple[str, int, int] | tuple[str, int], results: tuple[int, ...]) -> Expression:
    instructions = tuple(Instruction(opcode, tuple(arguments)) for opcode, *arguments in lines)
    return Expression(operands, instructions, results)


_LSTM = _expression(
    5,
    ("sigmoid", 0),
    ("sigmoid", 1),
    ("tanh", 2),
    ("sigmoid", 3),
    ("multiply", 5, 4),
    ("multiply", 6, 7),
    ("add", 9, 10),
    ("tanh", 11),
    ("multiply", 8, 12),
    results=(13, 11),
)
_GRU_LINEAR = _expression(
    5,
    ("sigmoid", 0),
    ("sigmoid", 1),
    ("multiply", 6, 3),
    ("add", 2, 7),
    ("tanh", 8),
    ("subtract", 4, 9),
    ("multiply", 10, 5),
    ("add", 9, 11),
    results=(12,),
)
_GRU_GATES = _expression(3, ("sigmoid", 0), ("sigmoid", 1), ("multiply", 4, 2), results=(5, 3))
_GRU_STATE = _expression(3, ("tanh", 0), ("subtract", 2, 3), ("multiply", 4, 1), ("add", 3, 5), results=(6,))
_RNN = _expression(1, ("tanh", 0), results=(1,))

PHASES = {
    "lstm": (CellPhase((0, 1, 2, 3), _LSTM, ("cell",), stores=True),),
    "gru_linear": (CellPhase((0, 1, 2), _GRU_LINEAR, ("state",), apart=True),),
    "gru": (CellPhase((0, 1), _GRU_GATES, ("state",), stores=True), CellPhase((2,), _GRU_STATE, ("cell", "state"))),
    "rnn": (CellPhase((0,), _RNN),),
}
"""The phases of each cell. Gates are numbered as in the step: lstm f, i, c, o; gru z, r, h."""
