"""Normalization of rows: each span of some axes to mean 0 and variance 1, then an epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irload.plan.backends.llvm.arguments import Arguments, float_word
from irload.plan.backends.llvm.axes import size_of
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernels.spans import Span, SpanCode, SpanKernel
from irload.plan.backends.llvm.operands import read, write
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Formula:
    """(x − mean) / √(variance + eps), or x / √(mean of x² + eps) without `center`, then the epilogue.

    `outside`: eps is added to the root.
    """

    eps: float
    center: bool
    outside: bool
    epilogue: Expression

    @property
    def tensors(self) -> int:
        """The result, x and the other operands of the epilogue."""
        return 1 + self.epilogue.operands

    @property
    def cycles(self) -> float:
        """An estimate for a vector of 8 lanes."""
        return 6 + 2 * self.epilogue.operands + expression_cycles(self.epilogue)

    def term(self, x: Vec, center: Vec | None, total: Vec) -> Vec:
        """The total with x, or with (x − center)²."""
        if center is None:
            return total + x
        difference = x - center
        return difference.times_plus(difference, total)

    def factor(self, variance: Vec) -> Vec:
        """The factor that gives x − mean the variance 1."""
        root = variance.unary("sqrt") + self.eps if self.outside else (variance + self.eps).unary("sqrt")
        return 1.0 / root

    def result(self, f: Function, x: Vec, center: Vec, factor: Vec, operands: list[Vec]) -> Vec:
        """A vector of the output."""
        (value,) = evaluate(f, self.epilogue, [(x - center) * factor, *operands])
        return value


@record()
class RowNormalize(SpanKernel):
    """Normalizes the inner axes, with vectors along the last of them. Pointers: to, from, operands of the epilogue."""

    how: Formula

    @property
    def own(self) -> tuple[int, ...]:
        return (float_word(size_of(self.inner)),)

    @property
    def cycles(self) -> float:
        return self.count * (80 + size_of(self.inner) / 8 * self.how.cycles)

    @property
    def contiguous(self) -> Sequence[int]:
        return [SIZES[F32]] * self.how.tensors

    def span_code(self, f: Function, given: Arguments) -> SpanCode:
        (size,) = given.vectors(1)

        def code(span: Span, places: list[Pointer]) -> None:
            strides = span.strides

            def value(at: list[Pointer], count: AnyInt | None, tensor: int = 1) -> Vec:
                return read(f, at[tensor], 0, strides[tensor], count)

            def mean_of(center: Vec | None) -> Vec:
                """The mean of x, or of (x − center)²."""

                def term(at: list[Pointer], count: AnyInt | None, total: Vec) -> Vec:
                    return self.how.term(value(at, count), center, total)

                return span.fold(f, places, f.zero(), term, lambda a, b: a + b) / size

            center = mean_of(None) if self.how.center else f.zero()
            scale = self.how.factor(mean_of(center))

            def result(at: list[Pointer], count: AnyInt | None, _: list[Any]) -> list[Vec]:
                x, *operands = (value(at, count, tensor) for tensor in range(1, self.how.tensors))
                write(f, self.how.result(f, x, center, scale, operands), at[0], 0, strides[0], count)
                return []

            span.walk(f, places, result)

        return code
