"""Regular expressions of PCRE2, run by the `regex` package, and by `re` on texts of ASCII, where it is faster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.errors import Unsupported
from irload.ops.text.dialect import ascii_pattern, converted, regex_package
from irload.ops.text.utf8 import decoded

Span = tuple[int, int]


class Pattern:
    """A compiled pattern. Subjects are bytes, and offsets count bytes."""

    def __init__(self, source: bytes) -> None:
        text = source.decode("utf-8", "surrogateescape")
        self._general = _compiled(converted(text), text)
        self._ascii = _ascii(text)

    def spans(self, subject: bytes) -> list[Span]:
        """The non-empty matches before the first empty one, where the extension stops."""
        text, starts = decoded(subject)
        pattern = self._ascii if starts is None and self._ascii is not None else self._general
        spans: list[Span] = [m.span() for m in pattern.finditer(text)]
        for k, (begin, end) in enumerate(spans):
            if begin == end:
                spans = spans[:k]
                break
        return spans if starts is None else _as_bytes(spans, starts)

    def tiles(self, subject: bytes) -> Array | None:
        """The lengths in bytes of the matches if they are not empty and cover the subject, else None."""
        text, starts = decoded(subject)
        pattern = self._ascii if starts is None and self._ascii is not None else self._general
        if pattern.groups:
            return None
        matches = pattern.findall(text)
        lengths = np.fromiter(map(len, matches), np.int64, len(matches))
        if int(lengths.sum()) != len(text) or not lengths.all():
            return None
        return lengths if starts is None else np.diff(starts[np.concatenate([[0], np.cumsum(lengths)])])

    def groups(self, subject: bytes) -> Iterator[tuple[Span, Span | None]]:
        """Each non-empty match, and the last of its groups that is set and not beyond the match."""
        text, starts = decoded(subject)
        for match in self._general.finditer(text):
            begin, end = match.span()
            if begin == end:
                return
            inner = None
            for group in range(1, self._general.groups + 1):
                first, last = match.span(group)
                if begin <= first <= end and last <= end:
                    inner = (first, last)
            yield _moved((begin, end), starts), None if inner is None else _moved(inner, starts)

    def substituted(self, subject: bytes, replacement: Replacement, *, everywhere: bool) -> bytes:
        """The subject with its matches replaced, all or the first; unchanged if PCRE2's substitution fails."""
        text, starts = decoded(subject)
        pattern = self._ascii if starts is None and self._ascii is not None else self._general
        first = pattern.search(text)
        if first is None or not replacement.is_valid(self._general.groups):
            return subject
        if replacement.literal is not None and starts is None:
            room = 4 * (len(subject) + _highest(first) * len(replacement.source))
            replaced = pattern.sub(lambda _: replacement.literal, text, 0 if everywhere else 1)
            whole = replaced.encode("utf-8", "surrogateescape")
            return whole if len(whole) < room else subject
        result: list[bytes] = []
        at = room = 0
        for match in self._general.finditer(text):
            begin, end = _moved(match.span(), starts)
            room = room or 4 * (len(subject) + _highest(match) * len(replacement.source))
            result.append(subject[at:begin])
            for part in replacement.parts:
                if isinstance(part, bytes):
                    result.append(part)
                    continue
                span = _group(match, part)
                if span[0] < 0:
                    return subject
                first, last = _moved(span, starts)
                result.append(subject[first:last])
            at = end
            if not everywhere:
                break
        result.append(subject[at:])
        whole = b"".join(result)
        return whole if len(whole) < room else subject  # the extension's buffer also holds a final zero


class Replacement:
    r"""A replacement in PCRE2's syntax (`$1`, `${name}`, `$$`), where `\1` is `$1`."""

    def __init__(self, source: bytes) -> None:
        self.source = re.sub(rb"\\([1-9])", rb"$\1", source)
        self.parts: list[bytes | int | str] = []
        self._fails = False
        at = 0
        for match in re.finditer(rb"\$(?:(\$)|([0-9]+)|\{([0-9]+)\}|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})?", self.source):
            self.parts.append(self.source[at : match.start()])
            at = match.end()
            dollar, *others = match.groups()
            number, name = others[0] or others[1], others[2] or others[3]
            if dollar:
                self.parts.append(b"$")
            elif number:
                self.parts.append(int(number))
            elif name:
                self.parts.append(name.decode())
            else:
                self._fails = True
        self.parts.append(self.source[at:])
        whole = b"".join(part for part in self.parts if isinstance(part, bytes))
        is_literal = all(isinstance(part, bytes) for part in self.parts)
        self.literal = whole.decode("utf-8", "surrogateescape") if is_literal else None
        """The replacement if it has no groups."""

    def is_valid(self, groups: int) -> bool:
        """False if PCRE2 rejects the replacement for a pattern with this number of groups."""
        return not self._fails and not any(isinstance(p, int) and p > groups for p in self.parts)


@lru_cache(maxsize=512)
def pattern_of(source: bytes) -> Pattern:
    """The compiled pattern. Raises Unsupported without the package `regex`, or for syntax that it lacks."""
    return Pattern(source)


def _ascii(text: str) -> Any:
    """The pattern for texts of ASCII, None if `re` cannot run it."""
    source = ascii_pattern(text)
    try:
        return None if source is None else re.compile(source)
    except (re.error, OverflowError, RecursionError):
        return None


def _compiled(source: str, original: str) -> Any:
    regex = regex_package()
    try:
        return regex.compile(source)
    except regex.error as error:
        raise Unsupported(f"the regular expression '{original:.200}' is not supported: {error}") from None


def _highest(match: Any) -> int:
    """The number of spans of a match up to the last group that is set."""
    return 1 + max((k for k, span in enumerate(match.regs) if span[0] >= 0), default=0)


def _group(match: Any, part: int | str) -> Span:
    """The span of a group, (-1, -1) if it is not set or does not exist."""
    try:
        return match.span(part)
    except IndexError:
        return -1, -1


def _moved(span: Span, starts: Array | None) -> Span:
    return span if starts is None else (int(starts[span[0]]), int(starts[span[1]]))


def _as_bytes(spans: list[Span], starts: Array) -> list[Span]:
    if not spans:
        return []
    return [(b, e) for b, e in starts[np.array(spans)].tolist()]
