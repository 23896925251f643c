"""The error hierarchy. Every layer may raise from it.

An operation raises only the fact ("pads_begin has 3 values for a tensor of rank 4"). The caller that has the location
adds it with `at`, and the message is rendered only when the error is shown.
"""

from __future__ import annotations

from typing import Self

from irload.record import record
from irload.wording import printable

__all__ = [
    "AttributeInvalid",
    "DeclaredDiffers",
    "ExecutionError",
    "IRError",
    "InputInvalid",
    "LimitExceeded",
    "OutOfMemory",
    "ReadError",
    "ShapeMismatch",
    "TypeMismatch",
    "UnknownOperation",
    "Unsupported",
    "Where",
    "out_of_memory",
]


@record()
class Where:
    """The location of a fault: a file, a line of its XML, a layer. Every part is optional."""

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
        """Return the layer as messages name it: `Convolution 'conv1' (id 12)`."""
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

    `message` is the fact, `where` the location, both unescaped; `str(error)` joins them in one line of printable
    characters.
    """

    def __init__(self, message: str, where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where

    def at(self, where: Where) -> Self:
        """Attach the location, unless one is already attached. Returns the error, to be raised."""
        if self.where is None:
            self.where = where
        return self

    def __str__(self) -> str:
        place = "" if self.where is None else str(self.where)
        return printable(f"{place}: {self.message}" if place else self.message)


class ReadError(IRError):
    """The file cannot be read as an IR: wrong syntax, structure or edges, or unusable weights."""


class UnknownOperation(IRError):
    """No operation of this type exists in this opset. `types` lists every unknown (type, version) of the model."""

    def __init__(self, message: str, where: Where | None = None, types: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message, where)
        self.types = types


class AttributeInvalid(IRError):
    """An attribute is missing, malformed, or not allowed by the specification."""


class ShapeMismatch(IRError):
    """Shapes (or the values that make a shape) do not agree with each other or with the specification."""


class TypeMismatch(IRError):
    """Element types do not agree with each other or with the specification."""


class DeclaredDiffers(IRError):
    """A port declares a type or shape that its operation does not produce. `port` is its name: "output port 2"."""

    def __init__(self, message: str, where: Where | None = None, port: str = "") -> None:
        super().__init__(message, where)
        self.port = port


class Unsupported(IRError):
    """Valid IR that this version of irload cannot run, or a missing package or processor feature."""


class LimitExceeded(IRError):
    """A safety limit on sizes, counts, iterations or time would be exceeded. `limit` is its name in `irload.Limits`."""

    def __init__(self, message: str, where: Where | None = None, *, limit: str = "") -> None:
        super().__init__(message, where)
        self.limit = limit


class InputInvalid(IRError):
    """An argument is unusable: an input of a model, an option, a limit, a path, a name, a shape or a layout."""


class ExecutionError(IRError):
    """An operation failed on the values it was given."""


class OutOfMemory(ExecutionError):
    """The system cannot provide the memory to read, plan or run."""


OUT_OF_MEMORY = "out of memory"
"""Part of the message of every OutOfMemory, by which batches recognise it in reasons stored as text."""


def out_of_memory(purpose: str, error: MemoryError) -> OutOfMemory:
    """Return the error for a failed allocation. The message names the purpose ("for the plan") and a remedy."""
    reason = f": {error}" if str(error) else ""
    return OutOfMemory(f"{OUT_OF_MEMORY} {purpose}{reason}; use smaller inputs or batches, or fewer threads")
