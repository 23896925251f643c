"""Random texts, also as string tensors and ragged tensors, which are inputs of cases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import element as et
from irload.ops.text.bytes import CHARACTERS
from tests.harness.case import Input, Random, const, param
from tests.harness.material import pick, random_shape

WORDS = (
    "",
    "a",
    "the",
    "Hello",
    "HELLO",
    "world",
    " ",
    "  two  blanks ",
    "it's",
    "WE'LL",
    "x1y22",
    "3.14",
    "\n\t",
    "_",
)
UNICODE = (
    "ünïcödé",
    "e\u0301",
    "Å",
    "ﬁ",
    "½",
    "ẞ",
    "ΑΣ",
    "日本語",
    "가각",
    "\u1100\u1161",
    "👍🏽",
    "\u2028",
    "\u00a0",
    "▁",
    "ＡＢ",
)
MARKS = ("<s>", "</s>", "<0x41>", "<0xZZ>", "[MASK]", "##ing", "<|end|>")
BROKEN = (b"\xff", b"\xc3", b"\xe2\x82", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xf0\x9f\x98")


def text(rng: Random, *, longest: int = 6, ascii: bool = False) -> bytes:
    """A text of several words, marks and characters."""
    pool = WORDS if ascii else (*WORDS, *WORDS, *UNICODE, *MARKS)
    return "".join(pick(rng, pool) for _ in range(int(rng.integers(0, longest + 1)))).encode()


def broken(rng: Random) -> bytes:
    """A text that may contain invalid bytes."""
    return b"".join(pick(rng, (*BROKEN, *(w.encode() for w in (*WORDS, *UNICODE)))) for _ in range(rng.integers(0, 6)))


def packed(pieces: Sequence[bytes], shape: Sequence[int] | None = None, *, constant: bool = False) -> list[Input]:
    """The three inputs of a tensor of strings."""
    ends = np.cumsum([len(p) for p in pieces], dtype=np.int32)
    begins = ends - np.array([len(p) for p in pieces], np.int32)
    make = const if constant else param
    shape = (len(pieces),) if shape is None else tuple(shape)
    chars = np.frombuffer(b"".join(pieces), np.uint8)
    return [make(begins.reshape(shape), et.i32), make(ends.reshape(shape), et.i32), make(chars, et.u8)]


def strings(rng: Random, *, rank: tuple[int, int] = (1, 1), least: int = 1) -> list[Input]:
    """A tensor of random texts."""
    shape = random_shape(rng, rank, least, 4)
    return packed([text(rng) for _ in range(int(np.prod(shape)))], shape)


def line(value: bytes) -> Input:
    """One string as its bytes, a constant."""
    return const(np.frombuffer(value, np.uint8), et.u8)


def ragged(rng: Random, pieces: Sequence[bytes]) -> list[Input]:
    """The pieces in rows of random length, as a ragged tensor of strings."""
    stops = np.sort(rng.integers(0, len(pieces) + 1, int(rng.integers(0, 4))))
    ends = np.array([*stops, len(pieces)], np.int32)
    begins = np.array([0, *stops], np.int32)
    return [param(begins, et.i32), param(ends, et.i32), *packed(pieces)]


def ragged_texts(rng: Random, *, least: int = 1, ascii: bool = False) -> list[Input]:
    """A ragged tensor of random texts, at least one of which is not empty."""
    pieces = [text(rng, ascii=ascii) for _ in range(int(rng.integers(least, 6)))]
    return ragged(rng, [*pieces, b"x"])


def rows(rng: Random, element: et.ElementType = et.i32, count: int | None = None) -> list[Input]:
    """A ragged tensor of numbers."""
    count = int(rng.integers(1, 5)) if count is None else count
    lengths = rng.integers(0, 5, count)
    ends = np.cumsum(lengths).astype(np.int32)
    data = rng.integers(0, 100, int(lengths.sum()) + 1).astype(element.dtype)
    return [param(ends - lengths.astype(np.int32), et.i32), param(ends, et.i32), param(data, element)]


def flags(rng: Random, count: int) -> Input:
    """A boolean for each of `count` strings."""
    return param(rng.integers(0, 2, count).astype(bool), et.boolean)


def characters(rng: Random) -> bytes:
    """A text of the alphabet of byte-level tokenizers."""
    return b"".join(CHARACTERS[k] for k in rng.integers(0, 256, rng.integers(0, 5)))
