"""Which dims of the inputs are symbols."""

from __future__ import annotations

from collections.abc import Sequence

from irload.core.shape import Shape
from irload.core.size import Size, symbol
from irload.core.tensor import TensorType
from irload.core.trace import LEAST, MOST, Trace
from irload.record import record

Pattern = tuple[tuple[int, ...], ...]
"""For each dim of each input: its number if that is fixed, else −1 − the index of its symbol."""


@record()
class Symbols:
    """Input shapes as a pattern, and the values of its symbols.

    Dims that the file declares, and dims of 0 and 1, stay numbers. Equal dims share a symbol, because they usually have
    the same meaning, such as the length of ids and of their mask. If they differ later, another plan is traced.
    """

    pattern: Pattern
    values: tuple[int, ...]

    @staticmethod
    def of(declared: Sequence[Shape], shapes: Sequence[tuple[int, ...]], *, separate: bool = False) -> Symbols:
        """Return the symbols of these shapes. With `separate`, each dynamic dim has a separate symbol."""
        values: list[int] = []

        def dim(size: int, fixed: bool) -> int:
            if fixed or not LEAST <= size <= MOST:
                return size
            if separate or size not in values:
                values.append(size)
                return -len(values)
            return -1 - values.index(size)

        pattern = tuple(
            tuple(dim(n, declaration.rank == len(shape) and declaration[k].is_static) for k, n in enumerate(shape))
            for declaration, shape in zip(declared, shapes, strict=True)
        )
        return Symbols(pattern, tuple(values))

    def traced(self, given: Sequence[TensorType], trace: Trace) -> list[TensorType]:
        """Return the types of the inputs with the symbols of a new trace."""
        symbols = [symbol(trace, value) for value in self.values]

        def size(code: int) -> Size:
            return code if code >= 0 else symbols[-1 - code]

        return [TensorType(t.element, Shape(*map(size, codes))) for t, codes in zip(given, self.pattern, strict=True)]
