"""Automata find the same matches as backtracking, and exist only for patterns that need no backtracking."""

from __future__ import annotations

import random

import numpy as np
import pytest

from irload.ops.text.automaton import automaton_of
from irload.ops.text.patterns import pattern_of
from tests.ops.text.material import UNICODE, WORDS

ATOMS = (
    "a",
    "b",
    "[ab]",
    "[^a]",
    r"\s",
    r"\p{L}",
    r"\p{N}",
    r"[\p{L}\s]",
    "l",
    "é",
    ".",
    r"\x{1F44D}",
    r"\.",
    "(?i:s)",
)
REPEATED = ("?", "*", "+", "{2}", "{1,3}", "{2,}", "", "", "")
POOL = (*WORDS, *UNICODE, "a", "b", "ab", "\n", "s", "ſ", "S", "l", "aab", ".")


def pattern(rng: random.Random, depth: int = 2) -> str:
    parts: list[str] = []
    for _ in range(rng.randrange(1, 4)):
        inner = rng.choice(ATOMS)
        if depth and rng.random() < 0.4:
            inner = f"({rng.choice(('?:', '', '?i:'))}{pattern(rng, depth - 1)})"
        parts.append(inner + rng.choice(REPEATED))
        if rng.random() < 0.1:
            parts.append(rng.choice((r"(?!\S)", r"(?=\s)", "(?!a)")))
    whole = "".join(parts)
    return whole if rng.random() < 0.6 else f"{whole}|{pattern(rng, max(depth - 1, 0))}"


@pytest.mark.parametrize("seed", range(200))
def test_the_same_matches_as_by_backtracking(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        source = pattern(rng)
        automaton = automaton_of(source)
        if automaton is None:
            continue
        for _ in range(6):
            text = "".join(rng.choices(POOL, k=rng.randrange(8)))
            expected = [(m.start(), m.end()) for m in pattern_of(source.encode())._general.finditer(text)]
            matches: list[tuple[int, int]] = []
            at = 0
            while at < len(text):
                end = automaton.end(text, at)
                if end >= 0:
                    matches.append((at, end))
                at = max(end, at + 1)
            assert matches == expected, (source, text)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "a*",
        "a|",
        r"(?!\S)",
        "(a)\\1",
        "^a",
        "a$",
        r"\bx",
        "(?<=l)l",
        "a*?b",
        "a++",
        "(?>a)",
        "(a*)+b",
        "(?:a",
        "a)",
    ],
)
def test_other_patterns_have_none(source: str) -> None:
    assert automaton_of(source) is None


def test_scripts_include_their_extensions() -> None:
    automaton = automaton_of(r"\p{Han}")
    assert automaton is not None
    assert automaton.end("㍢", 0) == 1  # of script Common, with the extension Han
    assert automaton.end("a", 0) == -1


def test_the_tables_are_small() -> None:
    automaton = automaton_of(r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+")
    assert automaton is not None
    assert automaton.classes.dtype == np.uint8
    assert automaton.steps.size < 400
