"""Words to numbers by a hash table, and numbers to the ids of their tokens."""

from __future__ import annotations

from typing import Any

from irload.plan.backends.llvm.builder import Function, Int
from irload.plan.backends.llvm.intrinsics import load_byte
from irload.plan.backends.llvm.kernels.text.emit import (
    SEED,
    Arguments,
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
    """The number of each word; new words are added until the table is full.

    Arguments: characters; begins and ends of words, i32; the table; the numbers, i32, −1 for words that are too long;
    three i64: the first word, and the number of words and of bytes of the table, which are updated; then the number of
    words, the longest word, and the words and bytes for which the table has room.
    """

    def write(self, function: Function) -> None:
        f, a = function, Arguments(function)
        chars, begins, ends = (a.pointer() for _ in range(3))
        table = WordTable.of(a)
        numbers, state = a.pointer(), a.pointer()
        words, longest, most_words, most_bytes = (a.number() for _ in range(4))
        v = self.variables(f, "k", "count", "bytes", "state", "number", "full")
        v["k"] = f.load_int(state)
        v["count"] = f.load_int(state, 8)
        v["bytes"] = f.load_int(state, 16)
        v["full"] = 0

        def add(begin: Int, length: Int, hash: Int, slot: Int) -> None:
            number = v["count"]
            copy_bytes(f, chars + begin, table.pool + v["bytes"], length)
            store_i32(f, hash, table.hashes, number)
            store_i32(f, v["bytes"], table.offsets, number)
            store_i32(f, length, table.lengths, number)
            store_i32(f, number + 1, table.slots, slot)
            v["number"] = number
            v["count"] = number + 1
            v["bytes"] = v["bytes"] + length

        def word(begin: Int, length: Int) -> None:
            v["state"] = SEED

            def byte(k: Int, _: list[Any]) -> None:
                v["state"] = hashed_byte(f, v["state"], load_byte(f, chars + begin, k))

            f.loop(0, length, 1, byte)
            hash = hash_of(f, v["state"])

            def found(number: Int) -> None:
                v["number"] = number

            searched = table.probe(f, chars + begin, length, hash, found)

            def missing() -> None:
                room = (v["count"] < most_words) & (f.integer(v["bytes"] + length) <= most_bytes)

                def is_full() -> None:
                    v["full"] = 1

                f.when(room, lambda: add(begin, length, hash, searched["slot"]), is_full)

            f.when(v["number"] < 0, missing)

        def turn(_: Int, __: list[Any]) -> None:
            begin = load_i32(f, begins, v["k"])
            length = f.integer(load_i32(f, ends, v["k"]) - begin)
            v["number"] = -1
            f.when(length <= longest, lambda: word(begin, length))
            store_i32(f, v["number"], numbers, v["k"])
            v["k"] = v["k"] + 1 - v["full"]

        f.loop_until(lambda: (v["k"] >= words) | f.differ(v["full"], 0), turn)
        f.store_scalar(v["k"], state)
        f.store_scalar(v["count"], state, 8)
        f.store_scalar(v["bytes"], state, 16)


@record()
class CopyIds(TextKernel):
    """The ids of numbered words, concatenated, and the number of ids of each.

    Arguments: numbers, i32; by number the first id, i64, and the count of ids, i32; ids, i32; then the results, i32;
    the number of words.
    """

    def write(self, function: Function) -> None:
        f, a = function, Arguments(function)
        numbers, starts, sizes, ids, out, counts = (a.pointer() for _ in range(6))
        words = a.number()
        v = self.variables(f, "size")
        v["size"] = 0

        def word(k: Int, _: list[Any]) -> None:
            number = load_i32(f, numbers, k)
            start, size, to = f.load_int(starts, number * 8), load_i32(f, sizes, number), v["size"]

            def id(j: Int, _: list[Any]) -> None:
                store_i32(f, load_i32(f, ids, start + j), out, to + j)

            f.loop(0, size, 1, id)
            v["size"] = to + size
            store_i32(f, size, counts, k)

        f.loop(0, words, 1, word)
