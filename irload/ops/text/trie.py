"""The longest token at each position of a text, for vocabularies of bytes."""

from __future__ import annotations

from collections.abc import Iterable

from irload.core.element import i32
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.ops.ports import require_element
from irload.ops.text.base import Text
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import pieces_of, ragged_of, require_count, require_ragged_strings, require_strings
from irload.ops.text.tokens import Remembered, tokenized


class Trie:
    """Tokens by their bytes. Of equal tokens the last one counts."""

    def __init__(self, tokens: Iterable[tuple[bytes, int]]) -> None:
        self._ids = {token: id for token, id in tokens if token}
        lengths: dict[int, set[int]] = {}
        for token in self._ids:
            lengths.setdefault(token[0], set()).add(len(token))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def longest(self, text: bytes, at: int) -> tuple[int, int]:
        """The id of the longest token at `at` and the offset after it; −1 and `at` if there is none."""
        if at < len(text):
            for length in self._lengths.get(text[at], ()):
                token_id = self._ids.get(text[at : at + length])
                if token_id is not None and token_id != -1 and at + length <= len(text):
                    return token_id, at + length
        return -1, at


class TrieTokenizer(Text, opset="extension"):
    """Splits strings into the longest tokens from left to right.

    Inputs: a ragged tensor of strings, the vocabulary as a tensor of strings, and its ids, i32. Output: a ragged tensor
    of ids.
    """

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 9)
        require_ragged_strings(inputs)
        require_strings("vocab", *inputs[5:8])
        require_element("indices", inputs[8], i32)
        return ragged_of(inputs[0].shape)

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        def build() -> Remembered:
            trie = Trie(zip(pieces_of(*inputs[5:8]), inputs[8].ravel().tolist(), strict=True))
            return Remembered(lambda piece: _split(trie, piece))

        return tokenized(prepared(self, inputs[5:9], build), inputs)


def _split(trie: Trie, piece: bytes) -> list[int]:
    ids: list[int] = []
    at = 0
    while at < len(piece):
        id, after = trie.longest(piece, at)
        if after == at:
            raise ExecutionError(f"no token starts with byte {piece[at]}")
        ids.append(id)
        at = after
    return ids
