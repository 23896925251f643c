"""String tensors from UTF-8 bytes, and back."""

from __future__ import annotations

import numpy as np

from irload.core.element import i32, i64, merge, string, u8
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch


class StringTensorPack(Op, since=15):
    """Strings of the UTF-8 bytes symbols[begin:end], one per pair of begins and ends.

    Specification: StringTensorPack-15. begins and ends are i32 or i64 of one shape, symbols is u8 with one axis.
    """

    def infer(self, begins: TensorType, ends: TensorType, symbols: TensorType) -> TensorType:
        index = merge(begins.element, ends.element)
        if not (index in (i32, i64) or index.is_dynamic):
            raise TypeMismatch(f"begins and ends must be i32 or i64, found {index}")
        if not (symbols.element is u8 or symbols.element.is_dynamic):
            raise TypeMismatch(f"symbols must be u8, found {symbols.element}")
        if symbols.rank not in (None, 1):
            raise ShapeMismatch(f"symbols must have one axis, found {symbols.shape}")
        shape = begins.shape.meet(ends.shape)
        if shape is None:
            raise ShapeMismatch(f"begins and ends must be of one shape, found {begins.shape} and {ends.shape}")
        self._check_order(begins.ints or (), ends.ints or (), symbols.shape)
        return TensorType(string, shape)

    @staticmethod
    def _check_order(begins: tuple[int, ...], ends: tuple[int, ...], symbols: Shape) -> None:
        """Raise ShapeMismatch for known indices that are negative, not ascending, or beyond the symbols."""
        for name, indices in (("begins", begins), ("ends", ends)):
            if list(indices) != sorted(indices) or min(indices, default=0) < 0:
                raise ShapeMismatch(f"{name} must be ascending and not negative, found {list(indices)}")
            most = None if symbols.rank is None else symbols[0].hi
            if most is not None and max(indices, default=0) > most:
                raise ShapeMismatch(f"{name} must not exceed the {most} symbols, found {max(indices)}")

    def compute(self, begins: Array, ends: Array, symbols: Array) -> Array:
        if np.any((begins < 0) | (begins > ends) | (ends > symbols.size)):
            raise ExecutionError(f"begins and ends must be in order within the {symbols.size} symbols")
        data = symbols.tobytes()
        texts = np.empty(begins.size, object)
        pairs = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
        texts[:] = [data[begin:end].decode("utf-8", "surrogateescape") for begin, end in pairs]
        return texts.reshape(begins.shape)


class StringTensorUnpack(Op, since=15):
    """The UTF-8 bytes of all strings, concatenated, and the begin and end of each.

    Specification: StringTensorUnpack-15. Outputs: begins and ends, i32 of the shape of data; symbols, u8 with one axis.
    """

    def infer(self, data: TensorType) -> tuple[TensorType, TensorType, TensorType]:
        if not (data.element is string or data.element.is_dynamic):
            raise TypeMismatch(f"data must be strings, found {data.element}")
        offsets = TensorType(i32, data.shape)
        length = ANY if data.value is None else Dim.of(sum(map(len, encoded(data.value))))
        return offsets, offsets, TensorType(u8, Shape(length))

    def compute(self, data: Array) -> tuple[Array, Array, Array]:
        texts = encoded(data)
        ends = np.cumsum([len(text) for text in texts], dtype=np.int32)
        begins = np.concatenate([np.zeros(1, np.int32), ends])[: len(texts)]
        symbols = np.frombuffer(b"".join(texts), np.uint8)
        return begins.reshape(data.shape), ends.reshape(data.shape), symbols


def encoded(data: Array) -> list[bytes]:
    """The UTF-8 bytes of each string, in flat order."""
    return [str(text).encode("utf-8", "surrogateescape") for text in data.ravel().tolist()]
