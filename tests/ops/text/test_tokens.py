"""Tokenizers: hand-worked cases of merges by rank, best segmentations and unknown words; the errors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from irload.errors import ExecutionError
from irload.ops.text.merging import Merges
from irload.ops.text.tokens import SHORT, Remembered
from irload.ops.text.trie import Trie
from irload.ops.text.unigram import Segmentation


def halves(pairs: Iterable[tuple[bytes, bytes]]) -> tuple[list[bytes], list[bytes]]:
    """The left and the right parts of merges."""
    every = list(pairs)
    return [left for left, _ in every], [right for _, right in every]


def merges(
    *pairs: tuple[bytes, bytes], unknown: bytes = b"", byte_fallback: bool = False, extra: tuple[bytes, ...] = ()
) -> Merges:
    tokens = dict.fromkeys([b"a", b"b", b"c", *extra])
    for left, right in pairs:
        tokens[left + right] = None
    vocabulary = {token: id for id, token in enumerate(tokens)}
    return Merges(vocabulary, *halves(pairs), unknown=unknown, suffix=b"", byte_fallback=byte_fallback)


def test_the_lowest_rank_is_merged_first() -> None:
    assert merges((b"b", b"c"), (b"a", b"b")).tokens(b"abc") == [0, 3]
    assert merges((b"a", b"b"), (b"b", b"c")).tokens(b"abc") == [3, 2]
    assert merges((b"a", b"b"), (b"ab", b"c")).tokens(b"abc") == [4]


def test_equal_ranks_are_merged_from_the_left() -> None:
    assert merges((b"a", b"a")).tokens(b"aaaaa") == [3, 3, 0]


def test_bytes_without_a_token() -> None:
    assert merges((b"a", b"b")).tokens(b"a?b") == [3]  # dropped before merging, as by the tokenizers library
    assert merges((b"a", b"b"), unknown=b"c").tokens(b"a?b") == [0, 2, 1]
    fallback = merges((b"a", b"b"), byte_fallback=True, extra=(b"<0x3F>",))
    assert fallback.tokens(b"a?b") == [0, 3, 1]


def test_a_long_run_is_merged_in_less_than_quadratic_time() -> None:
    pairs = [(b"a" * n, b"a" * n) for n in (1, 2, 4, 8, 16)]
    assert len(merges(*pairs).tokens(b"a" * 32 * 1000)) == 1000


def test_merges_need_their_tokens() -> None:
    with pytest.raises(ExecutionError, match="not in the vocabulary"):
        Merges({b"a": 0}, [b"a"], [b"b"], unknown=b"", suffix=b"", byte_fallback=False)


def test_the_longest_token_is_found() -> None:
    trie = Trie([(b"a", 1), (b"abc", 2), ("é".encode(), 3)])
    assert trie.longest(b"abcd", 0) == (2, 3)
    assert trie.longest(b"abd", 0) == (1, 1)
    assert trie.longest(b"abd", 2) == (-1, 2)
    assert trie.longest(b"\xc3", 0) == (-1, 0)


def test_the_best_segmentation() -> None:
    model = Segmentation([b"<unk>", b"a", b"b", b"ab"], [0.0, -1.0, -1.0, -1.5], 0)
    assert model.tokens(b"ab") == [3]
    assert model.tokens(b"a??b") == [1, 0, 2]
    assert model.tokens(b"") == []


def test_results_are_remembered_and_long_texts_are_not() -> None:
    calls: list[bytes] = []

    def tokenize(piece: bytes) -> list[int]:
        calls.append(piece)
        return [len(piece)] * 2

    table, long = Remembered(tokenize), b"x" * (SHORT + 1)
    for _ in range(2):
        ids, lengths = table.flat([b"a", long, b"a", b"bcd"])
        assert ids.tolist() == [1, 1, SHORT + 1, SHORT + 1, 1, 1, 3, 3]
        assert lengths.tolist() == [2, 2, 2, 2]
    assert calls.count(b"a") == 1
    assert calls.count(long) == 2
    assert table.flat([])[0].dtype == np.int32
