"""The machinery of mutation testing, on a module made here, and the list of equivalent mutants."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.apply import Substitute, changed_functions, swap
from tests.mutants.equivalents import Equivalent, equivalents
from tests.mutants.mutant import Mutant, Source

ROOT = Path(__file__).parents[2]

TEXT = '''"""Text."""

from functools import cache

SIZE = 3


@cache
def area(width: int | None = 2) -> int:
    if width is None:
        raise ValueError(f"no width, {1 + 1}")
    return SIZE * width


pair = (lambda x: x + 1), (lambda x: x + 1)


class Box:
    side: int = 4

    @property
    def volume(self):
        def cube(a):
            return a**3

        return cube(self.side)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "mutated.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mutated")
    del sys.modules["mutated"]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("SIZE * width", "SIZE + width", "module.area(5) == 8"),
        ("a**3", "a**2", "module.Box().volume == 16"),
        (", (lambda x: x + 1)", ", (lambda x: x - 1)", "[f(0) for f in module.pair] == [1, -1]"),
        ("(lambda x: x + 1),", "(lambda x: x - 1),", "[f(0) for f in module.pair] == [-1, 1]"),
    ],
)
def test_functions_change_where_they_are_bound(module: ModuleType, old: str, new: str, value: str) -> None:
    file = str(module.__file__)
    functions = changed_functions(file, TEXT, TEXT.replace(old, new, 1))
    assert functions is not None
    assert len(functions) == 1
    swap(file, functions)
    assert eval(value)


@pytest.mark.parametrize(
    ("old", "new"), [("SIZE = 3", "SIZE = 4"), ("= 2)", "= 3)"), ("@cache", ""), ("int = 4", "int = 5")]
)
def test_what_runs_at_import_is_no_matter_of_functions(old: str, new: str) -> None:
    assert changed_functions("f.py", TEXT, TEXT.replace(old, new)) is None


def test_a_module_is_imported_from_other_text(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    del sys.modules["mutated"]
    Substitute("mutated", str(module.__file__), TEXT.replace("SIZE = 3", "SIZE = 30")).install()
    again = importlib.import_module("mutated")
    assert (again.area(2), again.__file__) == (60, module.__file__)


def test_positions() -> None:
    source = Source(TEXT)
    lines = TEXT.splitlines()

    def excused(what: str) -> tuple[bool, bool]:
        line = next(k for k, text in enumerate(lines, 1) if what in text)
        return source.excluded((line, lines[line - 1].index(what))), source.in_function(line)

    assert excused("| None") == (True, False)
    assert excused("+ 1}") == (True, True)
    assert excused("* width") == (False, True)
    assert excused("SIZE = 3") == (False, False)
    assert excused("a**3") == (False, True)
    assert list(source.statement(9)) == [8, 9], "a function's decorators, and what stands before its body"
    assert list(source.statement(10)) == [10]


def test_what_changed_is_told_without_its_surroundings() -> None:
    mutant = Mutant("f.py", 12, "op", TEXT, TEXT.replace("SIZE * width", "SIZE  +  width"))
    assert mutant.changed == ("return SIZE * width", "return SIZE  +  width")
    code = "return SIZE * width"
    assert Equivalent("f.py", "a reason", code).covers(mutant)
    assert Equivalent("*.py", "a reason", code, "return SIZE + width").covers(mutant)
    assert not Equivalent("f.py", "a reason", code, "return SIZE - width").covers(mutant)
    assert not Equivalent("g.py", "a reason", code).covers(mutant)
    assert not Equivalent("f.py", "a reason", "return width").covers(mutant)
    assert Equivalent("f.py", "a reason", change=("SIZE * w", "SIZE - w", "SIZE + w")).covers(mutant)
    assert not Equivalent("f.py", "a reason", change=("SIZE * w", "SIZE - w")).covers(mutant)


def test_each_equivalent_mutant_has_its_line_and_a_reason() -> None:
    texts = {str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in (ROOT / "irload").rglob("*.py")}
    for entry in equivalents():
        assert (entry.code is None) != (entry.change is None)
        part = entry.code if entry.change is None else entry.change[0]
        lines = [line.strip() for f, text in texts.items() if fnmatch(f, entry.file) for line in text.splitlines()]
        found = any(line == part if entry.change is None else str(part) in line for line in lines)
        assert found, f"{entry.file} has no line {part!r} any more"
        assert len(entry.reason) > 20
