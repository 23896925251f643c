"""VocabEncoder and VocabDecoder: strings to ids by a table, and ids to strings."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import i32, i64
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch
from irload.ops.ports import require_element
from irload.ops.text.base import Text
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import (
    offsets_of,
    pieces_of,
    ragged_strings_of,
    require_count,
    require_offsets,
    require_strings,
)
from irload.ops.text.tokens import ranges


class VocabEncoder(Text, opset="extension"):
    """The id of each string in a vocabulary, or the default id.

    Inputs: a tensor of strings, the vocabulary as a tensor of strings, its ids, i32 or i64, and the default id. Of
    equal tokens the first one counts. Output: ids of the shape of the strings.
    """

    def infer(self, *inputs: TensorType) -> TensorType:
        require_count(len(inputs), 8)
        require_strings("string", *inputs[:3])
        require_strings("vocab", *inputs[3:6])
        require_element("ids", inputs[6], i32, i64)
        if inputs[3].shape.meet(inputs[6].shape) is None:
            raise ShapeMismatch(f"tokens and ids must be of one shape, found {inputs[3].shape} and {inputs[6].shape}")
        if not (inputs[7].element is inputs[6].element or inputs[7].element.is_dynamic):
            raise TypeMismatch(f"the default must be of type {inputs[6].element}, found {inputs[7].element}")
        return TensorType(inputs[6].element, inputs[0].shape)

    def compute(self, *inputs: Array) -> Array:
        def build() -> dict[bytes, int]:
            tokens, ids = pieces_of(*inputs[3:6]), inputs[6].ravel().tolist()
            return dict(zip(reversed(tokens), reversed(ids), strict=True))

        table = prepared(self, inputs[3:7], build)
        default = int(inputs[7].ravel()[0])
        encoded = [table.get(piece, default) for piece in pieces_of(*inputs[:3])]
        return np.array(encoded, inputs[6].dtype).reshape(inputs[0].shape)


class VocabDecoder(Text, opset="extension"):
    """The token of each id.

    Inputs: ids, i32 with two axes, the vocabulary as a tensor of strings, optionally the ids to skip, i32, otherwise
    the ids of `skip_tokens`. Output: a ragged tensor of strings with one row per row of ids. Skipped ids, and those
    without a token, give empty strings; so does a row without ids.
    """

    skip_tokens = attr.integers(default=())

    def validate(self) -> None:
        if any(not -(1 << 31) <= k < 1 << 31 for k in self.skip_tokens):
            raise AttributeInvalid(f"attribute skip_tokens must be within the range of i32, found {self.skip_tokens}")

    def infer(
        self,
        ids: TensorType,
        vocab_begins: TensorType,
        vocab_ends: TensorType,
        vocab_chars: TensorType,
        skip_tokens: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        require_element("ids", ids, i32)
        require_strings("vocab", vocab_begins, vocab_ends, vocab_chars)
        if ids.rank is None or ids.rank == 0:
            raise ShapeMismatch(f"ids must be of rank 2, found shape {ids.shape}")
        if skip_tokens is not None:
            require_element("skip_tokens", skip_tokens, i32)
        return ragged_strings_of(Shape(ids.shape[0]))

    def compute(
        self, ids: Array, vocab_begins: Array, vocab_ends: Array, vocab_chars: Array, skip_tokens: Array | None = None
    ) -> tuple[Array, ...]:
        rows, length = ids.shape
        if not length:
            starts = np.arange(rows, dtype=np.int32)
            empty = np.zeros(rows, np.int32)
            return starts, starts + np.int32(1), empty, empty, np.zeros(0, np.uint8)
        require_offsets(vocab_begins, vocab_ends, vocab_chars.size)
        skipped = np.array(self.skip_tokens, np.int32) if skip_tokens is None else skip_tokens
        kept = (ids >= 0) & (ids < vocab_begins.size) & ~np.isin(ids, skipped)
        token = np.where(kept, ids, 0).ravel()
        begins = vocab_begins.ravel()[token].astype(np.int64) if vocab_begins.size else token
        lengths = np.where(kept.ravel(), vocab_ends.ravel()[token] - begins if vocab_begins.size else 0, 0)
        chars = vocab_chars[ranges(begins, lengths)]
        starts = np.arange(rows, dtype=np.int32) * np.int32(length)
        return starts, starts + np.int32(length), *offsets_of(lengths), chars
