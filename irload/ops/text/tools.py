"""The inner functions of text operations that back ends may replace by faster ones with equal results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from irload.core.tensor import Array
from irload.ops.text.base import Text
from irload.ops.text.patterns import Replacement, pattern_of
from irload.ops.text.ragged import joined, pieces_of
from irload.ops.text.splits import Splitter
from irload.ops.text.tokens import Remembered, TokenTable


class SubwordModel(Protocol):
    """Tokenizes single strings."""

    def tokens(self, text: bytes) -> Sequence[int]:
        """The ids of a string."""
        ...


class TextTools:
    """The functions in Python."""

    def splitter(self, source: bytes, behaviour: str, invert: bool, max_splits: int) -> Splitter:
        """A splitter at the matches of a pattern."""
        return Splitter(source, behaviour, invert, max_splits)

    def table(self, model: SubwordModel) -> TokenTable:
        """The ids of many strings by a model."""
        return Remembered(model.tokens)

    def matches(self, source: bytes, begins: Array, ends: Array, chars: Array) -> Array | None:
        """A boolean per string, false if a pattern does not match in it; None if that is not known."""
        return None

    def replaced(
        self,
        source: bytes,
        replacement: bytes,
        everywhere: bool,
        begins: Array,
        ends: Array,
        chars: Array,
        skips: Array | None,
    ) -> tuple[Array, Array, Array]:
        """Strings with the matches of a pattern replaced, except for strings with a true in `skips`."""
        pattern, new = pattern_of(source), Replacement(replacement)
        unchanged = [False] * begins.size if skips is None else skips.ravel().tolist()
        results = (
            piece if skip else pattern.substituted(piece, new, everywhere=everywhere)
            for piece, skip in zip(pieces_of(begins, ends, chars), unchanged, strict=True)
        )
        return joined(results, begins.shape)


PYTHON = TextTools()


class TextOp(Text):
    """Base of operations with replaceable inner functions."""

    replaceable = True
    tools: ClassVar[TextTools] = PYTHON
