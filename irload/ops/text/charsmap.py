"""Maps from short texts to their replacements, as Unicode's normal forms define them.

SentencePiece's compiler creates the same maps: they replace single characters, and for the composed forms all sequences
that decompose like one composed character. A text of several combining marks in an unusual order may therefore keep
parts that are not normalized, as in the extension.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from typing import Literal, cast

FORMS = ("nfc", "nfd", "nfkc", "nfkd")
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_SHORT, _REMEMBERED = 8, 1 << 16
"""The length of the longest run whose replacement is stored, and the maximum number of stored runs."""
_HANGUL = range(0xAC00, 0xD7A4)
_CASED = 0x20000
"""No character from here on has a lower case."""


class CharsMap:
    """Replaces the longest key at each position, from left to right."""

    def __init__(self, table: Mapping[str, str], form: Form | None = None) -> None:
        self._form: Form | None = form
        self._runs: dict[tuple[str, str], str] = {}
        self._longest: dict[str, int] = {}
        """The length of the longest key by its first character."""
        for key in table:
            self._longest[key[0]] = max(self._longest.get(key[0], 0), len(key))
        self._table = table
        self._ascii = {ord(key): value for key, value in table.items() if key.isascii() and len(key) == 1}
        before = max((_leading_ascii(key) for key in table if not key.isascii()), default=0)
        self._before = before
        """Maximum number of ASCII characters at the start of a key that has characters beyond ASCII."""

    def parts(self, text: str) -> Iterable[str]:
        """The replacement of each key in the text, and the other characters."""
        longest, table = self._longest, self._table
        at = 0
        while at < len(text):
            first = text[at]
            for length in range(longest.get(first, 0), 0, -1):
                replacement = table.get(text[at : at + length])
                if replacement is not None and at + length <= len(text):
                    yield replacement
                    at += length
                    break
            else:
                yield first
                at += 1

    def replaced(self, text: str) -> str:
        """The text with all keys replaced."""
        if text.isascii():
            return self._simple(text)
        if self._form is not None and unicodedata.is_normalized(self._form, text):
            return text
        result: list[str] = []
        at = 0
        for run in _BEYOND_ASCII.finditer(text):
            begin = max(run.start() - self._before, at)
            result += (self._simple(text[at:begin]), self._run(text[begin : run.start()], run[0]))
            at = run.end()
        result.append(self._simple(text[at:]))
        return "".join(result)

    def _simple(self, ascii: str) -> str:
        return ascii.translate(self._ascii) if self._ascii else ascii

    def _run(self, before: str, run: str) -> str:
        """The replacement of a run beyond ASCII and the characters before it; stored for short runs."""
        replacement = self._runs.get((before, run))
        if replacement is None:
            replacement = "".join(self.parts(before + run))
            if len(run) <= _SHORT and len(self._runs) < _REMEMBERED:
                self._runs[before, run] = replacement
        return replacement


@cache
def normal_form(form: str, fold: bool) -> CharsMap:
    """The map of a normal form, or of "identity"; with `fold` also of upper to lower case."""
    normal = None if form == "identity" else cast(Form, form.upper())
    table = {} if normal is None else _normalizing(normal)
    if fold:
        table = {key: "".join(map(_folded, value)) for key, value in table.items()}
        cased = (chr(k) for k in range(_CASED))
        table |= {c: lower for c in cased if (lower := _folded(c)) != c and c not in table}
    return CharsMap(table, None if fold else normal)


def _normalizing(form: Form) -> dict[str, str]:
    table: dict[str, str] = {}
    sources: dict[str, list[str]] = defaultdict(list)
    decomposed: set[str] = set()
    apart: Form = "NFKD" if "K" in form else "NFD"
    for k in range(1, sys.maxunicode + 1):
        if not (0xA0 <= k < 0x30000):
            continue
        c = chr(k)
        if not unicodedata.decomposition(c) and k not in _HANGUL:
            continue
        if (normal := unicodedata.normalize(form, c)) != c:
            table[c] = normal
        parts = unicodedata.normalize(apart, c)
        if len(parts) == 1:
            sources[parts].append(c)
        else:
            decomposed.add(parts)
    if form in ("NFC", "NFKC"):
        for parts in decomposed:
            composed = unicodedata.normalize("NFC", parts)
            if composed == parts:
                continue
            for spelled in product(*([c, *sources[c]] if c in sources else [c] for c in parts)):
                key = "".join(spelled)
                if key != composed:
                    table[key] = composed
    return table


def _leading_ascii(key: str) -> int:
    return next(k for k, c in enumerate(key) if not c.isascii())


def _folded(c: str) -> str:
    """The simple case folding of a character: always one character."""
    folded = c.casefold()
    if len(folded) == 1:
        return folded
    lower = c.lower()
    return lower if len(lower) == 1 else c
