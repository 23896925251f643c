"""A mutant: one small change of one file, the statement around it, and the code that is not mutated."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import unified_diff


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, and the file's text before and after it."""

    file: str
    """Path relative to the root of the repository."""
    line: int
    operator: str
    before: str
    after: str

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def changed(self) -> tuple[str, str]:
        """The lines that differ, stripped, without empty ones: before, after."""
        lines = unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=0)
        body = [line for line in list(lines)[2:] if not line.startswith("@@")]
        old, new = (
            "\n".join(line[1:].strip() for line in body if line[0] == sign and line[1:].strip()) for sign in "-+"
        )
        return old, new


class Source:
    """A file's text and its syntax tree. Positions are (line, column) from (1, 0)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = self.text.splitlines()
        self._statements: list[tuple[int, int]] = []
        self._functions: list[tuple[int, int]] = []
        self._excluded: list[tuple[tuple[int, int], tuple[int, int]]] = []
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.stmt):
                self._statements.append(_own_lines(node))
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                body = node.body[0] if isinstance(node, ast.FunctionDef) else node.body
                self._functions.append((body.lineno, node.end_lineno or body.lineno))
            self._excluded += [_span(self._lines, part) for part in _unobservable(node)]
        marked = (k for k, line in enumerate(self._lines, 1) if line.endswith("# pragma: no mutate"))
        self._excluded += [((k, 0), (k + 1, 0)) for k in marked]

    def statement(self, line: int) -> range:
        """The lines of the innermost statement at a line; for a compound one, only its head."""
        around = [(last - first, first, last) for first, last in self._statements if first <= line <= last]
        _, first, last = min(around, default=(0, line, line))
        return range(first, last + 1)

    def in_function(self, line: int) -> bool:
        """True for a line in the body of a function, which does not run by the import of the file alone."""
        return any(first <= line <= last for first, last in self._functions)

    def function(self, line: int) -> range:
        """The lines of the body of the innermost function at a line; none outside functions."""
        around = [(last - first, first, last) for first, last in self._functions if first <= line <= last]
        _, first, last = min(around, default=(0, 0, -1))
        return range(first, last + 1)

    def excluded(self, position: tuple[int, int]) -> bool:
        """True for a position in an annotation, in the message of an error, or in a line marked `pragma: no mutate`."""
        return any(begin <= position < end for begin, end in self._excluded)


def _own_lines(node: ast.stmt) -> tuple[int, int]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    body = getattr(node, "body", None)
    return first, max(first, body[0].lineno - 1) if body else node.end_lineno or first


def _unobservable(node: ast.AST) -> list[ast.expr]:
    """Annotations, which are never evaluated (`from __future__ import annotations`), and messages of errors.

    Messages are not tested by mutation: other tests assert the texts of errors that users see.
    """
    if isinstance(node, ast.arg | ast.AnnAssign):
        parts = [node.annotation]
    elif isinstance(node, ast.FunctionDef):
        parts = [node.returns]
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        parts = [p for p in node.exc.args if isinstance(p, ast.JoinedStr)]
    elif isinstance(node, ast.Assert):
        parts = [node.msg]
    else:
        parts = []
    return [p for p in parts if p is not None]


def _span(lines: list[str], node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    """The start and end of a node. The tree counts columns in bytes, the tools in characters."""

    def position(line: int, column: int) -> tuple[int, int]:
        return line, len(lines[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)
