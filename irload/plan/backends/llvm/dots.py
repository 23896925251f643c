"""The instruction of AVX512_BF16 that multiplies pairs; for tests also written in others."""

from __future__ import annotations

from irload.plan.backends.llvm.builder import Function, Value

_PAIRS = "<32 x bfloat>"


def dot(f: Function, sums: Value, data: Value, weights: Value) -> Value:
    """Sums + Σ data · weights of the two bf16 in each lane of f32.

    Neither sums nor products are rounded to bf16; subnormal numbers count as 0.
    """
    if f.target.emulated:
        for half in ("high", "low"):
            sums = f.fma(_widened(f, data, half), _widened(f, weights, half), sums)
        return sums
    left, right = (f.value(_PAIRS, f"bitcast {f.vector} {v} to {_PAIRS}") for v in (data, weights))
    name = "@llvm.x86.avx512bf16.dpbf16ps.512"
    return f.value(f.vector, f"call {f.vector} {name}({f.vector} {sums}, {_PAIRS} {left}, {_PAIRS} {right})")


def _widened(f: Function, pairs: Value, half: str) -> Value:
    """One bf16 of each pair as f32."""
    words = f.value(f.integers, f"bitcast {f.vector} {pairs} to {f.integers}")
    how = ("and", -65536) if half == "high" else ("shl", 16)
    found = f.value(f.integers, f"{how[0]} {f.integers} {words}, splat (i32 {how[1]})")
    return f.value(f.vector, f"bitcast {f.integers} {found} to {f.vector}")
