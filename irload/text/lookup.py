"""Prompt lookup: guesses the next tokens from an earlier occurrence of the last tokens in the text."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 3
"""The number of last tokens that are searched in earlier text; if they do not occur there, fewer are searched."""


class Lookup:
    """The tokens of a text, and for each run of 1 to LONGEST tokens the end of its last earlier occurrence."""

    def __init__(self, tokens: Iterable[int]) -> None:
        self._tokens: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        """Append a token."""
        size = len(self._tokens)
        for length in range(1, min(LONGEST, size) + 1):
            self._ends[tuple(self._tokens[size - length :])] = size
        self._tokens.append(token)

    def candidates(self, count: int) -> list[int]:
        """Up to `count` tokens that followed the last earlier occurrence of the last tokens."""
        size = len(self._tokens)
        for length in range(min(LONGEST, size), 0, -1):
            end = self._ends.get(tuple(self._tokens[size - length :]))
            if end is not None:
                return self._tokens[end : end + count]
        return []
