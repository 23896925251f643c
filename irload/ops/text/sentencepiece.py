"""SentencepieceTokenizer and its detokenizers: models of SentencePiece, run by its library."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from irload.core import attribute as attr
from irload.core.element import f32, i32, i64, string, u8
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, Unsupported
from irload.ops.ports import require_element, require_rank
from irload.ops.text.base import Text
from irload.ops.text.bytes import byte_token
from irload.ops.text.patterns import pattern_of
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import joined, pieces_of, require_count, require_strings, strings_of
from irload.ops.type.strings import encoded


def processor(model: Array) -> Any:
    """Load a serialized model. Raises Unsupported without the package, ExecutionError for other bytes."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise Unsupported(
            "this operation needs the package sentencepiece, which is not installed; pip install 'irload[text]'"
        ) from None
    loaded: Any = SentencePieceProcessor()
    try:
        loaded.LoadFromSerializedProto(model.tobytes())
    except RuntimeError as error:
        raise ExecutionError(f"the model of SentencePiece is malformed: {error}") from None
    return loaded


class SentencepieceTokenizer(Text, opset="extension"):
    """Tokenizes strings by a model of SentencePiece.

    Inputs: the serialized model, u8, the strings or a tensor of strings as three arrays, optionally special tokens as a
    tensor of strings and their ids, i32. Outputs: the indices of a sparse tensor, i64 [tokens, 2], its values, i32, and
    its shape, i64. With `nbest_size` other than 0 and 1 segmentations are sampled.
    """

    nbest_size = attr.integer(default=0)
    alpha = attr.number(default=0.0)
    add_bos = attr.boolean(default=False)
    add_eos = attr.boolean(default=False)
    reverse = attr.boolean(default=False)

    folds = False

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 2, 4, 6, 8)
        require_element("model", inputs[0], u8)
        if len(inputs) in (2, 6):
            require_element("strings", inputs[1], string, f32)
        else:
            require_strings("string", *inputs[1:4])
        if len(inputs) > 4:
            require_strings("special_tokens", *inputs[-4:-1])
            require_element("special_token_ids", inputs[-1], i32)
        return TensorType(i64, Shape(ANY, 2)), TensorType(i32, Shape(ANY)), TensorType(i64, Shape(2))

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        model = prepared(self, inputs[:1], lambda: processor(inputs[0]))
        texts = encoded(inputs[1]) if len(inputs) in (2, 6) else pieces_of(*inputs[1:4])
        if len(inputs) > 4:
            special = dict(zip(pieces_of(*inputs[-4:-1]), inputs[-1].ravel().tolist(), strict=True))
            rows = [self._with_special(model, special, text) for text in texts]
        else:
            rows = [self._encoded(model, text, add_eos=self.add_eos, reverse=self.reverse) for text in texts]
        indices = [(k, column) for k, row in enumerate(rows) for column in range(len(row))]
        shape = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
        values = np.array([id for row in rows for id in row], np.int32)
        return np.array(indices, np.int64).reshape(-1, 2), values, shape

    def _encoded(self, model: Any, text: bytes, *, add_eos: bool, reverse: bool) -> list[int]:
        sampling: dict[str, Any] = {}
        if self.nbest_size not in (0, 1):
            sampling = {"enable_sampling": True, "nbest_size": self.nbest_size, "alpha": self.alpha}
        ids: list[int] = model.encode(text, out_type=int, **sampling)
        ids = [*([model.bos_id()] if self.add_bos else []), *ids, *([model.eos_id()] if add_eos else [])]
        return ids[::-1] if reverse else ids

    def _with_special(self, model: Any, special: dict[bytes, int], text: bytes) -> list[int]:
        """The ids of a text with special tokens. The texts between special tokens are tokenized separately."""
        ids: list[int] = []
        spans = pattern_of(_alternatives(list(special))).spans(text) if special else []
        for (_, at), (begin, end) in pairwise([(0, 0), *spans, (len(text), len(text))]):
            if at < begin:
                ids += self._encoded(model, text[at:begin], add_eos=False, reverse=False)
            if begin < end:
                ids.append(special[text[begin:end]])
        if self.add_eos:
            ids.append(model.eos_id())
        return ids[::-1] if self.reverse else ids


def _alternatives(tokens: list[bytes]) -> bytes:
    """A pattern of the tokens. Tokens of ASCII letters match only at the start or the end of a word."""
    parts: list[bytes] = []
    for token in tokens:
        quoted = re.sub(rb"([.^$*+?()\[\]{}|\\])", rb"\\\1", token)
        is_word = token.isalpha() and token.isascii()
        parts += [rb"\b" + quoted, quoted + rb"\b"] if is_word else [quoted]
    return b"|".join(parts)


class Detokenizer(Text):
    """Base: the serialized model, u8, and ids, i32 with two axes, to a tensor of strings, one per row."""

    def infer(self, model: TensorType, ids: TensorType) -> tuple[TensorType, ...]:
        require_element("model", model, u8)
        require_element("ids", ids, i32)
        require_rank("ids", ids, 2)
        return strings_of(Shape(ANY if ids.rank is None else ids.shape[0]))

    def compute(self, model: Array, ids: Array) -> tuple[Array, ...]:
        loaded = prepared(self, (model,), lambda: processor(model))
        size = loaded.get_piece_size()
        if ids.size and ids.min() < 0:
            raise ShapeMismatch(f"ids must not be negative, found {int(ids.min())}")
        rows = ([id for id in row if id < size] for row in ids.tolist())
        return joined((self.text(loaded, row) for row in rows), (len(ids),))

    def text(self, model: Any, ids: list[int]) -> bytes:
        """The text of one row."""
        raise NotImplementedError


class SentencepieceDetokenizer(Detokenizer, opset="extension"):
    """The texts of rows of ids by a model of SentencePiece. Ids beyond its vocabulary are left out."""

    def text(self, model: Any, ids: list[int]) -> bytes:
        return model.decode(ids).encode() if ids else b""


class SentencepieceStreamDetokenizer(Detokenizer, opset="extension"):
    """The tokens of rows of ids, joined, with byte tokens as bytes. Ids beyond the vocabulary are left out."""

    def text(self, model: Any, ids: list[int]) -> bytes:
        return b"".join(byte_token(model.id_to_piece(id).encode()) for id in ids)
