"""irload and irrun use names that exist only on Unix only after a check for their existence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.platforms.windows import UNIX_ONLY

ROOT = Path(__file__).parents[2]
NAMES = re.compile("|".join(rf"\b{name}\b" for names in UNIX_ONLY.values() for name in names))
"""Matches any of the names. Files without a match are not parsed."""
OPENS = re.compile(r"\b(open|read_text|write_text)\(")
"""Matches calls that may open text files."""
FILES = sorted((ROOT / "irload").rglob("*.py")) + sorted((ROOT / "cli").rglob("*.py"))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def unguarded(tree: ast.AST, guards: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """(line, name) of every use outside `if hasattr(module, "name")` and the else of `if sys.platform == "win32"`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if (module or alias.name) in UNIX_ONLY["modules"] or alias.name in UNIX_ONLY.get(module, ()):
                    yield node.lineno, f"{module} {alias.name}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if node.attr in UNIX_ONLY.get(node.value.id, ()) and name not in guards:
                yield node.lineno, name
        if isinstance(node, ast.If):
            yield from unguarded(node.test, guards)
            asked = {f"{c.args[0].id}.{c.args[1].value}" for c in ast.walk(node.test) if is_question(c)}  # type: ignore
            for statement in node.body:
                yield from unguarded(ast.Module([statement], []), guards | asked)
            for statement in node.orelse:
                yield from unguarded(ast.Module([statement], []), guards)
        elif isinstance(node, ast.With) and suppresses_absence(node):
            yield from unguarded(node, guards | {f"os.{name}" for name in UNIX_ONLY["os"]})
        else:
            yield from unguarded(node, guards)


def is_question(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"


def suppresses_absence(node: ast.With) -> bool:
    return any("AttributeError" in ast.unparse(item.context_expr) for item in node.items)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os\nos.pread(1, 2, 3)", ["os.pread"]),
        ("import os\nif hasattr(os, 'pread'):\n    os.pread(1, 2, 3)\nelse:\n    os.preadv", ["os.preadv"]),
        ("import os\nwith suppress(OSError, AttributeError):\n    os.sysconf('x')", []),
        ("import fcntl", [" fcntl"]),
        ("from signal import SIGKILL", ["signal SIGKILL"]),
        ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)", []),
    ],
)
def test_the_survey_detects_unguarded_names(code: str, expected: list[str]) -> None:
    assert [name for _, name in unguarded(ast.parse(code))] == expected


def test_no_name_that_windows_lacks() -> None:
    assert len(FILES) > 200
    met = [
        f"{file.relative_to(ROOT).as_posix()}:{line}: {name}"
        for file in FILES
        if NAMES.search(file.read_text("utf-8"))
        for line, name in unguarded(parsed(file))
    ]
    assert not met, "\n".join(met)


def test_text_files_name_their_encoding() -> None:
    """Without an explicit encoding Windows uses another one than UTF-8."""
    met = [
        f"{file.relative_to(ROOT).as_posix()}:{call.lineno}"
        for file in FILES
        if OPENS.search(file.read_text("utf-8"))
        for call in ast.walk(parsed(file))
        if isinstance(call, ast.Call) and opens_text(call)
    ]
    assert not met, "\n".join(met)


def opens_text(call: ast.Call) -> bool:
    """True for open(), read_text() and write_text() without an encoding."""
    if any(k.arg == "encoding" for k in call.keywords):
        return False
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        mode = next((a.value for a in call.args[1:2] if isinstance(a, ast.Constant)), "r")
        return "b" not in str(mode)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("read_text", "write_text"):
        return len(call.args) < (1 if call.func.attr == "read_text" else 2)
    return False
