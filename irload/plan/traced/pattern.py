"""Patterns of input shapes: which dims of the inputs are symbols."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.shape import Shape
from irload.core.size import is_size, symbol
from irload.core.tensor import TensorType
from irload.core.trace import MAX_SYMBOL, MIN_SYMBOL, Trace
from irload.record import record

Pattern = tuple[tuple[int, ...], ...]
"""For each dim of each input: the dim itself if it is fixed, otherwise −1 − the index of its symbol.

For an input whose value is known, the same for each element of the value instead; elements below 0 are 0.
"""


@record()
class Symbols:
    """Input shapes as a pattern, and the values of its symbols.

    Dims that the file declares as static, and dims of 0 and 1, stay numbers. Equal dims share a symbol, because they
    usually have the same meaning, such as the length of ids and of their mask. If they differ in a later inference,
    another plan is traced.
    """

    pattern: Pattern
    values: tuple[int, ...]
    negative: tuple[int, ...] = ()
    """The elements of known values that are below 0, in order."""

    @staticmethod
    def of(declared: Sequence[Shape], shapes: Sequence[tuple[int, ...]], *, separate: bool = False) -> Symbols:
        """Return the symbols of these shapes and values. With `separate`, each dynamic dim has a separate symbol."""
        values: list[int] = []
        negative: list[int] = []

        def dim(size: int, fixed: bool) -> int:
            if size < 0:
                negative.append(size)
                return 0
            if fixed or not MIN_SYMBOL <= size <= MAX_SYMBOL:
                return size
            if separate or size not in values:
                values.append(size)
                return -len(values)
            return -1 - values.index(size)

        pattern = tuple(
            tuple(dim(n, declaration.rank == len(shape) and declaration[k].is_static) for k, n in enumerate(shape))
            for declaration, shape in zip(declared, shapes, strict=True)
        )
        return Symbols(pattern, tuple(values), tuple(negative))

    def traced(self, given: Sequence[TensorType], trace: Trace) -> list[TensorType]:
        """Return the types of the inputs with the symbols of a new trace."""
        symbols = [symbol(trace, value) for value in self.values]

        def traced(tensor: TensorType, codes: tuple[int, ...]) -> TensorType:
            sizes = [code if code >= 0 else symbols[-1 - code] for code in codes]
            if tensor.value is None:
                return TensorType(tensor.element, Shape(*sizes))
            pairs = zip(tensor.value.ravel().tolist(), sizes, strict=True)
            elements = [n if n < 0 else size for n, size in pairs]
            value = np.array(elements, object if any(map(is_size, elements)) else tensor.value.dtype)
            return TensorType(tensor.element, tensor.shape, value.reshape(tensor.value.shape))

        return [traced(tensor, codes) for tensor, codes in zip(given, self.pattern, strict=True)]
