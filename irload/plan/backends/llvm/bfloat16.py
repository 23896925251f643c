"""Vectors of bf16: conversion from f32 (to nearest, ties to even; NaN remains NaN) and to f32, and shuffles."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.values import vec_type

BYTES = 2
"""Bytes of an element."""


def rounded(f: Function, value: Vec) -> Vec:
    """Round a vector of f32 to bf16 in lanes of 16 bits. AVX512_BF16 flushes subnormal numbers to 0, as AMX does."""
    if "avx512bf16" in f.target.features:
        return value.cast("fptrunc", "bf16").bitcast(vec_type("i16", f.lanes))
    return rounded_bits(value).cast("trunc", "i16")


def rounded_bits(value: Vec) -> Vec:
    """Round a vector of f32 to bf16 in lanes of 32 bits. Subnormal numbers are rounded, not flushed to 0."""
    bits = value.bits()
    high = bits.shifted_right(16)
    number = (bits + (high & 1) + 0x7FFF).shifted_right(16)
    return value.function.select(value.compare("uno", value), high | 0x40, number)


def rounded_pair(f: Function, first: Vec, second: Vec) -> Vec:
    """Round two vectors of f32 to one of bf16, `first` in the lower lanes."""
    if "avx512bf16" not in f.target.features:
        return f.shuffle(rounded(f, first), rounded(f, second), range(2 * f.lanes))
    return intrinsics.round_pair(f, first, second).bitcast(vec_type("i16", 2 * f.lanes))


def pairs(f: Function, first: Vec, second: Vec) -> Vec:
    """Round two vectors of f32 to pairs of bf16 in lanes of 32 bits: the inverse of `member`."""
    halves = rounded_pair(f, first, second)
    return f.shuffle(halves, halves, _alternating(f.lanes)).bitcast(vec_type("i32", f.lanes))


def widened(halves: Vec) -> Vec:
    """Lanes of 16 bits as f32."""
    return (halves.cast("zext", "i32") << 16).floats()


def member(pairs: Vec, k: int) -> Vec:
    """The first or the second element (`k` 0 or 1) of pairs in lanes of 32 bits, as f32."""
    return (pairs & -65536 if k else pairs << 16).floats()


def interleaved(f: Function, vectors: Sequence[Vec]) -> Vec:
    """Interleave a power of 2 of vectors: the result has all first elements, then all second elements, and so on."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [paired(f, a, b) for a, b in zip(vectors[:half], vectors[half:], strict=True)]
    return vectors[0]


def paired(f: Function, first: Vec, second: Vec) -> Vec:
    """Interleave two vectors: the elements alternate."""
    return f.shuffle(first, second, _alternating(first.lanes))


def _alternating(lanes: int) -> list[int]:
    """The indices of the elements of two vectors of `lanes` lanes, in turns."""
    return [k // 2 + k % 2 * lanes for k in range(2 * lanes)]
