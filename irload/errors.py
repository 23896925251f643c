"""The error hierarchy. Imports nothing, so that every layer may raise from it.

An operation raises only the fact ("pads_begin has 3 values for a tensor of rank 4"). The layer that knows the place
adds it with `at`, and the message is rendered once, where the error is shown.
"""

from __future__ import annotations

from typing import Self

from irload.record import record

__all__ = [
    "AttributeInvalid",
    "DeclaredDiffers",
    "ExecutionError",
    "IRError",
    "InputInvalid",
    "LimitExceeded",
    "ReadError",
    "ShapeMismatch",
    "TypeMismatch",
    "UnknownOperation",
    "Unsupported",
    "Where",
]


def printable(text: str) -> str:
    """The text with control characters, ends of lines and marks that turn the direction of writing spelled out.

    Names in files may come from anywhere: shown as they are, they could forge lines of a log or commands of a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@record()
class Where:
    """The place a fault belongs to: a file, a line of its XML, a layer. Every part is optional."""

    file: str | None = None
    line: int | None = None
    layer_id: int | str | None = None
    layer_name: str | None = None
    layer_type: str | None = None

    def __str__(self) -> str:
        parts: list[str] = []
        if self.file is not None:
            parts.append(self.file if self.line is None else f"{self.file}:{self.line}")
        elif self.line is not None:
            parts.append(f"line {self.line}")
        layer = self.layer
        if layer:
            parts.append(layer)
        return printable(": ".join(parts))

    @property
    def layer(self) -> str:
        """The layer as people name it: `Convolution 'conv1' (id 12)`."""
        words: list[str] = []
        if self.layer_type is not None:
            words.append(self.layer_type)
        if self.layer_name:
            words.append(f"'{self.layer_name}'")
        if self.layer_id is not None:
            words.append(f"(id {self.layer_id})")
        return " ".join(words)


class IRError(Exception):
    """Base of every error that irload raises about a model, its weights or its inputs.

    `message` is the fact alone, `where` the place, both as they are in the file; `str(error)` joins them in one line of
    printable characters.
    """

    def __init__(self, message: str, where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where

    def at(self, where: Where) -> Self:
        """Attach the place, unless a deeper layer has already attached one. Returns the error, to be raised."""
        if self.where is None:
            self.where = where
        return self

    def __str__(self) -> str:
        place = "" if self.where is None else str(self.where)
        return printable(f"{place}: {self.message}" if place else self.message)


class ReadError(IRError):
    """The file cannot be read as an IR: syntax, structure, edges, or the weights beside it."""


class UnknownOperation(IRError):
    """No operation of that type exists in that opset. `types` names every unknown (type, version) of the model."""

    def __init__(self, message: str, where: Where | None = None, types: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message, where)
        self.types = types


class AttributeInvalid(IRError):
    """An attribute is missing, malformed, or outside what the specification allows."""


class ShapeMismatch(IRError):
    """Shapes (or the values that make a shape) do not agree with each other or with the specification."""


class TypeMismatch(IRError):
    """Element types do not agree with each other or with the specification."""


class DeclaredDiffers(IRError):
    """What a port declares is not what its operation produces. `port` names it: "output port 2"."""

    def __init__(self, message: str, where: Where | None = None, port: str = "") -> None:
        super().__init__(message, where)
        self.port = port


class Unsupported(IRError):
    """Valid IR that this version of irload cannot run, or what needs a package that is not installed."""


class LimitExceeded(IRError):
    """A safety limit would be passed: sizes, counts, iterations, time. `limit` is its name in `irload.Limits`."""

    def __init__(self, message: str, where: Where | None = None, *, limit: str = "") -> None:
        super().__init__(message, where)
        self.limit = limit


class InputInvalid(IRError):
    """An input given to a compiled model does not fit it."""


class ExecutionError(IRError):
    """An operation failed on the values it was given."""
