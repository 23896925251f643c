"""`openvino.package_utils`: decorators of deprecated functions, and the folder of CMake files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["classproperty", "deprecated", "deprecatedclassproperty", "deprecation_warning", "get_cmake_path"]

P = ParamSpec("P")
R = TypeVar("R")


def deprecation_warning(function_name: str, version: str = "", message: str = "", stacklevel: int = 2) -> None:
    """Warn that a function is deprecated, with the version of its removal and a remedy."""
    until = f" and will be removed in version {version}" if version else ""
    warnings.warn(
        f"{function_name} is deprecated{until}{f'. {message}' if message else ''}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def deprecated(
    name: str | None = None, version: str = "", message: str = "", stacklevel: int = 2
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that warns at every call."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def warning(*args: P.args, **kwargs: P.kwargs) -> R:
            deprecation_warning(name or function.__name__, version, message, stacklevel + 1)
            return function(*args, **kwargs)

        return warning

    return decorate


class classproperty(Generic[R]):  # noqa: N801 - a decorator
    """A property of a class: read without an instance."""

    def __init__(self, function: Callable[[Any], R]) -> None:
        self._function = function.__func__ if isinstance(function, classmethod) else function

    def __get__(self, instance: object, owner: type) -> R:
        return self._function(owner)


def deprecatedclassproperty(
    name: str | None = None, version: str = "", message: str = "", stacklevel: int = 2
) -> Callable[[Callable[[Any], R]], classproperty[R]]:
    """A `classproperty` that warns at every access."""
    return lambda function: classproperty(deprecated(name, version, message, stacklevel + 1)(function))


def get_cmake_path() -> str:
    """The folder of this package with OpenVINOConfig.cmake, or ``""``: irload has no C++ libraries."""
    for folder, _, files in os.walk(Path(__file__).parent):
        if "OpenVINOConfig.cmake" in files:
            return folder
    return ""
