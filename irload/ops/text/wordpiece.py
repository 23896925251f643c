"""WordpieceTokenizer: words split into the longest subwords from left to right."""

from __future__ import annotations

from collections.abc import Mapping

from irload.core import attribute as attr
from irload.core.tensor import Array, TensorType
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import pieces_of, ragged_of, require_count, require_ragged_strings, require_strings
from irload.ops.text.tokens import TokenTable, tokenized
from irload.ops.text.tools import TextOp
from irload.ops.text.trie import Trie


class WordpieceTokenizer(TextOp, opset="extension"):
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

    def _table(self, begins: Array, ends: Array, chars: Array, unknown: Array) -> TokenTable:
        mark = self.suffix_indicator.encode()
        vocabulary = list(enumerate(pieces_of(begins, ends, chars)))
        first = {token: id for id, token in vocabulary if not token.startswith(mark)}
        others = {token[len(mark) :]: id for id, token in vocabulary if token.startswith(mark)}
        return self.tools.table(Subwords(first, others, int(unknown.ravel()[0]), self.max_bytes_per_word))


class Subwords:
    """Splits words into the longest subwords from left to right.

    `first`, `others`: the ids of subwords at the begin of a word, and of others. Words that cannot be split, or have
    more than `longest` bytes, are the token `unknown`.
    """

    def __init__(self, first: Mapping[bytes, int], others: Mapping[bytes, int], unknown: int, longest: int) -> None:
        self.first = first
        self.others = others
        self.unknown = unknown
        self.longest = longest
        self._tries = Trie(first.items()), Trie(others.items())

    def tokens(self, text: bytes) -> list[int]:
        """The ids of a word."""
        if len(text) > self.longest:
            return [self.unknown]
        id, at = self._tries[0].longest(text, 0)
        ids = [id]
        while at < len(text) and ids[-1] != -1:
            id, at = self._tries[1].longest(text, at)
            ids.append(id)
        return [self.unknown] if ids[-1] == -1 else ids
