"""The terms of the project, and the search for the phrases that they replace. The source is terms.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.prose.texts import BEGIN, END, ROOT, Text, texts

TABLE = Path(__file__).with_name("terms.toml")
PAGE = ROOT / "CONTRIBUTING.md"


class Term(NamedTuple):
    """A row of the table: the words to use, the phrases to avoid, and one sentence before and after."""

    say: str
    avoid: str
    forbidden: tuple[str, ...]
    before: str
    after: str


class Hit(NamedTuple):
    line: int
    phrase: str
    term: Term


def load() -> list[Term]:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["term"]
    return [Term(**{**row, "forbidden": tuple(row["forbidden"])}) for row in rows]


def _compiled(*patterns: str) -> re.Pattern[str]:
    spaced = "|".join(patterns).replace(" ", r"\s+")
    return re.compile(rf"(?<![\w-])(?:{spaced})(?![\w-])", re.IGNORECASE)


@cache
def _any_phrase(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return _compiled(*patterns)


def hits(prose: Sequence[Text], terms: Sequence[Term]) -> list[Hit]:
    """The forbidden phrases of a file, by line."""
    any_phrase = _any_phrase(tuple(pattern for term in terms for pattern in term.forbidden))
    return sorted(
        Hit(text.line + text.text.count("\n", 0, match.start()), " ".join(match[0].split()), term)
        for text in prose
        if any_phrase.search(text.text)  # one search rules out most texts
        for term in terms
        for pattern in term.forbidden
        for match in _compiled(pattern).finditer(text.text)
    )


def reported(paths: Iterable[str], terms: Sequence[Term]) -> list[str]:
    """One line per forbidden phrase of these files, whose paths are relative to the root."""
    return [
        f"{path}:{hit.line}: {hit.phrase!r}: say {hit.term.say}"
        for path in paths
        for hit in hits(texts(path, (ROOT / path).read_text(encoding="utf-8")), terms)
    ]


def page(text: str, terms: Sequence[Term]) -> str:
    """The text of CONTRIBUTING.md with the table of these terms."""
    rows = ["| say | do not say | for example |", "|---|---|---|"]
    rows += [f"| {term.say} | {term.avoid} | {term.before} → **{term.after}** |" for term in terms]
    before, rest = text.split(BEGIN)
    return "\n".join([before + BEGIN, "", *rows, "", END + rest.split(END)[1]])
