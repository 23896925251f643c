"""Regular expressions: PCRE2's syntax, the faster pattern for ASCII, replacements, and invalid UTF-8."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from irload.errors import Unsupported
from irload.ops.text.automaton import automaton_of
from irload.ops.text.dialect import ascii_pattern, converted
from irload.ops.text.patterns import Pattern, Replacement, pattern_of
from irload.ops.text.splits import Splitter
from irload.ops.text.utf8 import decoded, validated

LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def test_the_pattern_for_ascii_finds_the_same() -> None:
    assert ascii_pattern(LLAMA) is not None
    pattern = Pattern(LLAMA.encode())
    rng = np.random.default_rng(0)
    for _ in range(50):
        text = bytes(rng.integers(1, 128, 60).astype(np.uint8))
        ascii_spans = pattern.spans(text)
        shifted = pattern.spans(text + "é".encode())  # no longer ASCII
        assert ascii_spans[:-2] == shifted[: len(ascii_spans) - 2]


@pytest.mark.parametrize(
    ("pattern", "text", "spans"),
    [
        (rb"\x{e9}+", "éé", [(0, 4)]),
        (rb"\h+", "\u1680 ", [(0, 4)]),
        (rb"\Q.*\E", "a.*", [(1, 3)]),
        (rb"(?|(a)|(b))", "ab", [(0, 1), (1, 2)]),
        (rb"\s", "\u180e", [(0, 3)]),
        (rb"\bfoo\b", "foo_ foo", [(5, 8)]),
        (rb"[[:alpha:]]+", "ab1", [(0, 2)]),
        (rb"a*", "baa", []),
    ],
)
def test_the_syntax_of_pcre(pattern: bytes, text: str, spans: list[tuple[int, int]]) -> None:
    assert Pattern(pattern).spans(text.encode()) == spans


def test_sets_with_a_bracket_are_read_to_their_end() -> None:
    assert converted(r"[]\s]\s") == r"[]\s" + "\\u180e" + r"][\s" + "\\u180e]"
    assert Pattern(rb"[]a]+").spans(b"]a") == [(0, 2)]


@pytest.mark.parametrize(
    ("replacement", "expected"),
    [(b"<$1>", b"<a>b<a>"), (rb"\1\1", b"aabaa"), (b"$$", b"$b$"), (b"$2", b"aba"), (b"$", b"aba"), (b"", b"b")],
)
def test_replacements(replacement: bytes, expected: bytes) -> None:
    assert Pattern(b"(a)").substituted(b"aba", Replacement(replacement), everywhere=True) == expected


def test_groups_that_are_not_set_leave_the_text() -> None:
    assert Pattern(b"(a)|b").substituted(b"ab", Replacement(b"[$1]"), everywhere=True) == b"ab"
    assert Pattern(b"(a)|b").substituted(b"ab", Replacement(b"[$1]"), everywhere=False) == b"[a]b"


def test_results_beyond_the_buffer_leave_the_text() -> None:
    assert Pattern(b"x").substituted(b"x" * 100, Replacement(b"12345"), everywhere=True) == b"x" * 100
    assert Pattern(b"x").substituted(b"x" * 9, Replacement(b"1234"), everywhere=True) == b"1234" * 9


def test_invalid_bytes_are_characters() -> None:
    text, starts = decoded(b"a\xff\x85\xe2\x82b")
    assert starts is not None
    assert len(text) == len(starts) - 1
    assert starts[-1] == 6
    assert decoded(b"abc")[1] is None
    assert [list(map(int, starts)) for _, starts in [decoded("aé日".encode())] if starts is not None] == [[0, 1, 3, 6]]


def test_validation() -> None:
    mark = "\ufffd".encode()
    assert validated(b"a\xffb", mark) == b"a" + mark + b"b"
    assert validated(b"\xe2\x82", mark) == mark
    assert validated(b"\xc0\x80", mark) == mark * 2
    assert validated(b"a\xffb", b"") == b"ab"


def test_splits_by_behaviour() -> None:
    def parts(behaviour: str, *, invert: bool = False, limit: int = -1) -> list[bytes]:
        text = np.frombuffer(b"a--b-c", np.uint8)
        one = np.array([0]), np.array([1]), np.array([0]), np.array([6]), text
        splitter = Splitter(b"-", behaviour, invert, limit)
        *_, begins, ends, chars = splitter.split(*one, skips=None, unsplit=frozenset())
        return [chars.tobytes()[b:e] for b, e in zip(begins, ends, strict=True)]

    assert parts("remove") == [b"a", b"b", b"c"]
    assert parts("remove", invert=True) == [b"-", b"-", b"-"]
    assert parts("isolate") == [b"a", b"-", b"-", b"b", b"-", b"c"]
    assert parts("contiguous") == [b"a", b"--", b"b", b"-", b"c"]
    assert parts("isolate", limit=2)[2] == b"-b-c"
    assert parts("mergedwithnext")[-1] == b"-c"


@pytest.mark.parametrize("compile", [lambda: pattern_of(b"a"), lambda: automaton_of("[k-q]")])
def test_the_remedy_for_a_missing_package(compile: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    pattern_of.cache_clear()
    automaton_of.cache_clear()
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(Unsupported, match=r"pip install 'irload\[text\]'"):
        compile()


def test_syntax_that_is_not_supported() -> None:
    with pytest.raises(Unsupported, match="not supported"):
        pattern_of(rb"(*SKIP)(")
