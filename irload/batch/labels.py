"""Names of the values of an output: their file, the axis that they name, and the outputs that they fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irload.core.shape import without_unit_axes
from irload.errors import InputInvalid
from irload.graph import Port


def read_labels(path: Path) -> tuple[str, ...]:
    """The lines of a text file, without empty lines at its end. Raises InputInvalid if it is not UTF-8, OSError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").rstrip("\r\n").splitlines()
    except UnicodeDecodeError:
        raise InputInvalid(f"{path} is not a UTF-8 text file; --labels takes one name per line") from None
    if not lines:
        raise InputInvalid(f"{path} is empty; --labels takes one name per line")
    return tuple(lines)


def label_axis(port: Port, *, stacked: bool) -> int | None:
    """The size of the last axis of a sample, ignoring axes of size 1 at the end; 1 for a scalar; None if unknown."""
    shape = port.partial_shape
    if shape.rank is None:
        return None
    sizes = without_unit_axes(tuple(dim.lo if dim.is_static else -1 for dim in shape)[stacked:])
    return (sizes[-1] if sizes[-1] >= 0 else None) if sizes else 1


def fit(labels: Sequence[str], sizes: Sequence[int | None]) -> bool:
    """True if an output has as many values along its last axis as there are labels, or an unknown number."""
    return any(size in (None, len(labels)) for size in sizes)


def require_fit(labels: Sequence[str], names: Sequence[str], sizes: Sequence[int | None]) -> None:
    """Raise InputInvalid if the labels fit no output. `names`, `sizes`: of the outputs and of their last axes."""
    if fit(labels, sizes):
        return
    if all(size == 1 for size in sizes):
        raise InputInvalid("--labels requires an output with several values; every output of this model is one number")
    outputs = ", ".join(f"'{name}' has {size}" for name, size in zip(names, sizes, strict=True))
    found = f"output {outputs} values along its last axis" if len(names) == 1 else f"the last axes differ: {outputs}"
    count = f"{len(labels)} name{'' if len(labels) == 1 else 's'}"
    raise InputInvalid(f"--labels has {count}, but {found}")
