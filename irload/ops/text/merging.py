"""Byte pair encoding: the symbols of a text, merged in the order of ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import add

from irload.errors import ExecutionError
from irload.ops.text.trie import Trie

_BLOCK = "\u2581".encode()
_ACROSS = re.compile(b"(?<!%b)%b" % (_BLOCK, _BLOCK))

Entry = tuple[int, int, int, int, int]
"""A possible merge: its rank, its age, the two symbols, and the id of the result."""


class Merges:
    """A vocabulary and its merges.

    A text is first split into the longest tokens that no merge creates; a byte that starts none of them becomes a byte
    token, the unknown token, or nothing. Then the possible merge of the lowest rank is applied, the oldest one of equal
    rank, until no merge is possible. Raises ExecutionError for a merge of tokens that are not in the vocabulary.
    """

    def __init__(
        self,
        vocabulary: Mapping[bytes, int],
        lefts: Sequence[bytes],
        rights: Sequence[bytes],
        *,
        unknown: bytes,
        suffix: bytes,
        byte_fallback: bool,
    ) -> None:
        # Lists of strings, not of pairs: the garbage collector would scan all objects several times for 150,000 tuples.
        wholes = list(map(add, lefts, rights))
        id_of = vocabulary.__getitem__
        try:
            self.lefts, self.rights, self.results = ([*map(id_of, tokens)] for tokens in (lefts, rights, wholes))
            """The ids of the two parts and of the result of each merge, by rank."""
        except KeyError as error:
            left, right = next(p for p in zip(lefts, rights, strict=True) if not {*p, p[0] + p[1]} <= vocabulary.keys())
            raise ExecutionError(f"the merge of {left!r} and {right!r} needs {error}, not in the vocabulary") from None
        created = set(wholes)
        self.basic = {token: id for token, id in vocabulary.items() if token not in created}
        self._trie = Trie(self.basic.items())
        unknown_id = vocabulary.get(unknown, -1)
        self.suffix = suffix
        names = [b"<0x%02X>" % k for k in range(256)]
        bytes_ids = [self.basic.get(name, -1) if byte_fallback else -1 for name in names]
        self.others = [unknown_id if id == -1 else id for id in bytes_ids]
        """For each byte, its id if no token starts with it; −1: it is left out."""
        self.separator = _BLOCK if not suffix and _separates(vocabulary) else b""
        """U+2581 if no token has one after another character, so that texts can be split before each; else empty."""

    @cached_property
    def merges(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The rank and the result of each merge."""
        return dict(zip(zip(self.lefts, self.rights, strict=True), enumerate(self.results), strict=True))

    def tokens(self, text: bytes) -> Sequence[int]:
        """The ids of a text."""
        symbols = self._symbols(text + self.suffix)
        merges = self.merges
        age = len(symbols) - 1
        waiting: list[Entry] = []
        for k in range(age):
            merge = merges.get((symbols[k], symbols[k + 1]))
            if merge is not None:
                waiting.append((merge[0], k, k, k + 1, merge[1]))
        return self._merged(symbols, waiting, max(age, 0)) if waiting else symbols

    def _merged(self, ids: list[int], waiting: list[Entry], age: int) -> list[int]:
        """Apply merges. Symbols are linked; a merge appends a symbol, and −1 marks the symbols that it consumes."""
        merges = self.merges
        count = len(ids)
        before, after = list(range(-1, count - 1)), [*range(1, count), -1]
        first = 0
        heapify(waiting)
        while waiting:
            _, _, left, right, id = heappop(waiting)
            if ids[left] == -1 or ids[right] == -1:
                continue
            ids[left] = ids[right] = -1
            previous, following, merged = before[left], after[right], len(ids)
            ids.append(id)
            before.append(previous)
            after.append(following)
            age += 1
            if previous != -1:
                after[previous] = merged
                merge = merges.get((ids[previous], id))
                if merge is not None:
                    heappush(waiting, (merge[0], age, previous, merged, merge[1]))
            else:
                first = merged
            if following != -1:
                before[following] = merged
                merge = merges.get((id, ids[following]))
                if merge is not None:
                    heappush(waiting, (merge[0], age, merged, following, merge[1]))
        result: list[int] = []
        while first != -1:
            result.append(ids[first])
            first = after[first]
        return result

    def _symbols(self, text: bytes) -> list[int]:
        ids: list[int] = []
        at = 0
        longest = self._trie.longest
        while at < len(text):
            id, after = longest(text, at)
            if after == at:
                id, after = self.others[text[at]], at + 1
            at = after
            if id != -1:
                ids.append(id)
        return ids


def _separates(vocabulary: Iterable[bytes]) -> bool:
    """True if a token starts with U+2581, and no token has one after another character."""
    held = [token for token in vocabulary if _BLOCK in token]
    return bool(held) and not any(_ACROSS.search(token, 1) for token in held)
