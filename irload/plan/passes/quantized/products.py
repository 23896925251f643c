"""The products that plans compute in integers."""

from __future__ import annotations

from collections.abc import Callable

from irload.plan.ir.program import Program, Step
from irload.record import record


@record()
class IntegerProducts:
    """Products of quantized values. `supports`: True for steps that a back end supports.

    `exact`: only products of bits, whose results are the same in f32, are computed in integers.
    """

    supports: Callable[[Step], bool]
    exact: bool

    def occurs_in(self, program: Program) -> bool:
        """True if products of a program may be computed in integers."""
        return not self.exact or any(map(is_binary, program.steps))


def is_binary(step: Step) -> bool:
    """True for the steps of a BinaryConvolution."""
    return any(origin.type == "BinaryConvolution" for origin in step.origin)
