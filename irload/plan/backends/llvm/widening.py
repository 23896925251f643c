"""Widens compressed weights: words of codes → f32 in registers or scratch memory, with scales and zero points.

A word is 4 bytes: the codes of consecutive elements of the sum of one column, the first one in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.packing import unpack
from irload.plan.backends.llvm import bfloat16, intrinsics
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F16, F32, SIZES, U8, WORD
from irload.plan.backends.llvm.operands import load_lanes
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.values import vec_type
from irload.record import record


@record()
class Widening:
    """Converts the codes of an element type to f32.

    `code`: emits the conversion of codes in the lowest bits of lanes of i32, whose other bits are arbitrary. `member`:
    emits the conversion of one element of each word, by default by `code`. `bias`: added to integers when they are
    packed, so that codes are unsigned.
    """

    bits: int
    code: Callable[[Function, Vec], Vec] | None = None
    member: Callable[[Function, Vec, int], Vec] | None = None
    bias: int = 0

    @property
    def members(self) -> int:
        """The number of elements per word."""
        return 8 * WORD // self.bits

    def widen(self, f: Function, word: Vec, member: int) -> Vec:
        """Element `member` of each word, as f32."""
        if self.member is not None:
            return self.member(f, word, member)
        assert self.code is not None
        return self.code(f, word.shifted_right(self.bits * member) if member else word)

    def bytes(self, word: Vec, member: int) -> Vec:
        """Four integer codes as the bytes of each word: for 4-bit codes, at even (`member` 0) or odd positions (1)."""
        if self.bits == 8:
            return word
        return (word.shifted_right(4) if member else word) & 0x0F0F0F0F


def _unsigned(bits: int, bias: int = 0) -> Widening:
    """The widening of integers."""
    return Widening(bits, lambda f, codes: (codes & ((1 << bits) - 1)).converted(), bias=bias)


def _half(f: Function, word: Vec, member: int) -> Vec:
    halves = word.bitcast(vec_type("i16", 2 * f.lanes))
    members = f.shuffle(halves, halves, range(member, 2 * f.lanes, 2))
    return members.bitcast(vec_type(F16, f.lanes)).cast("fpext", F32)


def _listed(element: et.ElementType) -> Widening:
    """The widening of a type of four bits, whose values are looked up in a table."""
    codes = np.arange(0, 16, 2, dtype=np.uint8)
    table = unpack(codes | codes + 1 << 4, element, (16,)).astype(np.float32).view(np.int32).tolist()
    return Widening(4, lambda f, codes: intrinsics.look_up(f, table, codes))


def _e5m2(f: Function, codes: Vec) -> Vec:
    """The codes are the upper bytes of f16."""
    return _half(f, codes << 24, 1)


def _e4m3(f: Function, word: Vec, member: int) -> Vec:
    """The codes, moved to the exponent and mantissa of f16, are 2^−8 of their values; 0x7F and 0xFF are NaN."""
    code = word << 24 - 8 * member if member < 3 else word
    value = _half(f, (code >> 1) & (0xBF800000 - (1 << 32)), 1) * 256.0
    is_nan = ((word ^ -1) & (0x7F << 8 * member)).compare("eq", 0)
    return f.number(np.nan).where(is_nan, value)


WIDENINGS = {
    "u4": _unsigned(4),
    "i4": _unsigned(4, bias=8),
    "u8": _unsigned(8),
    "i8": _unsigned(8, bias=128),
    "f16": Widening(16, member=_half),
    "bf16": Widening(16, member=lambda f, word, k: bfloat16.member(word, k)),
    "nf4": _listed(et.nf4),
    "f4e2m1": _listed(et.f4e2m1),
    "f8e4m3": Widening(8, partial(_e4m3, member=0), _e4m3),
    "f8e5m2": Widening(8, _e5m2),
}
"""The widening of each supported element type, by name."""


@record()
class Compression:
    """The form of packed weights: the element type, and the scale and zero point of each group of the sum.

    `group`: elements per group, 0 for a single group. `scale`: the type of scales, None without scales. `zero`: the
    type of zero points, u8 or f32, None without zero points.
    """

    element: str
    group: int = 0
    scale: str | None = None
    zero: str | None = None

    @property
    def widening(self) -> Widening:
        """The widening of the element type."""
        return WIDENINGS[self.element]

    @property
    def members(self) -> int:
        """The number of elements per word."""
        return self.widening.members

    def zero_point(self, f: Function, zero: Vec | None) -> Vec | None:
        """The zero point of unsigned codes: the stored one, by default the bias of integers; None for 0."""
        return f.number(self.widening.bias) if zero is None and self.widening.bias else zero

    def applied(self, f: Function, scale: Vec | None, zero: Vec | None) -> Callable[[Vec], Vec]:
        """A function that applies the scale and the zero point to codes."""
        zero = self.zero_point(f, zero)
        if zero is not None and scale is not None and self.scale != F32 != self.zero:
            offset = -(zero * scale)  # exact, since both have few bits; the sum is exact, too
            return lambda code: f.fma(code, scale, offset)

        def apply(code: Vec) -> Vec:
            code = code if zero is None else code - zero
            return code if scale is None else code * scale

        return apply

    def groups(self, length: int) -> int:
        """The number of groups of a sum of `length` elements."""
        return length // self.group if self.group else 1

    def words(self, length: int) -> int:
        """The number of words of a sum of `length` elements."""
        return (length + self.members - 1) // self.members

    def nbytes(self, length: int, columns: int) -> int:
        """The bytes of a panel: its words, scales and zero points."""
        return self.words(length) * columns * WORD + self.beside(length, columns)

    def beside(self, length: int, columns: int) -> int:
        """The bytes of the scales and zero points after the words of a panel, in whole cache lines."""
        nbytes = sum(SIZES[kind] for kind in (self.scale, self.zero) if kind)
        return -(-self.groups(length) * columns * nbytes // LINE) * LINE


@record()
class CompressedPanel:
    """A panel of compressed weights of `columns` columns for sums of `length` elements: words, scales, zero points."""

    compression: Compression
    length: int
    columns: int

    @property
    def width(self) -> int:
        """The bytes of a row of words."""
        return self.columns * WORD

    @property
    def scales(self) -> int:
        """The offset of the scales in bytes."""
        return self.compression.words(self.length) * self.width

    @property
    def zeros(self) -> int:
        """The offset of the zero points in bytes."""
        form = self.compression
        return self.scales + form.groups(self.length) * self.columns * SIZES.get(form.scale or "", 0)

    def factors(self, f: Function, panel: Pointer, group: AnyInt, column: int) -> Callable[[Vec], Vec]:
        """Load scales and zero points of a group for a vector of columns. Returns a function that applies them."""
        return self.compression.applied(f, *self.loaded(f, panel, group, column))

    def loaded(self, f: Function, panel: Pointer, group: AnyInt, column: int) -> tuple[Vec | None, Vec | None]:
        """Load the scales and the zero points of a group for a vector of columns; None if they are not stored."""
        form = self.compression

        def load(start: int, kind: str) -> Vec:
            at = panel + (group * (self.columns * SIZES[kind]) + (start + column * SIZES[kind]))
            if kind == U8:
                return f.load(at, element="i8").cast("zext", "i32").converted()
            return load_lanes(f, at, 0, None, kind)

        scale = load(self.scales, form.scale) if form.scale else None
        return scale, load(self.zeros, form.zero) if form.zero else None


@record()
class WidenedPart:
    """`rows` elements of the sum of a panel, as words of f32 or of a pair of bf16 (`k` elements): [word, column].

    Rows are padded to whole words of codes.
    """

    panel: CompressedPanel
    rows: int
    k: int = 1

    @property
    def nbytes(self) -> int:
        """The bytes of the widened part."""
        members = self.panel.compression.members
        return -(-self.rows // members) * members // self.k * self.panel.width

    def write(self, f: Function) -> None:
        """Emit the body of a function with the parameters `panel`, `to` (the target memory) and `part` (its index)."""
        form = self.panel.compression
        segment = gcd(self.rows, form.group or self.rows)  # elements that are within one part and one group
        members, width = form.members, self.panel.width
        words = -(-segment // members)
        first = f["part"] * self.rows if self.rows < self.panel.length else 0
        begin = f["panel"] + first // members * width
        for index in f.range(0, self.rows // segment):
            group = (first + index * segment) // form.group if form.group else 0
            columns = range(0, self.panel.columns, f.lanes)
            apply = [self.panel.factors(f, f["panel"], group, column) for column in columns]
            source, target = begin + index * (words * width), f["to"] + index * (segment // self.k * width)
            for at in f.range(0, words):
                here, to = source + at * width, target + at * (members // self.k * width)
                self._write_row(f, here, to, apply)

    def _write_row(self, f: Function, source: Pointer, target: Pointer, apply: list[Any]) -> None:
        """Widen a row of words to consecutive rows of the result."""
        widening = self.panel.compression.widening
        for k, column in enumerate(range(0, self.panel.columns, f.lanes)):
            codes = f.load(source, column * WORD, align=f.target.bytes, element="i32")
            for row, first in enumerate(range(0, widening.members, self.k)):
                values = [apply[k](widening.widen(f, codes, first + n)) for n in range(self.k)]
                word = values[0] if self.k == 1 else bfloat16.pairs(f, *values)
                f.store(word, target, row * self.panel.width + column * WORD)
