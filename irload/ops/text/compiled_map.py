"""SentencePiece's compiled maps from short texts to their replacements: a trie of bytes in a double array."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from irload.errors import ExecutionError

_REMEMBERED = 1 << 16
Step = tuple[int, str | None]
"""The offset of a node's children, −1 if there is no such node; the replacement of the key that ends in the node."""


class CompiledMap:
    """Replaces the longest key at each position, from left to right.

    `blob`: the size of the double array, the array, and the replacements, which end in zero bytes. A unit of the array
    holds a label, an offset to its children, and a bit that is set if a key ends in it. Raises ExecutionError for a
    malformed blob.
    """

    def __init__(self, blob: bytes) -> None:
        size = int.from_bytes(blob[:4], "little")
        if len(blob) < 4 or size % 4 or not 0 < size <= len(blob) - 4:
            raise ExecutionError(f"{len(blob)} bytes are not a compiled map of characters")
        self._units: list[int] = np.frombuffer(blob, "<u4", size // 4, 4).tolist()
        self._texts = blob[4 + size :]
        self._root = _offset(self._units[0])
        self._steps: dict[tuple[int, str], Step] = {}
        self._ascii = {c for c in map(chr, range(1, 128)) if self._step(self._root, c)[0] >= 0}
        """The ASCII characters that start a key."""

    def replaced(self, text: str) -> str:
        """The text with all keys replaced."""
        if text.isascii() and self._ascii.isdisjoint(text):
            return text
        return "".join(self.parts(text))

    def parts(self, text: str) -> Iterable[str]:
        """The replacement of each key in the text, and the other characters."""
        at = 0
        while at < len(text):
            base, end = self._root, at
            part, after = text[at], at + 1
            while end < len(text):
                base, replacement = self._step(base, text[end])
                if base < 0:
                    break
                end += 1
                if replacement is not None:
                    part, after = replacement, end
            yield part
            at = after

    def _step(self, base: int, character: str) -> Step:
        step = self._steps.get((base, character))
        if step is None:
            if len(self._steps) >= _REMEMBERED:
                self._steps.clear()
            step = self._steps[base, character] = self._descended(base, character)
        return step

    def _descended(self, base: int, character: str) -> Step:
        units = self._units
        unit = 0
        for label in character.encode("utf-8", "surrogateescape"):
            position = base ^ label
            if not label or position >= len(units) or units[position] & 0x800000FF != label:
                return -1, None
            unit = units[position]
            base = position ^ _offset(unit)
        if not unit >> 8 & 1 or base >= len(units):
            return base, None
        at = units[base] & 0x7FFFFFFF
        return base, self._texts[at : self._texts.find(b"\0", at)].decode("utf-8", "replace")


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)
