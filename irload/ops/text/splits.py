"""The parts of a text between the matches of a pattern, by the behaviours of the tokenizers library."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.patterns import pattern_of
from irload.ops.text.ragged import pieces_of, require_offsets
from irload.ops.text.tokens import Remembered, columns, divided

BEHAVIOURS = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")


class Splitter:
    """Splits strings at the matches of `source`."""

    def __init__(self, source: bytes, behaviour: str, invert: bool, max_splits: int) -> None:
        if behaviour == "contiguous" and not source.endswith(b"+"):
            source = b"(" + source + b")+"
        self.source = source
        self._pattern = pattern_of(source)
        self._behaviour = behaviour
        self._isolates = behaviour in ("isolate", "contiguous")
        self._invert = invert
        self._max_splits = max_splits
        self._remembered: Remembered | None = None
        self._unsplit: Set[bytes] = frozenset()

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
        order = columns(ragged_begins, ragged_ends)
        pieces = pieces_of(begins[order], ends[order], chars)
        whole = np.zeros(len(pieces), bool) if skips is None else skips[order]
        kept = [piece for piece, is_whole in zip(pieces, whole.tolist(), strict=True) if not is_whole]
        parts, counts = self._table(unsplit).flat(kept)
        every = np.full(len(pieces), 2)
        every[~whole] = counts
        spans = np.zeros(int(every.sum()), np.int64)
        is_split = np.repeat(~whole, every)
        spans[is_split] = parts
        spans[~is_split] = np.stack([np.zeros(len(pieces), np.int64), (ends - begins)[order]], -1)[whole].ravel()
        new = (spans + np.repeat(begins[order], every)).astype(np.int32).reshape(-1, 2)
        starts, stops = divided(every // 2, ragged_begins, ragged_ends)
        flags = () if skips is None else (np.repeat(whole, every // 2),)
        return starts, stops, new[:, 0].copy(), new[:, 1].copy(), chars, *flags

    def _table(self, unsplit: Set[bytes]) -> Remembered:
        """The begins and ends of the parts of strings, cached for short strings."""
        if self._remembered is None or self._unsplit != unsplit:
            self._unsplit = unsplit

            def spans(piece: bytes) -> list[int]:
                return [0, len(piece)] if piece in unsplit else self._parts(piece).ravel().tolist()

            self._remembered = Remembered(spans)
        return self._remembered

    def _parts(self, piece: bytes) -> Array:
        """The begin and end of each part, in bytes."""
        if self._isolates and self._max_splits == -1 and (lengths := self._pattern.tiles(piece)) is not None:
            ends = np.cumsum(lengths)
            return np.stack([ends - lengths, ends], -1)
        spans = self._pattern.spans(piece)
        if piece and self._max_splits == -1 and not self._invert and self._behaviour in ("remove", "mergedwithnext"):
            return _between(np.array(spans, np.int64).reshape(-1, 2), len(piece), merged=self._behaviour != "remove")
        parts = _Parts(len(piece), self._behaviour, self._max_splits)
        at = 0
        for begin, end in spans:
            if begin != at:
                parts.add(at, begin, self._invert)
            parts.add(begin, end, not self._invert)
            at = end
        if at < len(piece):
            parts.add(at, len(piece), self._invert)
        else:
            parts.finish(self._invert)
        return np.array(parts.spans, np.int64).reshape(-1, 2)


def _between(spans: Array, size: int, *, merged: bool) -> Array:
    """The parts between matches; with `merged`, each from the begin of the match before it."""
    begins, ends = np.concatenate([[0], spans[:, 1]]), np.concatenate([spans[:, 0], [size]])
    kept = begins < ends
    if merged:
        begins = np.concatenate([[0], spans[:, 0]])
        kept[-1] = True  # the last match may end the text
    return np.stack([begins[kept], ends[kept]], -1)


class _Parts:
    """The parts of one text in order; `merging` is the begin of a part that is merged with the next one, or −1."""

    def __init__(self, size: int, behaviour: str, max_splits: int) -> None:
        self.spans: list[tuple[int, int]] = []
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
        if len(self.spans) == self._max_splits:
            end = self._size
        self.spans.append((max(begin, 0), min(end, self._size)))

    def finish(self, invert: bool) -> None:
        """Add the match at the end that has no text after it."""
        if self._behaviour == "mergedwithnext" and self._merging != self._size:
            self.add(self._merging, self._size, invert)
