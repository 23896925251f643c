"""UnigramTokenizer: the segmentation with the highest sum of scores."""

from __future__ import annotations

from array import array

from irload.core import attribute as attr
from irload.core.tensor import Array, TensorType
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import pieces_of, ragged_of, require_count, require_ragged_strings, require_strings
from irload.ops.text.tokens import TokenTable, tokenized
from irload.ops.text.tools import TextOp

_PENALTY = 10.0
"""An unknown character scores this much below the lowest score of a token."""
_LENGTHS = (*[1] * 12, 2, 2, 3, 4)
"""The bytes of a character by the high half of its first byte."""


class UnigramTokenizer(TextOp, opset="extension"):
    """Tokenizes strings by a unigram language model.

    Inputs: a ragged tensor of strings, the vocabulary as a tensor of strings, and its scores, f32. Of segmentations
    with equal scores, the one whose last token starts first is chosen; sums are rounded to f32. Consecutive unknown
    characters become one `unk_token_id`. Output: a ragged tensor of ids, i32.
    """

    byte_fallback = attr.boolean(default=False)
    unk_token_id = attr.integer(default=0)
    fuse_unk = attr.boolean(default=False)
    min_score = attr.number(default=float("inf"))

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 9)
        require_ragged_strings(inputs)
        require_strings("vocab", *inputs[5:8])
        return ragged_of(inputs[0].shape)

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        def build() -> TokenTable:
            scores = [float(s) for s in inputs[8].ravel()]
            return self.tools.table(Segmentation(pieces_of(*inputs[5:8]), scores, self.unk_token_id))

        return tokenized(prepared(self, inputs[5:9], build), inputs)


class Segmentation:
    """The best segmentation of a text, by dynamic programming over its bytes."""

    def __init__(self, vocabulary: list[bytes], scores: list[float], unknown: int) -> None:
        self.ids: dict[bytes, int] = {}
        """The id of each token, −1 for the beginnings of tokens."""
        for id, token in enumerate(vocabulary):
            for length in range(1, len(token)):
                self.ids.setdefault(token[:length], -1)
            if token:
                self.ids[token] = id
        self.scores = scores
        self.unknown = unknown
        self.unknown_score = _f32(min(scores, default=0.0) - _PENALTY)

    def tokens(self, text: bytes) -> list[int]:
        """The ids of a text."""
        size = len(text)
        best, rounded = array("f", [0.0]) * (size + 1), array("f", [0.0])
        sources, ids = [-1] * (size + 1), [self.unknown] * (size + 1)
        table, scores = self.ids, self.scores
        at = 0
        while at < size:
            here = best[at]
            next_character = min(at + _LENGTHS[text[at] >> 4], size)
            known = False
            end = at + 1
            while end <= size:
                id = table.get(text[at:end])
                if id is None:
                    break
                if id >= 0:
                    rounded[0] = scores[id] + here
                    if sources[end] == -1 or rounded[0] > best[end]:
                        best[end], sources[end], ids[end] = rounded[0], at, id
                    known = known or end == next_character
                end += 1
            if not known:
                rounded[0] = self.unknown_score + here
                if sources[next_character] == -1 or rounded[0] > best[next_character]:
                    best[next_character], sources[next_character] = rounded[0], at
                    ids[next_character] = self.unknown
            at = next_character
        return self._path(sources, ids)

    def _path(self, sources: list[int], ids: list[int]) -> list[int]:
        """The ids of the best path, with runs of unknown characters as one."""
        result: list[int] = []
        at = len(sources) - 1
        while at > 0:
            id = ids[at]
            at = sources[at]
            if id != self.unknown or not result or result[-1] != id:
                result.append(id)
        return result[::-1]


def _f32(value: float) -> float:
    return array("f", [value])[0]
