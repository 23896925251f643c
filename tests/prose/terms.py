"""The terms of the project, and the search for the phrases that they replace. The source is terms.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.prose.texts import BEGIN, END, ROOT, Text

TABLE = Path(__file__).with_name("terms.toml")
PAGE = ROOT / "CONTRIBUTING.md"


class Term(NamedTuple):
    """A row of the table: the words to use, the phrases to avoid, and one sentence before and after."""

    say: str
    avoid: str
    forbidden: tuple[re.Pattern[str], ...]
    before: str
    after: str


class Hit(NamedTuple):
    line: int
    phrase: str
    term: Term


def load() -> list[Term]:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["term"]
    return [Term(**{**row, "forbidden": tuple(map(_compiled, row["forbidden"]))}) for row in rows]


def _compiled(pattern: str) -> re.Pattern[str]:
    spaced = pattern.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w-])(?:{spaced})(?![\w-])", re.IGNORECASE)


def hits(texts: list[Text], terms: list[Term]) -> list[Hit]:
    """The forbidden phrases of a file, by line."""
    any_phrase = re.compile("|".join(p.pattern for term in terms for p in term.forbidden), re.IGNORECASE)
    return sorted(
        Hit(text.line + text.text.count("\n", 0, match.start()), " ".join(match[0].split()), term)
        for text in texts
        if any_phrase.search(text.text)  # one search rules out most texts
        for term in terms
        for pattern in term.forbidden
        for match in pattern.finditer(text.text)
    )


def page(text: str, terms: list[Term]) -> str:
    """The text of CONTRIBUTING.md with the table of these terms."""
    rows = ["| say | do not say | for example |", "|---|---|---|"]
    rows += [f"| {term.say} | {term.avoid} | {term.before} → **{term.after}** |" for term in terms]
    before, rest = text.split(BEGIN)
    return "\n".join([before + BEGIN, "", *rows, "", END + rest.split(END)[1]])
