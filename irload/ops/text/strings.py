"""Tensors of strings: unpacked to bytes, packed, compared, hashed, and written from numbers."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from irload.core import attribute as attr
from irload.core.element import bf16, boolean, f16, f32, f64, i32, i64, string, u8
from irload.core.shape import UNRANKED
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, TypeMismatch
from irload.ops.ports import require_element, require_rank
from irload.ops.text.base import Text
from irload.ops.text.farmhash import fingerprint
from irload.ops.text.ragged import LINE, pieces_of, strings_of
from irload.ops.type.strings import StringTensorPack as PackStrings
from irload.ops.type.strings import StringTensorUnpack as UnpackStrings

_MODE = ("begins_ends",)


class StringTensorUnpack(Text, opset="extension"):
    """The bytes of all strings, and the begin and end of each.

    data: strings of any shape, or u8 with one axis: an i32 count, count + 1 i32 offsets, then the bytes.
    """

    mode = attr.choice(*_MODE, default="begins_ends")

    def infer(self, data: TensorType) -> tuple[TensorType, ...]:
        require_element("data", data, string, u8)
        if data.element is u8:
            require_rank("data", data, 1)
            return strings_of(LINE)
        return strings_of(data.shape if data.element is string else UNRANKED)

    def compute(self, data: Array) -> tuple[Array, ...]:
        if data.dtype != u8.dtype:
            return UnpackStrings().compute(data)
        return unpacked(data)


def unpacked(data: Array) -> tuple[Array, Array, Array]:
    """The strings of a packed u8 tensor. Raises ExecutionError for a tensor that is too short."""
    count = int(np.frombuffer(data.tobytes()[:4], "<i4")[0]) if data.size >= 4 else -1
    header = 4 * (count + 2)
    if count < 0 or data.size < header:
        raise ExecutionError(f"{data.size} bytes are not packed strings: a count, count + 1 offsets, and the bytes")
    offsets = np.frombuffer(data.tobytes()[4:header], "<i4")
    return offsets[:-1], offsets[1:], data[header : header + int(offsets[-1])]


class StringTensorPack(PackStrings, opset="extension"):
    """Strings of the bytes chars[begin:end], one per pair of begins and ends."""

    mode = attr.choice(*_MODE, default="begins_ends")


class EqualStr(Text, opset="extension"):
    """1 where two strings are equal, else 0; a single string is compared with all of the other tensor.

    Output: i32 with one axis; empty if one of the tensors is.
    """

    def infer(
        self,
        begins1: TensorType,
        ends1: TensorType,
        chars1: TensorType,
        begins2: TensorType,
        ends2: TensorType,
        chars2: TensorType,
    ) -> TensorType:
        for name, tensor in (("begins1", begins1), ("ends1", ends1), ("begins2", begins2), ("ends2", ends2)):
            require_element(name, tensor, i32)
        return TensorType(i32, LINE)

    def compute(
        self, begins1: Array, ends1: Array, chars1: Array, begins2: Array, ends2: Array, chars2: Array
    ) -> Array:
        first, second = pieces_of(begins1, ends1, chars1), pieces_of(begins2, ends2, chars2)
        if not first or not second:
            return np.zeros(0, np.int32)
        pairs = zip_longest(first, second)
        return np.array([(first[0] if a is None else a) == (second[0] if b is None else b) for a, b in pairs], np.int32)


class StringToHashBucket(Text, opset="extension"):
    """FarmHash's 64-bit fingerprint of each string, modulo `num_buckets`."""

    num_buckets = attr.integer(rule=attr.positive)

    def infer(self, begins: TensorType, ends: TensorType, chars: TensorType) -> TensorType:
        require_element("begins", begins, i32)
        require_element("ends", ends, i32)
        return TensorType(i64, begins.shape)

    def compute(self, begins: Array, ends: Array, chars: Array) -> Array:
        hashes = [fingerprint(piece) % self.num_buckets for piece in pieces_of(begins, ends, chars)]
        return np.array(hashes, np.int64).reshape(begins.shape)


class NumericToString(Text, opset="openvino_tokenizers"):
    """Each number as text: integers in decimal, floats with six significant digits, booleans as true and false."""

    widens = False

    def infer(self, x: TensorType) -> TensorType:
        if not x.element.is_dynamic and (x.element.bits < 8 or not (x.element.is_integer or _is_written(x))):
            raise TypeMismatch(f"x must be an integer of at least 8 bits, a float or boolean, found {x.element}")
        return TensorType(string, x.shape)

    def compute(self, x: Array) -> Array:
        texts = np.empty(x.size, object)
        write = _words if x.dtype.kind == "b" else _decimal if x.dtype.kind in "iu" else _significant
        texts[:] = [write(v) for v in x.ravel().tolist()]
        return texts.reshape(x.shape)


def _is_written(x: TensorType) -> bool:
    return x.element in (f16, bf16, f32, f64, boolean)


def _words(value: bool) -> str:
    return "true" if value else "false"


def _decimal(value: int) -> str:
    return str(value)


def _significant(value: float) -> str:
    return f"{value:g}"
