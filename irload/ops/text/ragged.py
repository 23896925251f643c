"""Strings and ragged tensors as arrays of offsets: the types of ports, and their conversion to lists of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from irload.core.element import ElementType, i32, u8
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.ports import require_element, require_rank

LINE = Shape(ANY)
"""The shape of an array with one axis of unknown length."""


def require_strings(name: str, begins: TensorType, ends: TensorType, chars: TensorType) -> None:
    """Raise TypeMismatch unless the ports can be a tensor of strings."""
    require_element(f"{name}_begins", begins, i32)
    require_element(f"{name}_ends", ends, i32)
    require_element(f"{name}_chars", chars, u8)


def require_ragged_strings(ports: Sequence[TensorType]) -> None:
    """Raise TypeMismatch unless the five ports can be a ragged tensor of strings."""
    for name, tensor in zip(("ragged_begins", "ragged_ends"), ports, strict=False):
        require_element(name, tensor, i32)
    require_strings("string", ports[2], ports[3], ports[4])


def require_ragged(name: str, begins: TensorType, ends: TensorType, data: TensorType) -> None:
    """Raise TypeMismatch or ShapeMismatch unless the ports can be a ragged tensor with data of one axis."""
    require_element(f"{name}_begins", begins, i32)
    require_element(f"{name}_ends", ends, i32)
    require_rank(f"{name}_data", data, 1)


def require_text(name: str, tensor: TensorType) -> None:
    """Raise TypeMismatch or ShapeMismatch unless the port can be one string, given as its bytes."""
    require_element(name, tensor, u8)
    require_rank(name, tensor, 1)


def require_count(count: int, *allowed: int) -> None:
    """Raise ShapeMismatch unless the number of inputs is allowed."""
    if count not in allowed:
        raise ShapeMismatch(f"takes {' or '.join(map(str, allowed))} inputs, found {count}")


def strings_of(shape: Shape) -> tuple[TensorType, TensorType, TensorType]:
    """The three output types of a tensor of strings."""
    offsets = TensorType(i32, shape)
    return offsets, offsets, TensorType(u8, LINE)


def ragged_strings_of(shape: Shape) -> tuple[TensorType, ...]:
    """The five output types of a ragged tensor of strings with rows of `shape`."""
    offsets = TensorType(i32, shape)
    return (offsets, offsets, *strings_of(LINE))


def ragged_of(shape: Shape, element: ElementType = i32) -> tuple[TensorType, TensorType, TensorType]:
    """The three output types of a ragged tensor with rows of `shape`."""
    offsets = TensorType(i32, shape)
    return offsets, offsets, TensorType(element, LINE)


def pieces_of(begins: Array, ends: Array, chars: Array) -> list[bytes]:
    """The strings of a tensor in flat order. Raises ExecutionError for offsets outside of `chars`."""
    require_offsets(begins, ends, chars.size)
    data = chars.tobytes()
    return [data[b:e] for b, e in zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)]


def require_offsets(begins: Array, ends: Array, count: int) -> None:
    """Raise ExecutionError unless each begin precedes its end within `count` elements."""
    if begins.shape != ends.shape or (
        begins.size and (begins.min() < 0 or ends.max() > count or bool((begins > ends).any()))
    ):
        raise ExecutionError(f"begins and ends must be in order within the {count} elements")


def joined(pieces: Iterable[bytes], shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The three arrays of a tensor of strings."""
    pieces = list(pieces)
    begins, ends = offsets_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    return begins.reshape(shape), ends.reshape(shape), np.frombuffer(b"".join(pieces), np.uint8)


def offsets_of(lengths: Array) -> tuple[Array, Array]:
    """The begins and ends of consecutive rows. Raises ExecutionError beyond the range of i32."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if ends.size and ends[-1] > np.iinfo(np.int32).max:
        raise ExecutionError(f"{ends[-1]} elements exceed the range of i32 offsets; use smaller batches")
    return (ends - lengths).astype(np.int32), ends.astype(np.int32)


def text_of(chars: Array) -> bytes:
    """The string of a port that holds its bytes."""
    return chars.tobytes()
