"""WordpieceTokenizer: words split into the longest subwords from left to right."""

from __future__ import annotations

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import pieces_of, ragged_of, require_count, require_ragged_strings, require_strings
from irload.ops.text.tokens import Remembered, tokenized
from irload.ops.text.trie import Trie


class WordpieceTokenizer(Op, opset="extension"):
    """Splits words into subwords of BERT's vocabularies.

    Inputs: a ragged tensor of words, the vocabulary as a tensor of strings, and the id of unknown words, a scalar. The
    first subword is a token without `suffix_indicator`, the others are tokens with it. A word that cannot be split, or
    has more than `max_bytes_per_word` bytes, is unknown. Output: a ragged tensor of ids, i32.
    """

    suffix_indicator = attr.text(default="##")
    max_bytes_per_word = attr.integer(default=100)

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 9)
        require_ragged_strings(inputs)
        require_strings("vocab", *inputs[5:8])
        return ragged_of(inputs[0].shape)

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        return tokenized(prepared(self, inputs[5:9], lambda: self._table(*inputs[5:9])), inputs)

    def _table(self, begins: Array, ends: Array, chars: Array, unknown: Array) -> Remembered:
        mark = self.suffix_indicator.encode()
        vocabulary = list(enumerate(pieces_of(begins, ends, chars)))
        first = Trie((token, id) for id, token in vocabulary if not token.startswith(mark))
        others = Trie((token[len(mark) :], id) for id, token in vocabulary if token.startswith(mark))
        unknown_id = int(unknown.ravel()[0])

        def split(word: bytes) -> list[int]:
            if len(word) > self.max_bytes_per_word:
                return [unknown_id]
            id, at = first.longest(word, 0)
            ids = [id]
            while at < len(word) and ids[-1] != -1:
                id, at = others.longest(word, at)
                ids.append(id)
            return [unknown_id] if ids[-1] == -1 else ids

        return Remembered(split)
