"""The prose of a file: text without code, with the line that it starts on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CODE = "‹code›"
"""Replaces code in prose, so that the words on both sides of it do not become neighbours."""
FOLDERS = ("irload", "cli", "docs", "benchmarks", "examples", "models", "tests")
GENERATED = {"docs/imports.md", "docs/rules.md", "docs/operations.md"}
"""Pages generated from docstrings, which are scanned at their source."""
BEGIN, END = "<!-- terms: begin -->", "<!-- terms: end -->"


class Text(NamedTuple):
    """A docstring, a comment, a message or a page. Line breaks are preserved, so that offsets give lines."""

    line: int
    text: str


def files() -> list[str]:
    """Paths, relative to the root, of every file whose prose is scanned."""
    python = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md"))
    return sorted({file.relative_to(ROOT).as_posix() for file in (*python, *pages)} - GENERATED)


def texts(path: str, source: str) -> list[Text]:
    """The prose of one file. Strings of tests that are not docstrings are data, and are left out."""
    if path.endswith(".md"):
        return [Text(1, _without_code(source))]
    return [*_comments(source), *_strings(source, docstrings_only=path.startswith("tests/"))]


_STRING_OR_COMMENT = re.compile(
    r"""(\"{3}|'{3})(?:\\.|(?!\1).)*\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""", re.DOTALL
)
"""Much faster than `tokenize`, which is written in Python."""


def _comments(source: str) -> Iterator[Text]:
    """Comments. Comments on consecutive lines are one text."""
    lines: list[str] = []
    first = line = 1
    at = 0
    for match in _STRING_OR_COMMENT.finditer(source):
        if match[0][0] != "#":
            continue
        line, at = line + source.count("\n", at, match.start()), match.start()
        if lines and line != first + len(lines):
            yield Text(first, _without_code("\n".join(lines)))
            lines = []
        if not lines:
            first = line
        lines.append(match[0].lstrip("#: ").rstrip())
    if lines:
        yield Text(first, _without_code("\n".join(lines)))


def _strings(source: str, docstrings_only: bool) -> Iterator[Text]:
    """Docstrings (of attributes, too), and strings of several words."""
    tree = ast.parse(source)
    walked = _statements(tree) if docstrings_only else ast.walk(tree)
    nodes = [node for node in walked if isinstance(node, ast.Expr | ast.JoinedStr | ast.Constant)]
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in [n.value for n in nodes if isinstance(n, ast.Expr)] if docstrings_only else nodes:
        if id(node) in parts:
            continue
        text = _text(node)
        if " " in text:
            yield Text(node.lineno, _without_code(text))  # type: ignore[attr-defined]


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements, without expressions inside them."""
    pending = [tree]
    for node in pending:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, [])


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or CODE for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


_NO_PROSE = re.compile(
    rf"^[ ]*(```|~~~).*?^[ ]*\1[ ]*$"  # a fenced block
    rf"|^[ ]*(>>>|\.\.\.) .*?$"  # a doctest
    rf"|{BEGIN}.*?{END}"  # the table of terms
    r"|``[^`]+``|`[^`]+`"  # code in a sentence
    r"|\]\([^)\s]*\)|https?://\S+",  # the target of a link
    re.DOTALL | re.MULTILINE,
)


def _without_code(text: str) -> str:
    return _NO_PROSE.sub(lambda match: CODE + "\n" * match[0].count("\n"), text)
