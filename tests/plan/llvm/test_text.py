"""LLVM IR is written in values.py, builder.py and intrinsics.py alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from irload.plan.backends import llvm

FOLDER = Path(llvm.__file__).parent
WRITERS = {"builder.py", "intrinsics.py", "values.py"}
TEXT = re.compile(
    r"@llvm\.|\bptr %|\bsplat \(|zeroinitializer|<\{?\S* x \S+>|, align \d|"
    r"\b(getelementptr|shufflevector|insertelement|extractelement|bitcast|fptrunc|fpext|icmp|fcmp|udiv|nsw) "
)


def instructions(source: str) -> Iterator[tuple[int, str]]:
    """The strings of a file that contain LLVM IR, other than docstrings, and calls that emit text."""
    tree = ast.parse(source)
    docstrings = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if TEXT.search(node.value):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            text = any(isinstance(a, ast.JoinedStr) for a in node.args)
            if node.func.attr == "emit" or (node.func.attr == "value" and text):
                yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.py")), ids=lambda file: str(file.relative_to(FOLDER)))
def test_kernels_write_no_text(file):
    if file.name not in WRITERS:
        assert list(instructions(file.read_text(encoding="utf-8"))) == []


def test_the_scan_detects_text():
    source = 'f.value("i64", f"add i64 {a}, 1")\nf.emit("call void @x()")\n"""A docstring with getelementptr here."""\n'
    assert [line for line, _ in instructions(source)] == [1, 2]
    assert [line for line, _ in instructions('x = "load <8 x float>, ptr %p"')] == [1]
