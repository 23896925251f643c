"""Code that the kernels of text operations share: loads and stores, hashes, hash tables of words."""

from __future__ import annotations

from collections.abc import Iterator

from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.intrinsics import bits
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.record import record

SEED = 0x9E3779B97F4A7C15 - (1 << 64)
FACTOR = 0x00000100000001B3
MIXER = 0xD6E8FEB86659FD93 - (1 << 64)
"""Constants of the hash: the initial state, the factor per byte, and the factor of the final mix."""


@record()
class TextKernel(Standalone):
    """The base class of text kernels. Their variables are in memory; LLVM's passes promote them to registers."""

    optimized = True


def load_i32(f: Function, pointer: Pointer, index: AnyInt) -> Int:
    """Load element `index` of an array of i32."""
    return f.load_int(pointer, index * 4, "i32")


def store_i32(f: Function, value: AnyInt, pointer: Pointer, index: AnyInt) -> None:
    """Store an integer into an array of i32."""
    f.store_scalar(f.integer(value).cast("trunc", "i32"), pointer, index * 4)


def copy_bytes(f: Function, source: Pointer, to: Pointer, count: AnyInt) -> None:
    """Copy bytes that do not overlap."""
    for k in f.range(0, count):
        f.store_scalar(f.load_int(source, k, "i8").cast("trunc", "i8"), to, k)


def character_bytes(f: Function, first: Int) -> Int:
    """The number of bytes of a character that starts with this byte, as PCRE2 counts them."""
    two, three, four = ((first >= edge).as_int() for edge in (0xC0, 0xE0, 0xF0))
    return f.integer(two + 1 + three + four)


def hashed_byte(f: Function, state: AnyInt, byte: Int) -> Int:
    """The state of a hash after one more byte."""
    return bits(f, "mul", bits(f, "xor", state, byte), FACTOR)


def hash_of(f: Function, state: Int) -> Int:
    """The hash, of 31 bits, for a state."""
    mixed = bits(f, "mul", bits(f, "xor", state, bits(f, "lshr", state, 29)), MIXER)
    return bits(f, "lshr", mixed, 33)


PROBED = "slot", "searching", "k"
"""The variables of `WordTable.probe`."""


@record()
class WordTable:
    """The arrays of a hash table of words. `slots` has the number of a word plus 1, or 0 for an empty slot.

    By the number of a word: `hashes`, `offsets` in the `pool` of bytes, and `lengths`. `mask`: the number of slots
    minus 1.
    """

    slots: Pointer
    hashes: Pointer
    offsets: Pointer
    lengths: Pointer
    pool: Pointer
    mask: Int

    @staticmethod
    def of(arguments: Arguments) -> WordTable:
        """Read the table from the next six arguments."""
        slots, hashes, offsets, lengths, pool = arguments.pointers(5)
        return WordTable(slots, hashes, offsets, lengths, pool, arguments.integer())

    def probe(self, f: Function, word: Pointer, length: AnyInt, hash: Int, v: LocalIntegers) -> Iterator[Int]:
        """Search a word by linear probing. If the table has the word, the body of the loop runs with its number.

        Uses the variables `PROBED`. If the word is missing, `slot` is an empty slot for it afterwards.
        """
        v["slot"] = bits(f, "and", hash, self.mask)
        v["searching"] = 1
        for _ in f.until(lambda: f.equal(v["searching"], 0)):
            entry = load_i32(f, self.slots, v["slot"])
            with f.when(f.equal(entry, 0)):
                v["searching"] = 0
            with f.otherwise():
                number = f.integer(entry - 1)
                same_hash = f.equal(load_i32(f, self.hashes, number), hash)
                with f.when(same_hash & f.equal(load_i32(f, self.lengths, number), length)):
                    pooled = self.pool + load_i32(f, self.offsets, number)
                    v["k"] = 0
                    for _ in f.until(lambda: v["k"] >= length):
                        same = f.equal(f.load_int(pooled, v["k"], "i8"), f.load_int(word, v["k"], "i8"))
                        v["k"] = f.select(same, f.integer(v["k"] + 1), f.integer(1 << 40))
                    with f.when(f.equal(v["k"], length)):
                        v["searching"] = 0
                        yield number
                v["slot"] = bits(f, "and", v["slot"] + 1, self.mask)
