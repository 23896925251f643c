"""The parts of a text between the matches of a pattern, by the behaviours of the tokenizers library."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.patterns import pattern_of
from irload.ops.text.ragged import pieces_of, require_offsets

BEHAVIOURS = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")


class Splitter:
    """Splits strings at the matches of `source`."""

    def __init__(self, source: bytes, behaviour: str, invert: bool, max_splits: int) -> None:
        if behaviour == "contiguous" and not source.endswith(b"+"):
            source = b"(" + source + b")+"
        self._pattern = pattern_of(source)
        self._behaviour = behaviour
        self._isolates = behaviour in ("isolate", "contiguous")
        self._invert = invert
        self._max_splits = max_splits

    def split(
        self,
        ragged_begins: Array,
        ragged_ends: Array,
        begins: Array,
        ends: Array,
        chars: Array,
        *,
        skips: Array | None,
        unsplit: Set[bytes],
    ) -> tuple[Array, ...]:
        """The parts as a ragged tensor of strings, and with `skips` for each whether its string is unsplit."""
        require_offsets(ragged_begins, ragged_ends, begins.size)
        pieces = pieces_of(begins, ends, chars)
        whole = [False] * len(pieces) if skips is None else skips.tolist()
        lengths: list[Array] = []
        counts = np.zeros(len(pieces), np.int64)
        for k, piece in enumerate(pieces):
            is_whole = whole[k] or piece in unsplit
            parts = np.array([[0, len(piece)]]) if is_whole else self._parts(piece)
            counts[k] = len(parts)
            lengths.append(parts + int(begins[k]))
        order = _columns(ragged_begins, ragged_ends)
        new = np.concatenate([lengths[k] for k in order]) if order else np.zeros((0, 2), np.int64)
        cumulative = np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int32)
        rows = np.concatenate([[0], np.cumsum((ragged_ends - ragged_begins).ravel())])
        starts = cumulative[rows[:-1]].reshape(ragged_begins.shape)
        stops = cumulative[rows[1:]].reshape(ragged_begins.shape)
        flags = () if skips is None else (np.repeat(np.array(whole, bool)[order], counts[order]),)
        return starts, stops, new[:, 0].astype(np.int32), new[:, 1].astype(np.int32), chars, *flags

    def _parts(self, piece: bytes) -> Array:
        """The begin and end of each part, in bytes."""
        if self._isolates and self._max_splits == -1 and (lengths := self._pattern.tiles(piece)) is not None:
            ends = np.cumsum(lengths)
            return np.stack([ends - lengths, ends], -1)
        parts = _Parts(len(piece), self._behaviour, self._max_splits)
        at = 0
        for begin, end in self._pattern.spans(piece):
            if begin != at:
                parts.add(at, begin, self._invert)
            parts.add(begin, end, not self._invert)
            at = end
        if at < len(piece):
            parts.add(at, len(piece), self._invert)
        else:
            parts.finish(self._invert)
        return np.array(parts.found, np.int64).reshape(-1, 2)


class _Parts:
    """The parts of one text in order; `merging` is the begin of a part that is merged with the next one, or −1."""

    def __init__(self, size: int, behaviour: str, max_splits: int) -> None:
        self.found: list[tuple[int, int]] = []
        self._size = size
        self._behaviour = behaviour
        self._max_splits = max_splits
        self._merging = -1

    def add(self, begin: int, end: int, is_match: bool) -> None:
        """Add a match, or the text before one."""
        if self._behaviour == "remove" and is_match:
            return
        if self._behaviour == "mergedwithprevious":
            if not is_match and end != self._size:
                self._merging = begin
                return
            if is_match:
                begin = self._merging
        elif self._behaviour == "mergedwithnext":
            if is_match:
                self._merging = begin
                return
            if self._merging != -1:
                begin = self._merging
        if len(self.found) == self._max_splits:
            end = self._size
        self.found.append((max(begin, 0), min(end, self._size)))

    def finish(self, invert: bool) -> None:
        """Add the match at the end that has no text after it."""
        if self._behaviour == "mergedwithnext" and self._merging != self._size:
            self.add(self._merging, self._size, invert)


def _columns(begins: Array, ends: Array) -> list[int]:
    """The indices of the strings of all rows, in order."""
    pairs = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    return [k for begin, end in pairs for k in range(begin, end)]
