"""Errors of the adapters. A failure of irload is a RuntimeError, which scripts for OpenVINO catch, and an IRError."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from irload import errors

__all__ = [
    "OVError",
    "OVTypeError",
    "OpenVINOError",
    "Unsupported",
    "UserInputError",
    "raising",
    "translated",
    "unsupported",
]

P = ParamSpec("P")
R = TypeVar("R")


class OpenVINOError(errors.IRError, RuntimeError):
    """A failure that OpenVINO reports as a RuntimeError. Its cause is irload's error, if there is one."""


class Unsupported(errors.Unsupported, NotImplementedError):
    """A feature of OpenVINO that irload does not have: devices other than CPU, other formats, remote memory."""


class OVError(Exception):
    """Base of the errors of `openvino.exceptions`."""


class UserInputError(OVError):
    """An argument from which no node can be created."""


class OVTypeError(OVError, TypeError):
    """An argument of an unexpected type."""


class _Translating:
    """A class instead of a generator, which would be slower: every inference enters it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.IRError) and not isinstance(error, OpenVINOError | Unsupported):
            adapted = Unsupported if isinstance(error, errors.Unsupported) else OpenVINOError
            raise adapted(error.message, error.where) from error


_translating = _Translating()


def translated() -> _Translating:
    """A context that converts an IRError into the error of the adapters that has the same message."""
    return _translating


def raising(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its IRErrors are `translated`."""

    @wraps(function)
    def translating(*args: P.args, **kwargs: P.kwargs) -> R:
        with translated():
            return function(*args, **kwargs)

    return translating


def unsupported(feature: str, instead: str = "") -> NoReturn:
    """Raise Unsupported for a feature; `instead` names the remedy."""
    remedy = f"; {instead}" if instead else ""
    raise Unsupported(f"irload does not support {feature}{remedy}")


def not_here(feature: str) -> Callable[..., Any]:
    """A callable that raises Unsupported for the feature."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        unsupported(feature, "use the OpenVINO runtime for it")

    return refuse
