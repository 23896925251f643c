"""Applies a mutant to a process that has imported everything: replaces the code objects of the changed functions.

A replacement takes a millisecond, the imports of a new process take seconds. Code that runs at import (constants,
defaults, decorators, and functions called then) cannot be changed afterwards: `fresh.py` starts a new process for it.
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
"""A function's qualified name, and its table of lines and columns, which distinguishes lambdas of one line."""


def changed_functions(file: str, before: str, after: str) -> dict[Place, CodeType] | None:
    """The new code of the functions that differ, None if anything but functions differs. Raises SyntaxError."""
    old, new = compile(before, file, "exec"), compile(after, file, "exec")
    changed: dict[Place, CodeType] = {}
    return changed if _collect(old, new, changed) else None


def swap(file: str, functions: dict[Place, CodeType]) -> None:
    """Replace the code of the functions of a file, including all references to them."""
    gc.unfreeze()  # gc.get_objects leaves out frozen objects
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == file:
            code = functions.get(_place(function.__code__))
            if code is not None:
                function.__code__ = code


class Substitute(MetaPathFinder):
    """Imports one module from a given text instead of its file."""

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
        """Precede all other finders."""
        sys.meta_path.insert(0, self)


def _collect(old: CodeType, new: CodeType, changed: dict[Place, CodeType]) -> bool:
    """Add the functions that differ below two bodies of modules or classes; False if the bodies themselves differ."""
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
