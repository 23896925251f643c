"""How a target multiplies and accumulates, as data: the innermost operation of every contraction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import Function, Pointer, Vec
from irload.plan.backends.llvm.elements import BF16, F32, SIZES
from irload.plan.backends.llvm.target import Target
from irload.record import record

Multiply = Callable[[Function, Vec, Vec, Vec], Vec]
"""(f, sums, a, b) → sums + a · b, for vectors of words of a and b."""
LoadVector = Callable[[Function, Pointer, int], Vec]
"""(f, panel, offset) → one vector of words of b, from as many bytes as `Dot.step` says."""

WORD = 4
"""The bytes of a, and as a rule of b, for one lane of sums."""


def _load(f: Function, panel: Pointer, offset: int) -> Vec:
    return f.load(panel, offset, align=f.target.bytes)


@record()
class Dot:
    """sums += Σ a · b over `k` consecutive elements of the sum in each lane. Its name is its key in the cache.

    `a`, `b`, `sums`: the types of the data, of the packed weights as `load` returns them, and of the accumulators.
    `rate`: instructions per cycle, for cost models. `registers`: for tiles of AMX, the instruction on three of them; a
    register of sums is then 16 rows of 64 bytes, else one vector. `multiply` also computes the rows of emulated tiles.
    """

    name: str
    a: str
    b: str
    sums: str
    k: int
    multiply: Multiply = field(repr=False)
    rate: float
    step: int = WORD
    """The bytes of packed weights for one lane: fewer than a word if `load` widens them."""
    load: LoadVector = field(default=_load, repr=False)
    registers: Callable[[Function, int, int, int], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.k * SIZES[self.a] != WORD:
            raise ValueError(f"{self.name}: {self.k} elements of {self.a} are not a word of {WORD} bytes")

    @property
    def tiled(self) -> bool:
        """True if sums are tiles of AMX."""
        return self.registers is not None

    @property
    def why(self) -> str:
        """The text for explanations."""
        return "compiled" if self.a == F32 else f"compiled, {self.a} by {self.name}"

    def zero(self, f: Function) -> Vec:
        """A vector of sums without any term."""
        return f.zero(self.sums)

    def words(self, length: int) -> int:
        """The words of `length` elements of the sum."""
        return -(-length // self.k)


def _fma(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    return f.fma(b, a, sums)


def _pairs(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    if not f.target.emulated:
        return intrinsics.dot_pairs(f, sums, a, b)
    for high in (True, False):
        sums = f.fma(_half(a, high=high), _half(b, high=high), sums)
    return sums


def _half(pairs: Vec, *, high: bool) -> Vec:
    """The second or the first bf16 of each pair as f32."""
    words = pairs.bits()
    return (words & -65536 if high else words << 16).floats()


FMA = Dot("FMA", F32, F32, F32, 1, _fma, 2)
PAIRS = Dot("AVX512_BF16", BF16, BF16, F32, 2, _pairs, 1)
"""Zen 4 starts one a cycle."""
TILES = Dot("AMX", BF16, BF16, F32, 2, _pairs, 1 / 16, registers=intrinsics.dot_tiles)


def dots(target: Target) -> dict[str, Dot]:
    """The dots of a target, by the type of the data."""
    found = {F32: FMA}
    if target.bf16:
        found[BF16] = TILES if target.tiles else PAIRS
    return found


def vector_dot(element: str) -> Dot:
    """The dot whose sums are vectors, for data of this type."""
    return {F32: FMA, BF16: PAIRS}[element]
