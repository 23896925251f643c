"""Ragged tensors of token ids, computed string by string."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.ragged import require_offsets
from irload.system.forks import unforked

REMEMBERED = 1 << 18
"""Maximum number of strings whose ids are stored."""
SHORT = 128
"""Maximum length in bytes of strings whose ids are stored. Longer strings seldom occur twice."""


class TokenTable(Protocol):
    """The ids of many strings."""

    def ids(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, Array]:
        """The ids of all strings, i32, concatenated, and the number of ids of each."""
        ...


class Remembered:
    """A function from a string to its ids. The ids of short strings are stored, so that each is tokenized once."""

    def __init__(self, tokenize: Callable[[bytes], Sequence[int]]) -> None:
        self._tokenize = tokenize
        self._lock = Lock()
        self._clear()

    def ids(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, Array]:
        """The ids of all strings, i32, concatenated, and the number of ids of each."""
        data = chars.tobytes()
        return self.flat([data[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)])

    def _clear(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ids, self._starts, self._sizes = array("i"), array("q"), array("q")

    def _add(self, piece: bytes) -> int:
        """Store the ids of a string and return its number."""
        ids = self._tokenize(piece)
        self._starts.append(len(self._ids))
        self._sizes.append(len(ids))
        self._ids.extend(ids)
        return len(self._sizes) - 1

    def flat(self, pieces: Sequence[bytes]) -> tuple[Array, Array]:
        """The ids of all strings, concatenated, and the number of ids of each."""
        with unforked, self._lock:
            return self._flat(pieces)

    def _flat(self, pieces: Sequence[bytes]) -> tuple[Array, Array]:
        if len(self._numbers) > REMEMBERED:
            self._clear()
        new = set(pieces).difference(self._numbers)
        self._numbers.update((piece, self._add(piece)) for piece in new if len(piece) <= SHORT)
        kept = len(self._ids), len(self._sizes)
        long = {piece: self._add(piece) for piece in new if len(piece) > SHORT}
        table = {**self._numbers, **long} if long else self._numbers
        order = np.fromiter(map(table.__getitem__, pieces), np.int64, len(pieces))
        lengths = np.frombuffer(self._sizes, np.int64)[order] if order.size else order
        starts = np.frombuffer(self._starts, np.int64)[order] if order.size else order
        index = ranges(starts, lengths)
        ids = np.frombuffer(self._ids, np.int32)[index] if index.size else index.astype(np.int32)
        del self._ids[kept[0] :], self._starts[kept[1] :], self._sizes[kept[1] :]
        return ids, lengths


def ranges(starts: Array, lengths: Array) -> Array:
    """The concatenation of the ranges of these starts and lengths."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def tokenized(table: TokenTable, inputs: Sequence[Array]) -> tuple[Array, Array, Array]:
    """The ragged tensor of the ids of a ragged tensor of strings, the first five inputs."""
    ragged_begins, ragged_ends, begins, ends, chars = inputs[:5]
    require_offsets(ragged_begins, ragged_ends, begins.size)
    require_offsets(begins, ends, chars.size)
    order = columns(ragged_begins, ragged_ends)
    flat, lengths = table.ids(begins[order], ends[order], chars)
    return *divided(lengths, ragged_begins, ragged_ends), flat


def divided(counts: Array, begins: Array, ends: Array) -> tuple[Array, Array]:
    """The begins and ends of rows, in order and without gaps, after element k has become `counts[k]` elements."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    rows = np.concatenate([[0], np.cumsum((ends - begins).ravel())])
    return offsets[rows[:-1]].reshape(begins.shape), offsets[rows[1:]].reshape(begins.shape)


def columns(begins: Array, ends: Array) -> Array:
    """The indices of the elements of all rows, in order."""
    return ranges(begins.ravel().astype(np.int64), (ends - begins).ravel().astype(np.int64))
