"""install: `import openvino` imports `irload.openvino`, for libraries that import OpenVINO themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from irload.openvino.errors import OpenVINOError
from irload.openvino.version import API

__all__ = ["install"]

NAME = "openvino"
HERE = "irload.openvino"
_ALIASES = {"_pyopenvino.op": ".op", "_pyopenvino.util": ".utils", "_ov_api": ""}
"""Internal names of OpenVINO that libraries import, and the modules that have their contents."""


def install() -> None:
    """Let `import openvino` and its submodules import irload's adapters in this process.

    This also works if the openvino wheel is installed. Raises RuntimeError if it has already been imported.
    """
    present = sys.modules.get(NAME)
    if present is not None:
        if present.__name__ == HERE:
            return
        raise OpenVINOError("openvino has been imported; call irload.openvino.install() before the first import of it")
    sys.meta_path.insert(0, _Finder())


class _Finder(DistributionFinder):
    """Finds `openvino.x` as `irload.openvino.x`, and the metadata of a distribution named openvino."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != NAME:
            return None
        actual = _actual(rest)
        if actual not in sys.modules and _missing(actual):
            return None
        return ModuleSpec(fullname, _Loader(actual), is_package=True)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        name = None if context is None else context.name
        return [_Metadata()] if name in (NAME, None) and not _has_wheel() else []


def _actual(rest: str) -> str:
    """The module that has the contents of `openvino.rest`."""
    if rest in _ALIASES:
        return HERE + _ALIASES[rest]
    below = rest.removeprefix("runtime.") if rest.startswith("runtime.") else rest
    return f"{HERE}.{below}" if below else HERE


def _missing(actual: str) -> bool:
    try:
        return find_spec(actual) is None
    except ImportError:
        return True


def _has_wheel() -> bool:
    return any(NAME in (path.name for path in Path(entry).glob(f"{NAME}-*.dist-info")) for entry in sys.path if entry)


class _Loader(Loader):
    """Loads a module that has another name, without changing that module."""

    def __init__(self, actual: str) -> None:
        self._actual = actual
        self._spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._actual)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Metadata(Distribution):
    """A distribution with the version of the API, which libraries compare."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {API}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)
