"""The multiply-accumulate instructions of a target, as data: the innermost operation of every contraction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import cache
from typing import Any

from irload.plan.backends.llvm import bfloat16, intrinsics
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.elements import BF16, F32, I8, I16, I32, SIZES, U8, WORD
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.values import vec_type
from irload.plan.backends.llvm.widening import Compression
from irload.record import record

Multiply = Callable[[Function, Vec, Vec, Vec], Vec]
"""(f, sums, a, b) → sums + a · b, for vectors of words of a and b."""


@record()
class TileCost:
    """Costs of a `Dot` that determine the shape of a register tile.

    `products`: words per cycle; `row`, `vector`: cycles to prepare the words of a row and of a vector; `latency`: of an
    accumulation, in cycles; `registers`: temporaries in addition to accumulators and words; `sums`: registers per
    accumulator.
    """

    products: float = 2
    row: float = 0
    vector: float = 0
    latency: float = 4
    registers: int = 0
    sums: int = 1


@record()
class Dot:
    """An instruction: sums += Σ a · b over `k` consecutive elements of the sum in each lane.

    `name`: the key in the cache. `a`, `b`, `sums`: the types of the data, the weights, and the accumulators. `weights`:
    the compressed form of packed weights, which are widened to `b` in registers; None for uncompressed weights.
    `group`: elements of the data that share a scale, if their rows are quantized for this product; 0 for other data.
    `rate`: instructions per cycle, for cost models.

    For AMX, an accumulator is a tile of 16 rows of 64 bytes, `registers` emits the instruction on three tiles, and
    `multiply` computes a row of a tile if AMX is emulated. Otherwise, an accumulator is a vector.
    """

    name: str
    a: str
    b: str
    sums: str
    k: int
    multiply: Multiply = field(repr=False)
    rate: float
    weights: Compression | None = None
    group: int = 0
    registers: Callable[[Function, int, int, int], None] | None = field(default=None, repr=False)
    cost: TileCost = field(default=TileCost(), repr=False)

    def __post_init__(self) -> None:
        if self.k * SIZES[self.a] != WORD:
            raise ValueError(f"{self.name}: {self.k} elements of {self.a} are not a word of {WORD} bytes")

    @property
    def tiled(self) -> bool:
        """True if the accumulators are tiles of AMX."""
        return self.registers is not None

    @property
    def arithmetic(self) -> str:
        """f32, bf16 or int8."""
        return "int8" if self.sums == I32 else self.a

    @property
    def why(self) -> str:
        """The reason for the selection, for explanations."""
        if self.weights is not None:
            kept = f"compiled, weights stay {self.weights.element}"
            if self.group:
                return f"{kept}, data are i8 in groups of {self.group}, by {self.name}"
            return kept if self.a == F32 else f"{kept}, {self.a} by {self.name}"
        return "compiled" if self.a == F32 else f"compiled, {'int8' if self.sums == I32 else self.a} by {self.name}"

    @property
    def members(self) -> int:
        """The number of words of the sum whose weights share one stored word: several if weights are compressed."""
        return 1 if self.weights is None else self.weights.members // self.k

    def words(self, length: Any) -> Any:
        """The number of words of `length` elements of the sum: an int, or a value of the code."""
        return length if self.k == 1 else (length + self.k - 1) // self.k

    def nbytes(self, words: int, columns: int) -> int:
        """The bytes of a panel of packed weights for a number of words of the sum."""
        return words * columns * WORD if self.weights is None else self.weights.nbytes(words * self.k, columns)


def _fma(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    return f.fma(b, a, sums)


def _pairs(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    if not f.target.emulated:
        return intrinsics.dot_pairs(f, sums, a, b)
    for k in (1, 0):
        sums = f.fma(bfloat16.member(a.bits(), k), bfloat16.member(b.bits(), k), sums)
    return sums


def _dot_tiles(f: Function, sums: int, data: int, weights: int) -> None:
    """sums[r, o] += Σ data[r, k] · weights[k, o] of tiles with pairs of bf16."""
    intrinsics.on_tiles(f, "tdpbf16ps", sums, data, weights)


def _byte_pairs(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    ones = f.zero("i16", 2 * f.lanes).constant(1)
    return sums + intrinsics.multiply_pairs(f, intrinsics.multiply_byte_pairs(f, a, b), ones)


def _widened_bytes(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    """Multiply the bytes at even positions, then the bytes at odd positions, as i16."""
    kind = vec_type("i16", 2 * f.lanes)
    a, b = a.bitcast(kind), b.bitcast(kind)
    sums = sums + intrinsics.multiply_pairs(f, a & 255, (b << 8) >> 8)
    return sums + intrinsics.multiply_pairs(f, a.shifted_right(8), b >> 8)


def _i16_pairs(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    return sums + intrinsics.multiply_pairs(f, a, b)


FMA = Dot("FMA", F32, F32, F32, 1, _fma, 2)
PAIRS = Dot("AVX512_BF16", BF16, BF16, F32, 2, _pairs, 1)
"""Zen 4 issues one per cycle."""
TILES = Dot("AMX", BF16, BF16, F32, 2, _pairs, 1 / 16, registers=_dot_tiles)


def compressed_dot(weights: Compression, element: str = F32) -> Dot:
    """The dot of data of f32 or bf16 by compressed weights, which are widened to this type."""
    return replace(FMA if element == F32 else PAIRS, weights=weights)


VNNI = Dot("vpdpbusd", U8, I8, I32, 4, intrinsics.dot_bytes, 1, cost=TileCost(latency=4))
"""AVX512_VNNI or AVX_VNNI."""
BYTE_PAIRS = Dot("vpmaddubsw", U8, I8, I32, 4, _byte_pairs, 1, cost=TileCost(1, 0.1, 0, 1, 2))
"""Two instructions, vpmaddubsw and vpmaddwd. The sum of two products must fit into i16."""
WIDENED_BYTES = Dot("vpmaddwd", U8, I8, I32, 4, _widened_bytes, 0.7, cost=TileCost(1, 0.5, 0.75, 1, 2))
"""Exact for all weights: 64 to 66 billion products per second, against 95 by BYTE_PAIRS and 50 by FMA (Zen 3)."""
I16_PAIRS = Dot("vpmaddwd of i16", I16, I16, I32, 2, _i16_pairs, 1.5, cost=TileCost(1, 0.1, 0, 4, 2))
"""Exact for all weights, for data that are stored in i16: 67 billion products per second, against 52 by WIDENED_BYTES
and 87 by BYTE_PAIRS at the same clock. If tiles leave two registers free, detectors take 0.92 of the time (Zen 3)."""


WIDENED_REGISTERS = 3
"""Registers for the bytes of compressed weights. With fewer, tiles take up to 1.4 times as long (Zen 5)."""


def quantized_dot(target: Target, weights: Compression, group: int) -> Dot:
    """The dot of data that are quantized to i8 in groups, and the codes of compressed weights as u8.

    An accumulator is the sum of a group and its total. If registers hold both, products of 8 to 13 rows take 0.6 to 0.9
    of the time (Zen 5). With 16 registers, totals are spilled: tiles of fewer rows would take 1.1 of the time.
    """
    dot = byte_dot(target, saturates=weights.widening.bits == 8)
    if target.registers > 16:
        cost = replace(dot.cost, sums=2)
    else:
        cost = replace(dot.cost, registers=dot.cost.registers + WIDENED_REGISTERS)
    return replace(dot, a=I8, b=U8, multiply=_turned(dot.multiply), weights=weights, group=group, cost=cost)


@cache
def _turned(multiply: Multiply) -> Multiply:
    """The instruction with its operands exchanged: the weights are the first operand, the data the second."""
    return lambda f, sums, a, b: multiply(f, sums, b, a)


def dots(target: Target) -> dict[str, Dot]:
    """The dots of a target, by the type of the data."""
    by_type = {F32: FMA}
    if target.bf16:
        by_type[BF16] = TILES if target.tiles else PAIRS
    return by_type


def byte_dot(target: Target, *, saturates: bool) -> Dot:
    """The dot of u8 and i8. `saturates`: the sum of two products may exceed i16."""
    if target.vnni:
        return VNNI
    return WIDENED_BYTES if saturates else BYTE_PAIRS
