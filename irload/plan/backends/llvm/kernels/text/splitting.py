"""Kernels that split texts at the matches of an automaton, and replace matches."""

from __future__ import annotations

from typing import Any

from irload.ops.text.automaton import MATCHED, START
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import Function, Int, Pointer
from irload.plan.backends.llvm.intrinsics import bits
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.plan.backends.llvm.kernels.text.emit import TextKernel, character_bytes, copy_bytes, load_i32, store_i32
from irload.record import record

_POINTS = 0x10FFFF


@record()
class SplitTexts(TextKernel):
    """Splits texts into parts.

    Arguments: characters; begins and ends of texts, i32; a byte per text, which is 1 if the text is not split; classes
    and steps of the automaton; results: begins and ends of parts, i32, the number of parts of each text, i32, and of
    all texts, i64; then the number of texts and the columns of `steps`. Four flags follow (0 or 1): emit matches; emit
    gaps between matches; start each gap at the match before it; emit texts that are not split.
    """

    def write(self, f: Function) -> None:
        a = Arguments(f)
        chars, begins, ends, skips, classes, steps, firsts, lasts, counts, total = a.pointers(10)
        texts, columns, matches, gaps, merges, whole = a.integers(6)
        v = LocalIntegers(f, "parts", "at", "gap", "last", "state", "next", "match", "symbol", "length")
        v["parts"] = 0

        def emit(begin: Int, end: Int) -> None:
            store_i32(f, begin, firsts, v["parts"])
            store_i32(f, end, lasts, v["parts"])
            v["parts"] = v["parts"] + 1

        for k in f.range(0, texts):
            begin, end = load_i32(f, begins, k), load_i32(f, ends, k)
            before = v["parts"]
            with f.when(f.equal(f.load_int(skips, k, "i8"), 0)):
                v["at"] = begin
                v["gap"] = begin
                v["last"] = begin
                for _ in f.until(lambda: v["at"] >= end):
                    run_automaton(f, v, chars, classes, steps, columns, end)
                    with f.when(v["match"] > v["at"]):
                        with f.when((v["last"] < v["at"]) & f.differ(gaps, 0)):
                            emit(v["gap"], v["at"])
                        with f.when(f.differ(matches, 0)):
                            emit(v["at"], v["match"])
                        v["gap"] = f.select(f.differ(merges, 0), v["at"], v["match"])
                        v["at"] = v["match"]
                        v["last"] = v["match"]
                    with f.otherwise():
                        length = character_bytes(f, f.load_int(chars, v["at"], "i8"))
                        v["at"] = f.minimum(v["at"] + length, end)
                with f.when((v["gap"] < end) & f.differ(gaps, 0)):
                    emit(v["gap"], end)
                with f.when(f.equal(begin, end) & f.differ(merges, 0)):
                    emit(begin, end)
            with f.otherwise(), f.when(f.differ(whole, 0)):
                emit(begin, end)
            store_i32(f, v["parts"] - before, counts, k)
        f.store_scalar(v["parts"], total)


def run_automaton(
    f: Function, v: LocalIntegers, chars: Pointer, classes: Pointer, steps: Pointer, columns: Int, end: Int
) -> None:
    """Set `match` to the end of the match that starts at `at`, or to `at` if there is none."""
    v["state"] = START
    v["next"] = v["at"]
    v["match"] = v["at"]

    for _ in f.until(lambda: f.equal(v["state"], 0)):
        with f.when(v["next"] < end):
            first_byte = f.load_int(chars, v["next"], "i8")
            with f.when(first_byte < 0x80):
                v["symbol"] = f.load_int(classes, first_byte, "i8")
                v["length"] = 1
            with f.otherwise():
                _decode(f, v, chars, classes, first_byte, end)
        with f.otherwise():
            v["symbol"] = columns - 1
            v["length"] = 0
        step = f.load_int(steps, (v["state"] * columns + v["symbol"]) * 2, "i16")
        with f.when(f.differ(bits(f, "and", step, MATCHED), 0)):
            v["match"] = v["next"]
        v["state"] = bits(f, "and", step, MATCHED - 1)
        v["next"] = f.minimum(v["next"] + v["length"], end)


def _decode(f: Function, v: LocalIntegers, chars: Pointer, classes: Pointer, first_byte: Int, end: Int) -> None:
    """Set `symbol` and `length` for a character beyond ASCII. Bytes after `end` do not contribute to its code point."""
    length = character_bytes(f, first_byte)
    v["length"] = length
    mask = bits(f, "lshr", 0x7F, length)
    v["symbol"] = f.select(f.equal(length, 1), first_byte, bits(f, "and", first_byte, mask))

    for k in f.range(1, f.minimum(length, f.integer(end - v["next"]))):
        low = bits(f, "and", f.load_int(chars, v["next"] + k, "i8"), 0x3F)
        v["symbol"] = bits(f, "or", bits(f, "shl", v["symbol"], 6), low)
    v["symbol"] = f.load_int(classes, f.minimum(v["symbol"], _POINTS), "i8")


@record()
class ReplaceMatches(TextKernel):
    """Replaces each match by a prefix, the match (if it is kept), and a suffix.

    Arguments: characters; begins and ends of texts; the number of matches of each, and their begins and ends, i32;
    prefix and suffix; then the results: characters, begins and ends, i32; the number of texts, the lengths of prefix
    and suffix, and 1 to keep matches.
    """

    def write(self, f: Function) -> None:
        a = Arguments(f)
        chars, begins, ends, counts, firsts, lasts, prefix, suffix, out, new_begins, new_ends = a.pointers(11)
        texts, prefix_length, suffix_length, keeps = a.integers(4)
        v = LocalIntegers(f, "match", "at", "size")
        v["match"] = 0
        v["size"] = 0

        def copy(source: Pointer, count: Any) -> None:
            copy_bytes(f, source, out + v["size"], count)
            v["size"] = v["size"] + count

        for k in f.range(0, texts):
            end = load_i32(f, ends, k)
            v["at"] = load_i32(f, begins, k)
            store_i32(f, v["size"], new_begins, k)
            for _ in f.range(0, load_i32(f, counts, k)):
                first, last = load_i32(f, firsts, v["match"]), load_i32(f, lasts, v["match"])
                copy(chars + v["at"], first - v["at"])
                copy(prefix, prefix_length)
                with f.when(f.differ(keeps, 0)):
                    copy(chars + first, last - first)
                copy(suffix, suffix_length)
                v["at"] = last
                v["match"] = v["match"] + 1
            copy(chars + v["at"], end - v["at"])
            store_i32(f, v["size"], new_ends, k)
