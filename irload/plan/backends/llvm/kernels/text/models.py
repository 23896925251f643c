"""Kernels that tokenize words: byte pair encoding (BPE), longest subwords (WordPiece), best segmentation (Unigram)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.intrinsics import bits
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.plan.backends.llvm.kernels.text.emit import (
    PROBED,
    SEED,
    TextKernel,
    WordTable,
    character_bytes,
    copy_bytes,
    hash_of,
    hashed_byte,
    load_i32,
    store_i32,
)
from irload.record import record

PAIR_FACTORS = (0x9E3779B97F4A7C15 - (1 << 64), 0x2545F4914F6CDD1D)
"""Factors of the hash of a pair of ids."""
_NEVER = (1 << 62) - 1

Tokenize = Callable[[Pointer, Int], None]
"""Emits the code that writes the ids of a word: (its address, its length in bytes)."""


@record()
class Ids:
    """The ids that a kernel writes, i32. The first `used` ids are final; later ids belong to the current word."""

    f: Function
    memory: Pointer
    v: LocalIntegers

    @property
    def used(self) -> Int:
        """The number of final ids."""
        return self.v["used"]

    def load(self, k: AnyInt) -> Int:
        """Load id `k` of the current word."""
        return load_i32(self.f, self.memory, self.used + k)

    def store(self, id: AnyInt, k: AnyInt) -> None:
        """Store id `k` of the current word."""
        store_i32(self.f, id, self.memory, self.used + k)

    def append(self, id: AnyInt) -> None:
        """Append a final id."""
        store_i32(self.f, id, self.memory, self.used)
        self.v["used"] = self.used + 1

    def finalize(self, count: Int) -> None:
        """Make `count` ids of the current word final."""
        for _ in self.f.range(0, count):
            self.append(load_i32(self.f, self.memory, self.used))


@record()
class TokenizeWords(TextKernel):
    """Writes the ids of the words begin…end−1.

    Arguments: characters; begins and lengths of words, i32; ids, i32; the number of ids, i64, which is updated; per
    word, the index of its first id, i64, and its count of ids, i32; scratch memory; then the arguments of the model.
    """

    def write(self, f: Function) -> None:
        a = Arguments(f)
        chars, begins, lengths, ids, used, starts, sizes, scratch = a.pointers(8)
        v = LocalIntegers(f, "used")
        v["used"] = f.load_int(used)

        tokenize = self.model(f, a, scratch, Ids(f, ids, v))
        for k in f.range(f["begin"], f["end"]):
            before = v["used"]
            tokenize(chars + load_i32(f, begins, k), load_i32(f, lengths, k))
            f.store_scalar(before, starts, k * 8)
            store_i32(f, v["used"] - before, sizes, k)
        f.store_scalar(v["used"], used)

    @abstractmethod
    def model(self, f: Function, a: Arguments, scratch: Pointer, ids: Ids) -> Tokenize:
        """Read the arguments of the model, and return the emitter of the code that writes the ids of a word."""


def each_prefix(
    f: Function, v: LocalIntegers, table: WordTable, limits: Pointer, text: Pointer, at: Int, end: Int
) -> Iterator[tuple[Int, Int]]:
    """The numbers and the ends of the words in the table that start at `at`, shortest first.

    `limits`: for each first byte, the length of the longest word, i32. Uses the variables `hash` and `length`.
    """
    v["hash"] = SEED
    for k in f.range(0, f.minimum(load_i32(f, limits, f.load_int(text, at, "i8")), f.integer(end - at))):
        v["hash"] = hashed_byte(f, v["hash"], f.load_int(text, at + k, "i8"))
        v["length"] = k + 1
        for number in table.probe(f, text + at, v["length"], hash_of(f, v["hash"]), LocalIntegers(f, *PROBED)):
            yield number, f.integer(at + v["length"])


@record()
class MergePairs(TokenizeWords):
    """Byte pair encoding by `Merges`.

    Arguments of the model: the table of initial tokens, their ids, i32, and `limits`; per byte, the id if no token
    matches, i32 or −1; the keys of pairs, i64, their ranks and results, i32; the suffix; the mask of the table of
    pairs; the length of the suffix; the bytes reserved for a word. Scratch: the word, then 12 bytes per symbol.
    """

    def model(self, f: Function, a: Arguments, scratch: Pointer, ids: Ids) -> Tokenize:
        table = WordTable.of(a)
        token_ids, limits, others, keys, ranks, merged_ids, suffix = a.pointers(7)
        mask, suffix_length, room = a.integers(3)
        v = LocalIntegers(f, *("size", "count", "at", "next", "id", "age", "best", "where", "slot", "hash", "length"))
        orders, results = scratch + room, scratch + room * 9
        """Per symbol: rank and age of its merge with the next symbol as one i64, and the id of the result."""

        def pair(k: Int, age: Int) -> None:
            """Search the merge of symbols k and k + 1."""
            left, right = ids.load(k), ids.load(k + 1)
            key = bits(f, "or", bits(f, "shl", left, 32), right)
            f.store_scalar(f.integer(_NEVER), orders, k * 8)
            mixed = bits(f, "xor", bits(f, "mul", key, PAIR_FACTORS[0]), bits(f, "lshr", key, 29))
            mixed = bits(f, "mul", mixed, PAIR_FACTORS[1])
            v["slot"] = bits(f, "and", bits(f, "lshr", mixed, 32), mask)
            for _ in f.until(lambda: v["slot"] < 0):
                with f.when(f.load_int(keys, v["slot"] * 8) < 0):
                    v["slot"] = -1
                with f.otherwise():
                    with f.when(f.equal(f.load_int(keys, v["slot"] * 8), key)):
                        rank = load_i32(f, ranks, v["slot"])
                        f.store_scalar(bits(f, "or", bits(f, "shl", rank, 32), age), orders, k * 8)
                        store_i32(f, load_i32(f, merged_ids, v["slot"]), results, k)
                        v["slot"] = -1
                    with f.otherwise():
                        v["slot"] = bits(f, "and", v["slot"] + 1, mask)

        def tokenize(word: Pointer, length: Int) -> None:
            copy_bytes(f, word, scratch, length)
            copy_bytes(f, suffix, scratch + length, suffix_length)
            v["size"] = length + suffix_length
            v["count"] = 0
            v["at"] = 0
            for _ in f.until(lambda: v["at"] >= v["size"]):
                v["next"] = v["at"] + 1
                v["id"] = load_i32(f, others, f.load_int(scratch, v["at"], "i8"))
                for number, end in each_prefix(f, v, table, limits, scratch, v["at"], v["size"]):
                    v["id"] = load_i32(f, token_ids, number)
                    v["next"] = end
                v["at"] = v["next"]
                with f.when(v["id"] >= 0):
                    ids.store(v["id"], v["count"])
                    v["count"] = v["count"] + 1
            v["age"] = v["count"] - 1
            for k in f.range(0, v["count"] - 1):
                pair(k, k)
            v["best"] = 0
            for _ in f.until(lambda: f.equal(v["best"], _NEVER)):
                v["best"] = _NEVER
                for k in f.range(0, v["count"] - 1):
                    order = f.load_int(orders, k * 8)
                    with f.when(order < v["best"]):
                        v["best"] = order
                        v["where"] = k
                with f.when(v["best"] < _NEVER):
                    # Apply the first merge, and search the merges of its result.
                    where, count = v["where"], f.integer(v["count"] - 1)
                    ids.store(load_i32(f, results, where), where)
                    for k in f.range(where + 1, count):
                        ids.store(ids.load(k + 1), k)
                        f.store_scalar(f.load_int(orders, k * 8 + 8), orders, k * 8)
                        store_i32(f, load_i32(f, results, k + 1), results, k)
                    v["count"] = count
                    v["age"] = v["age"] + 1
                    with f.when(where > 0):
                        pair(f.integer(where - 1), v["age"])
                    with f.when(f.integer(where + 1) < count):
                        pair(where, v["age"])
                    with f.otherwise():
                        f.store_scalar(f.integer(_NEVER), orders, where * 8)
            ids.finalize(v["count"])

        return tokenize


@record()
class LongestSubwords(TokenizeWords):
    """The longest subwords from left to right (WordPiece), by `Subwords`.

    Arguments of the model: the table of first subwords, their ids, i32, and `limits`; the same for other subwords; the
    id of unknown words; the maximum number of bytes of a word.
    """

    def model(self, f: Function, a: Arguments, scratch: Pointer, ids: Ids) -> Tokenize:
        tables = [(WordTable.of(a), *a.pointers(2)) for _ in range(2)]
        unknown, longest = a.integers(2)
        v = LocalIntegers(f, "at", "next", "id", "count", "failed", "hash", "length")

        def subword(word: Pointer, size: Int, table: WordTable, token_ids: Pointer, limits: Pointer) -> None:
            v["id"] = -1
            for number, end in each_prefix(f, v, table, limits, word, v["at"], size):
                v["id"] = load_i32(f, token_ids, number)
                v["next"] = end
            v["at"] = v["next"]
            with f.when(v["id"] < 0):
                v["failed"] = 1
            with f.otherwise():
                ids.store(v["id"], v["count"])
                v["count"] = v["count"] + 1

        def tokenize(word: Pointer, size: Int) -> None:
            v["at"] = 0
            v["next"] = 0
            v["count"] = 0
            v["failed"] = f.select((size > longest) | (size <= 0), f.integer(1), f.integer(0))
            with f.when(f.equal(v["failed"], 0)):
                subword(word, size, *tables[0])
                for _ in f.until(lambda: (v["at"] >= size) | f.differ(v["failed"], 0)):
                    subword(word, size, *tables[1])
            with f.when(f.differ(v["failed"], 0)):
                ids.store(unknown, 0)
                v["count"] = 1
            ids.finalize(v["count"])

        return tokenize


@record()
class BestSegmentation(TokenizeWords):
    """The segmentation with the highest sum of scores (Viterbi), by `Segmentation`.

    Arguments of the model: the table of tokens, their ids, i32, and `limits`; scores by id, f32; the score of unknown
    characters, f32, and their id; the bytes reserved for a word. Scratch: 12 bytes per byte of the word, and for its
    end.
    """

    def model(self, f: Function, a: Arguments, scratch: Pointer, ids: Ids) -> Tokenize:
        table = WordTable.of(a)
        token_ids, limits, scores, unknown_score = a.pointers(4)
        unknown, room = a.integers(2)
        best, sources, chosen = scratch, scratch + room * 4, scratch + room * 8
        v = LocalIntegers(f, "at", "next", "known", "hash", "length", "left", "right", "last", "id")

        def offer(at: Int, end: Int, id: Int, score: Any) -> None:
            """Update the best path to `end` if it ends with this token and has a higher sum."""
            total = score + f.load_scalar(best, at * 4)
            higher = total.compare("ogt", f.load_scalar(best, end * 4))
            with f.when(f.equal(load_i32(f, sources, end), -1) | higher):
                f.store_scalar(total, best, end * 4)
                store_i32(f, at, sources, end)
                store_i32(f, id, chosen, end)

        def tokenize(word: Pointer, size: Int) -> None:
            for k in f.range(0, size + 1):
                store_i32(f, 0, best, k)
                store_i32(f, -1, sources, k)
                store_i32(f, unknown, chosen, k)
            v["at"] = 0
            for _ in f.until(lambda: v["at"] >= size):
                following = v["at"] + character_bytes(f, f.load_int(word, v["at"], "i8"))
                v["next"] = f.minimum(f.integer(following), size)
                v["known"] = 0
                for number, end in each_prefix(f, v, table, limits, word, v["at"], size):
                    id = load_i32(f, token_ids, number)
                    offer(v["at"], end, id, f.load_scalar(scores, id * 4))
                    v["known"] = f.select(f.equal(end, v["next"]), f.integer(1), v["known"])
                with f.when(f.equal(v["known"], 0)):
                    offer(v["at"], v["next"], unknown, f.load_scalar(unknown_score))
                v["at"] = v["next"]
            with f.when(size > 0):
                # Emit the ids of the best path from the end, then reverse them.
                v["left"] = ids.used
                v["at"] = size
                v["last"] = -1
                for _ in f.until(lambda: v["at"] <= 0):
                    v["id"] = load_i32(f, chosen, v["at"])
                    v["at"] = load_i32(f, sources, v["at"])
                    with f.when(f.differ(v["id"], unknown) | f.differ(v["last"], unknown)):
                        ids.append(v["id"])
                    v["last"] = v["id"]
                v["right"] = ids.used - 1
                for _ in f.until(lambda: v["left"] >= v["right"]):
                    first, last = load_i32(f, ids.memory, v["left"]), load_i32(f, ids.memory, v["right"])
                    store_i32(f, last, ids.memory, v["left"])
                    store_i32(f, first, ids.memory, v["right"])
                    v["left"] = v["left"] + 1
                    v["right"] = v["right"] - 1

        return tokenize
