"""Kernels that number words by a hash table, and copy the ids of numbered words."""

from __future__ import annotations

from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.plan.backends.llvm.kernels.text.emit import (
    PROBED,
    SEED,
    TextKernel,
    WordTable,
    copy_bytes,
    hash_of,
    hashed_byte,
    load_i32,
    store_i32,
)
from irload.record import record


@record()
class NumberWords(TextKernel):
    """Writes the number of each word; new words are added until the table is full.

    Arguments: characters; begins and ends of words, i32; the table; the numbers, i32, −1 for words that are too long;
    three i64 that are updated: the index of the first word, and the words and bytes in the table; then the number of
    words, the maximum length of a word, and the maximum number of words and bytes in the table.
    """

    def write(self, f: Function) -> None:
        a = Arguments(f)
        chars, begins, ends = a.pointers(3)
        table = WordTable.of(a)
        numbers, state = a.pointers(2)
        words, longest, most_words, most_bytes = a.integers(4)
        v = LocalIntegers(f, "k", "count", "bytes", "state", "number", "full")
        for k, name in enumerate(("k", "count", "bytes")):
            v[name] = f.load_int(state, 8 * k)
        v["full"] = 0
        for _ in f.until(lambda: (v["k"] >= words) | f.differ(v["full"], 0)):
            begin = load_i32(f, begins, v["k"])
            length = f.integer(load_i32(f, ends, v["k"]) - begin)
            v["number"] = -1
            with f.when(length <= longest):
                v["state"] = SEED
                for k in f.range(0, length):
                    v["state"] = hashed_byte(f, v["state"], f.load_int(chars + begin, k, "i8"))
                hash = hash_of(f, v["state"])
                searched = LocalIntegers(f, *PROBED)
                for number in table.probe(f, chars + begin, length, hash, searched):
                    v["number"] = number
                with f.when(v["number"] < 0):
                    room = (v["count"] < most_words) & (f.integer(v["bytes"] + length) <= most_bytes)
                    with f.when(room):
                        slot = searched["slot"]
                        number = v["count"]
                        copy_bytes(f, chars + begin, table.pool + v["bytes"], length)
                        store_i32(f, hash, table.hashes, number)
                        store_i32(f, v["bytes"], table.offsets, number)
                        store_i32(f, length, table.lengths, number)
                        store_i32(f, number + 1, table.slots, slot)
                        v["number"] = number
                        v["count"] = number + 1
                        v["bytes"] = v["bytes"] + length
                    with f.otherwise():
                        v["full"] = 1
            store_i32(f, v["number"], numbers, v["k"])
            v["k"] = v["k"] + 1 - v["full"]
        for k, name in enumerate(("k", "count", "bytes")):
            f.store_scalar(v[name], state, 8 * k)


@record()
class CopyIds(TextKernel):
    """Copies the ids of numbered words to one array, and writes the number of ids of each word.

    Arguments: numbers, i32; by number, the index of the first id, i64, and the count of ids, i32; ids, i32; the two
    results, i32; the number of words.
    """

    def write(self, f: Function) -> None:
        a = Arguments(f)
        numbers, starts, sizes, ids, out, counts = a.pointers(6)
        words = a.integer()
        v = LocalIntegers(f, "size")
        v["size"] = 0
        for k in f.range(0, words):
            number = load_i32(f, numbers, k)
            start, size, to = f.load_int(starts, number * 8), load_i32(f, sizes, number), v["size"]
            for j in f.range(0, size):
                store_i32(f, load_i32(f, ids, start + j), out, to + j)
            v["size"] = to + size
            store_i32(f, size, counts, k)
