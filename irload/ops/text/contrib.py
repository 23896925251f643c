"""ContribStringJoin and ContribStringSplit: string operations of ONNX Runtime's extensions."""

from __future__ import annotations

import numpy as np

from irload.core.element import boolean, i8, i32, i64, u8
from irload.core.shape import ANY, UNRANKED, Shape, normalize_axis
from irload.core.tensor import Array, TensorType
from irload.ops.ports import require_element
from irload.ops.text.base import Text
from irload.ops.text.ragged import LINE, joined, pieces_of, require_strings, require_text, strings_of, text_of


class ContribStringJoin(Text, opset="extension"):
    """Strings joined along an axis.

    Inputs: a tensor of strings, the separator as bytes, and the axis, i32 or i64. Output: a tensor of strings without
    the axis; a scalar is unchanged.
    """

    def infer(
        self, begins: TensorType, ends: TensorType, chars: TensorType, separator: TensorType, axis: TensorType
    ) -> tuple[TensorType, ...]:
        require_strings("string", begins, ends, chars)
        require_text("separator", separator)
        require_element("axis", axis, i32, i64)
        if begins.rank is None:
            return strings_of(UNRANKED)
        if begins.rank <= 1:
            return strings_of(Shape())
        known = axis.ints
        if not known:
            return strings_of(Shape(*[ANY] * (begins.rank - 1)))
        k = normalize_axis(known[0], begins.rank)
        return strings_of(Shape(*begins.shape.dims[:k], *begins.shape.dims[k + 1 :]))

    def compute(self, begins: Array, ends: Array, chars: Array, separator: Array, axis: Array) -> tuple[Array, ...]:
        pieces = np.empty(begins.size, object)
        pieces[:] = pieces_of(begins, ends, chars)
        if not begins.ndim:
            return joined(pieces, ())
        lines = np.moveaxis(pieces.reshape(begins.shape), int(axis.ravel()[0]), -1)
        shape = lines.shape[:-1]
        between = text_of(separator)
        return joined((between.join(lines[index]) for index in np.ndindex(shape)), shape)


class ContribStringSplit(Text, opset="extension"):
    """Strings split at a delimiter, as a sparse tensor of strings.

    Inputs: a tensor of strings, the delimiter as bytes (empty: split into bytes), and whether to leave out empty parts.
    Outputs: the indices of the parts, i64 [parts, axes + 1], the parts as a tensor of strings, and the dense shape.
    Parts that are left out still count in the indices and in the shape.
    """

    def infer(
        self, begins: TensorType, ends: TensorType, chars: TensorType, delimiter: TensorType, skip_empty: TensorType
    ) -> tuple[TensorType, ...]:
        require_strings("string", begins, ends, chars)
        require_text("delimiter", delimiter)
        require_element("skip_empty", skip_empty, boolean, u8, i8)
        axes = ANY if begins.rank is None else begins.rank + 1
        return TensorType(i64, Shape(ANY, axes)), *strings_of(LINE), TensorType(i64, Shape(axes))

    def compute(
        self, begins: Array, ends: Array, chars: Array, delimiter: Array, skip_empty: Array
    ) -> tuple[Array, ...]:
        between, skips = text_of(delimiter), bool(skip_empty.ravel()[0])
        indices: list[tuple[int, ...]] = []
        parts: list[bytes] = []
        longest = 0
        for index, piece in zip(np.ndindex(begins.shape), pieces_of(begins, ends, chars), strict=True):
            substrings = piece.split(between) if between else [piece[k : k + 1] for k in range(len(piece))]
            longest = max(longest, len(substrings))
            for k, part in enumerate(substrings):
                if part or not skips:
                    indices.append((*index, k))
                    parts.append(part)
        shape = np.array([*begins.shape, longest], np.int64)
        return np.array(indices, np.int64).reshape(-1, begins.ndim + 1), *joined(parts, (len(parts),)), shape
