"""Tokenizes many strings by kernels. The ids of short strings are cached, so each is tokenized once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.merging import Merges
from irload.ops.text.tokens import REMEMBERED, SHORT
from irload.ops.text.tools import SubwordModel
from irload.ops.text.unigram import Segmentation
from irload.ops.text.wordpiece import Subwords
from irload.plan.backends.llvm.kernels.text.models import BestSegmentation, LongestSubwords, MergePairs, TokenizeWords
from irload.plan.backends.llvm.kernels.text.vocabulary import Pairs, Vocabulary, WordIndex, call
from irload.plan.backends.llvm.kernels.text.words import CopyIds
from irload.plan.backends.llvm.target import Target
from irload.record import record
from irload.system.forks import unforked

POOL = 8 << 20
"""Maximum bytes of all cached words."""
LONGEST_MERGED = 2048
"""The maximum bytes of a word that the kernel merges: it reads all symbols for each merge, in quadratic time.

Longer words are merged in Python, with a heap.
"""


@record(eq=False)
class CompiledSubwordModel:
    """A subword model in the form that the kernels read.

    `arguments`: the arguments of the model, without the last one, the number of bytes reserved for a word. `cell`:
    bytes of scratch memory per reserved byte. Words of more than `longest` bytes are tokenized by the model in Python.
    With a `separator`, texts are split into words before each separator that does not follow another one.
    """

    kernel: TokenizeWords
    arguments: tuple[Array | int, ...]
    cell: int = 0
    suffix: bytes = b""
    longest: int | None = None
    separator: bytes = b""


def _merges(target: Target, model: Merges) -> CompiledSubwordModel:
    pairs, suffix = Pairs(model.lefts, model.rights, model.results), np.frombuffer(model.suffix + b"\0", np.uint8)
    others = np.array(model.others, np.int32)
    arguments = *Vocabulary(target, model.basic).arguments, others, *pairs.arguments, suffix, pairs.mask
    kernel = MergePairs(), (*arguments, len(model.suffix))
    return CompiledSubwordModel(*kernel, 13, model.suffix, LONGEST_MERGED, model.separator)


def _subwords(target: Target, model: Subwords) -> CompiledSubwordModel:
    tables = (a for tokens in (model.first, model.others) for a in Vocabulary(target, tokens).arguments)
    return CompiledSubwordModel(LongestSubwords(), (*tables, model.unknown, model.longest))


def _segmentation(target: Target, model: Segmentation) -> CompiledSubwordModel:
    scores = np.array(model.scores or [0], np.float32), np.array([model.unknown_score], np.float32)
    arguments = *Vocabulary(target, model.ids).arguments, *scores, model.unknown
    return CompiledSubwordModel(BestSegmentation(), arguments, 12)


class CompiledTable:
    """A cache of the ids of words: `Remembered`, implemented by kernels. A lock serializes threads."""

    def __init__(self, target: Target, model: CompiledSubwordModel, python: SubwordModel) -> None:
        self._target = target
        self._model = model
        self._python = python
        self._lock = Lock()
        self._words = WordIndex(target, REMEMBERED, POOL)
        self._starts, self._sizes = np.zeros(REMEMBERED + 1, np.int64), np.zeros(REMEMBERED + 1, np.int32)
        self._ids = np.empty(1 << 16, np.int32)
        self._clear()

    def _clear(self) -> None:
        self._words.clear()
        self._tokenized = 0
        self._used = 0

    def ids(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, Array]:
        """The ids of all strings, i32, concatenated, and the number of ids of each."""
        begins, ends = np.ascontiguousarray(begins, np.int32), np.ascontiguousarray(ends, np.int32)
        separator = self._model.separator
        cuts = _separated(begins, ends, chars, separator) if separator else None
        with unforked, self._lock:
            if cuts is None:
                return self._all(begins, ends, chars)
            ids, lengths = self._all(cuts[0], cuts[1], chars)
        sums = np.concatenate([[0], np.cumsum(lengths)])
        return ids, np.diff(sums[cuts[2]])

    def _all(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, Array]:
        numbers = np.empty(max(begins.size, 1), np.int32)
        first, parts = 0, list[tuple[Array, Array]]()
        while True:
            last = self._words.number(begins, ends, chars, numbers, first, SHORT)
            self._tokenize_new()
            part = slice(first, last)
            parts.append(self._copied(numbers[part], begins[part], ends[part], chars))
            if last == begins.size:
                break
            self._clear()
            first = last
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([lengths for _, lengths in parts])

    def _tokenize_new(self) -> None:
        """Compute the ids of the words added since the last call."""
        words, first, last = self._words, self._tokenized, self._words.count
        if first < last:
            self._run(words.pool, words.offsets, words.lengths, first, last, self._starts, self._sizes)
            self._tokenized = last

    def _run(
        self, chars: Array, begins: Array, lengths: Array, first: int, last: int, starts: Array, sizes: Array
    ) -> None:
        """Append the ids of the words first…last−1."""
        model, sizes_of_words = self._model, lengths[first:last].astype(np.int64)
        needed = self._used + int(sizes_of_words.sum()) + (last - first) * (len(model.suffix) + 1)
        self._reserve(needed)
        room = -(-(int(sizes_of_words.max()) + len(model.suffix) + 1) // 8) * 8
        scratch, used = np.empty(max(room * model.cell, 8), np.uint8), np.array([self._used], np.int64)
        tables = (self._ids, used, starts, sizes, scratch, *model.arguments, room)
        call(model.kernel, self._target, chars, begins, lengths, *tables, begin=first, end=last)
        self._used = int(used[0])

    def _reserve(self, needed: int) -> None:
        if needed > self._ids.size:
            grown = np.empty(max(needed, 2 * self._ids.size), np.int32)
            grown[: self._used] = self._ids[: self._used]
            self._ids = grown

    def _copied(self, numbers: Array, begins: Array, ends: Array, chars: Array) -> tuple[Array, Array]:
        long, used = np.flatnonzero(numbers < 0), self._used
        starts, sizes = self._starts, self._sizes
        if long.size:
            more, counts = self._long(begins[long], ends[long], chars)
            numbers[long] = np.arange(long.size) + self._words.count
            starts = np.concatenate([starts[: self._words.count], more])
            sizes = np.concatenate([sizes[: self._words.count], counts])
        lengths = np.empty(numbers.size, np.int32)
        total = int(sizes[numbers].sum(dtype=np.int64)) if numbers.size else 0
        ids = np.empty(total, np.int32)
        call(CopyIds(), self._target, numbers, starts, sizes, self._ids, ids, lengths, numbers.size)
        self._used = used
        return ids, lengths

    def _long(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, Array]:
        """The index of the first id, and the number of ids, of words that are too long for the cache."""
        starts, sizes = np.zeros(begins.size, np.int64), np.zeros(begins.size, np.int32)
        lengths = ends - begins
        longest = self._model.longest
        for k, length in enumerate(lengths.tolist()):
            if longest is None or length <= longest:
                self._run(chars, begins, lengths, k, k + 1, starts, sizes)
                continue
            ids = self._python.tokens(chars[begins[k] : ends[k]].tobytes())
            self._reserve(self._used + len(ids))
            self._ids[self._used : self._used + len(ids)] = ids
            starts[k], sizes[k] = self._used, len(ids)
            self._used += len(ids)
        return starts, sizes


def _separated(begins: Array, ends: Array, chars: Array, separator: bytes) -> tuple[Array, Array, Array]:
    """Split texts before separators: the begins and ends of words, and the index of the first word of each text.

    The last index is the number of all words.
    """
    size = len(separator)
    at = np.flatnonzero(chars[: chars.size - size + 1] == separator[0]) if chars.size >= size else np.zeros(0, np.int64)
    for k in range(1, size):
        at = at[chars[at + k] == separator[k]]
    cuts = at[np.diff(at, prepend=-size) != size]
    order = np.searchsorted(cuts, begins, "right"), np.searchsorted(cuts, ends, "left")
    counts = np.maximum(order[1] - order[0], 0)
    rows = np.concatenate([[0], np.cumsum(counts + 1)])
    new_begins, new_ends = np.empty(rows[-1], np.int32), np.empty(rows[-1], np.int32)
    new_begins[rows[:-1]], new_ends[rows[1:] - 1] = begins, ends
    inner = np.arange(int(counts.sum())) + np.repeat(order[0] - (np.cumsum(counts) - counts), counts)
    first = np.ones(rows[-1], bool)
    first[rows[:-1]] = False
    last = np.ones(rows[-1], bool)
    last[rows[1:] - 1] = False
    new_begins[first], new_ends[last] = cuts[inner], cuts[inner]
    return new_begins, new_ends, rows


def compiled_table(target: Target, model: SubwordModel) -> CompiledTable | None:
    """The table of a model; None if no kernel supports the model."""
    compiled = _MODELS.get(type(model))
    return None if compiled is None else CompiledTable(target, compiled(target, model), model)


_MODELS: Mapping[type, Callable[[Target, Any], CompiledSubwordModel]] = {
    Merges: _merges,
    Subwords: _subwords,
    Segmentation: _segmentation,
}
