"""BPETokenizer: byte pair encoding."""

from __future__ import annotations

from irload.core import attribute as attr
from irload.core.element import i32
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.ports import require_element
from irload.ops.text.merging import Merges
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import pieces_of, ragged_of, require_count, require_ragged_strings, require_strings
from irload.ops.text.tokens import TokenTable, tokenized
from irload.ops.text.tools import TextOp


class BPETokenizer(TextOp, opset="extension"):
    """Tokenizes strings by byte pair encoding.

    Inputs: a ragged tensor of strings, the vocabulary, and the merges, each as a tensor of strings: the two parts
    separated by a space, or the left parts and the right parts; then optionally added tokens as a tensor of strings,
    and their ids, i32. `end_suffix` is appended to each string. Bytes without a token become tokens like `<0x0A>` with
    `byte_fallback`, else `unk_token`, else nothing. Output: a ragged tensor of ids, i32.
    """

    unk_token = attr.text(default="")
    fuse_unk = attr.boolean(default=False)
    suffix_indicator = attr.text(default="")
    end_suffix = attr.text(default="")
    byte_fallback = attr.boolean(default=False)
    cache_capacity = attr.integer(default=20000)

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 11, 14, 15, 18)
        require_ragged_strings(inputs)
        require_strings("vocab", *inputs[5:8])
        require_strings("merges", *inputs[8:11])
        if len(inputs) in (14, 18):
            require_strings("right_merges", *inputs[11:14])
        if len(inputs) in (15, 18):
            require_strings("added_tokens", *inputs[-4:-1])
            require_element("added_token_ids", inputs[-1], i32)
            if inputs[-4].shape.meet(inputs[-1].shape) is None:
                raise ShapeMismatch(
                    f"added tokens and their ids must be of one shape, found {inputs[-4].shape} and {inputs[-1].shape}"
                )
        return ragged_of(inputs[0].shape)

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        return tokenized(prepared(self, inputs[5:], lambda: self._table(*inputs[5:])), inputs)

    def _table(self, *tables: Array) -> TokenTable:
        tokens = pieces_of(*tables[:3])
        vocabulary = dict(zip(tokens, range(len(tokens)), strict=True))
        left = pieces_of(*tables[3:6])
        if len(tables) in (9, 13):
            right = pieces_of(*tables[6:9])
        else:
            left, right = ([merge.partition(b" ")[k] for merge in left] for k in (0, 2))
        if len(tables) in (10, 13):
            for token, id in zip(pieces_of(*tables[-4:-1]), tables[-1].ravel().tolist(), strict=True):
                vocabulary.setdefault(token, id)
        return self.tools.table(
            Merges(
                vocabulary,
                left,
                right,
                unknown=self.unk_token.encode(),
                suffix=self.end_suffix.encode(),
                byte_fallback=self.byte_fallback,
            )
        )
