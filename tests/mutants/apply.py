"""Making a mutant live in a process that has imported everything: the changed functions get their new code.

That takes a millisecond, where a new process takes seconds to import. What happens at import itself (constants,
defaults, decorators, and functions called then) cannot be changed afterwards: `fresh.py` starts anew for these.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

Place = tuple[str, bytes]
"""A function's qualified name, and its table of lines and columns, which tells lambdas of one line apart."""


def changed_functions(file: str, before: str, after: str) -> dict[Place, CodeType] | None:
    """The new code of the functions that differ, None where more than functions does. Raises SyntaxError."""
    old, new = compile(before, file, "exec"), compile(after, file, "exec")
    changed: dict[Place, CodeType] = {}
    return changed if _collect(old, new, changed) else None


def swap(file: str, functions: dict[Place, CodeType]) -> None:
    """Give the functions of a file, wherever they are bound, their new code."""
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == file:
            code = functions.get(_place(function.__code__))
            if code is not None:
                function.__code__ = code


class Substitute(MetaPathFinder):
    """Imports one module from another text than that of its file."""

    def __init__(self, module: str, file: str, text: str) -> None:
        self.module, self.file, self.text = module, file, text

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        text = self.text

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType:
                return compile(text, self.path, "exec")

        within = [str(Path(self.file).parent)] if Path(self.file).name == "__init__.py" else None
        return spec_from_file_location(
            fullname, self.file, loader=Loader(fullname, self.file), submodule_search_locations=within
        )

    def install(self) -> None:
        """Be asked before all others."""
        sys.meta_path.insert(0, self)


def _collect(old: CodeType, new: CodeType, changed: dict[Place, CodeType]) -> bool:
    """Enter the functions that differ below two bodies of modules or classes; False where the bodies do."""
    inner = list(_nested(old)), list(_nested(new))
    if _without_nested(old) != _without_nested(new) or len(inner[0]) != len(inner[1]):
        return False
    for a, b in zip(*inner, strict=True):
        if a == b:
            continue
        if a.co_flags & CO_OPTIMIZED and (not a.co_name.startswith("<") or a.co_name == "<lambda>"):
            if a.co_freevars != b.co_freevars:
                return False
            changed[_place(a)] = b
        elif not _collect(a, b, changed):
            return False
    return True


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_linetable


def _nested(code: CodeType) -> Iterator[CodeType]:
    return (c for c in code.co_consts if isinstance(c, CodeType))


def _without_nested(code: CodeType) -> tuple[Any, ...]:
    constants = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, constants, code.co_names, code.co_varnames
