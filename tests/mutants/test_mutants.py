"""Mutation testing applied to a small module."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.apply import Substitute, changed_functions, swap
from tests.mutants.choice import Reach
from tests.mutants.mutant import Mutant, Source

TEXT = '''"""Text."""

from functools import cache

SIZE = 3
SPEED = 4  # pragma: no mutate


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
    gc.freeze()  # as after the collection of the tests
    swap(file, functions)
    assert eval(value)


@pytest.mark.parametrize(
    ("old", "new"), [("SIZE = 3", "SIZE = 4"), ("= 2)", "= 3)"), ("@cache", ""), ("int = 4", "int = 5")]
)
def test_code_at_import_is_not_a_changed_function(old: str, new: str) -> None:
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
    assert excused("4  #") == (True, False)
    assert excused("a**3") == (False, True)
    assert list(source.statement(10)) == [9, 10], "a function's decorators, and the lines before its body"
    assert list(source.statement(11)) == [11]


def test_tests_of_rare_lines_of_the_function_come_first() -> None:
    tests = {f"t{k}": 1.0 + k for k in range(30)}
    reach = Reach(tests, {"f.py": {5: set(tests), 6: set(tests), 7: {"t20", "t9"}, 9: {"t25"}}}, [])
    assert reach.of("f.py", range(5, 6), range(4, 8), 100)[:4] == ["t9", "t20", "t0", "t1"]
    assert reach.of("f.py", range(5, 6), range(0), 100)[:2] == ["t0", "t1"]
    assert reach.of("f.py", range(5, 6), range(4, 8), 30)[:2] == ["t9", "t0"], "half of the time at most"
    assert Source(TEXT).function(TEXT.splitlines().index("    return SIZE * width") + 1) == range(11, 14)


def test_a_change_is_reported_without_its_context() -> None:
    mutant = Mutant("f.py", 12, "op", TEXT, TEXT.replace("SIZE * width", "SIZE  +  width"))
    assert mutant.changed == ("return SIZE * width", "return SIZE  +  width")
