"""The instructions of expressions: arity, parameters, and element type of the result."""

from __future__ import annotations

from irload.record import record


@record()
class Opcode:
    """One instruction with `arity` register arguments; `numbers` lists the allowed counts of number arguments.

    The arguments and the result have the same element type, unless `result` is "bool" (comparisons) or "given" (the
    instruction names the type of the result). The first argument of a `select` is boolean.
    """

    name: str
    arity: int
    numbers: tuple[int, ...] = (0,)
    result: str = "same"

    @property
    def compares(self) -> bool:
        """True for comparisons of two arguments."""
        return self.result == "bool" and self.arity == 2


_UNARY = (
    "square", "sqrt", "negative", "abs", "exp", "log", "tanh", "sin", "cos", "floor", "ceil", "round", "relu",
    "round_f16", "round_bf16", "round_f8e4m3", "round_f8e5m2", "sigmoid", "hard_swish", "erf", "gelu", "gelu_tanh",
    "mish", "softplus",
)  # fmt: skip
_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")
_OF_INTEGERS = ("remainder", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
_COMPARISONS = ("equal", "less", "less_equal")
_WITH_NUMBER = (
    "add_number", "multiply_number", "divide_number", "maximum_number", "minimum_number", "power_number",
    "number_subtract", "number_divide", "elu",
)  # fmt: skip

OPCODES: dict[str, Opcode] = {
    opcode.name: opcode
    for opcode in (
        *(Opcode(name, 1) for name in _UNARY),
        *(Opcode(name, 2) for name in (*_BINARY, *_OF_INTEGERS)),
        *(Opcode(name, 2, result="bool") for name in _COMPARISONS),
        *(Opcode(name, 1, (1,)) for name in _WITH_NUMBER),
        Opcode("clamp", 1, (2,)),
        Opcode("hard_sigmoid", 1, (2,)),
        Opcode("swish", 1, (0, 1)),
        Opcode("nonzero", 1, result="bool"),
        Opcode("not", 1),
        Opcode("select", 3),
        Opcode("clip", 3),
        Opcode("convert", 1, result="given"),
    )
}
"""Every instruction by name.

`clip` is `clamp` with operands as bounds, which must not be NaN. `number_subtract` and `number_divide` use the number
as their first operand. `round_f16` and the like round to the nearest number of the type; 8-bit types clamp to their
finite numbers. `nonzero` is True for NaN. `not` negates booleans; `minimum` and `maximum` of booleans are conjunction
and disjunction. Integers wrap. `divide` of integers is the floor of the quotient by a positive number; `remainder`, by
a positive number, has the sign of the dividend. Shifts by counts outside 0..bits − 1 shift all bits out; `shift_right`
repeats the sign.
"""
