"""Instructions of processors and of threads that LLVM has no operator for."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm.builder import Function, Int, Pointer
from irload.plan.backends.llvm.values import AnyInt, Bool, Value, Vec, vec_type


def round_pair(f: Function, low: Vec, high: Vec) -> Vec:
    """Round two vectors of f32 to one of bf16 (AVX512_BF16)."""
    kind = vec_type("bf16", 2 * f.lanes)
    name = f"@llvm.x86.avx512bf16.cvtne2ps2bf16.{f.lanes * 32}"
    return f.value(kind, f"call {kind} {name}({f.vector} {high}, {f.vector} {low})")


def pause(f: Function) -> None:
    """Relax the processor in a spin loop."""
    f.emit("call void @llvm.x86.sse2.pause()")


def cycles(f: Function) -> Int:
    """The time stamp counter, which counts at a constant rate near the nominal frequency."""
    return f.value("i64", "call i64 @llvm.readcyclecounter()")


def load_shared(f: Function, pointer: Pointer, offset: int = 0) -> Int:
    """Load an i64 that another thread may change; its earlier stores are visible afterwards."""
    return f.value("i64", f"load atomic i64, ptr {pointer + offset} acquire, align 8")


def store_shared(f: Function, number: AnyInt, pointer: Pointer, offset: int = 0) -> None:
    """Store an i64 for other threads, after all earlier stores and before all later loads."""
    f.value("i64", f"atomicrmw xchg ptr {pointer + offset}, i64 {number} seq_cst, align 8")


def add_shared(f: Function, pointer: Pointer, number: int) -> None:
    """Add to an i64 that other threads change, too, before all later loads."""
    f.value("i64", f"atomicrmw add ptr {pointer}, i64 {number} seq_cst, align 8")


def exchange(f: Function, pointer: Pointer, old: AnyInt, new: AnyInt) -> Bool:
    """Replace the i64 `old` by `new`; false if another thread has changed it."""
    kind = "{ i64, i1 }"
    both = f.value(kind, f"cmpxchg ptr {pointer}, i64 {old}, i64 {new} acq_rel acquire, align 8")
    return f.value("i1", f"extractvalue {kind} {both}, 1")


def call_address(f: Function, address: Pointer, arguments: Sequence[Value | int], result: str = "void") -> None:
    """Call the C function at an address. Python numbers are passed as i64."""
    listed = (f"i64 {a}" if isinstance(a, int) else f"{a.type} {a}" for a in arguments)
    f.emit(f"call {result} {address}({', '.join(listed)})")


def distance(f: Function, a: AnyInt, b: AnyInt) -> Int:
    """|a − b|."""
    return f.value("i64", f"call i64 @llvm.abs.i64(i64 {a - b}, i1 false)")


def dot_pairs(f: Function, sums: Vec, data: Vec, weights: Vec) -> Vec:
    """Sums + Σ data · weights of the two bf16 in each lane of f32 (AVX512_BF16, 512 bits).

    Neither sums nor products are rounded to bf16; subnormal numbers count as 0.
    """
    pairs = vec_type("bf16", 2 * f.lanes)
    left, right = (vector.bitcast(pairs) for vector in (data, weights))
    name = f"@llvm.x86.avx512bf16.dpbf16ps.{f.lanes * 32}"
    return f.value(f.vector, f"call {f.vector} {name}({f.vector} {sums}, {pairs} {left}, {pairs} {right})")


def dot_tiles(f: Function, sums: int, data: int, weights: int) -> None:
    """sums[r, o] += Σ data[r, k] · weights[k, o] of tiles with pairs of bf16 (AMX)."""
    f.emit(f"call void @llvm.x86.tdpbf16ps(i8 {sums}, i8 {data}, i8 {weights})")


def configure_tiles(f: Function, table: Pointer) -> None:
    """Set rows and bytes of all tiles (AMX)."""
    f.emit(f"call void @llvm.x86.ldtilecfg(ptr {table})")


def release_tiles(f: Function) -> None:
    """Release the tiles, so that the system saves no more of them."""
    f.emit("call void @llvm.x86.tilerelease()")


def zero_tile(f: Function, tile: int) -> None:
    """Set a tile to zero."""
    f.emit(f"call void @llvm.x86.tilezero(i8 {tile})")


def load_tile(f: Function, tile: int, pointer: Pointer, stride: AnyInt, *, once: bool) -> None:
    """Load a tile from rows `stride` bytes apart. `once`: with a hint that they are not read again soon."""
    name = "tileloaddt164" if once else "tileloadd64"
    f.emit(f"call void @llvm.x86.{name}(i8 {tile}, ptr {pointer}, i64 {stride})")


def store_tile(f: Function, tile: int, pointer: Pointer, stride: AnyInt) -> None:
    """Store a tile to rows `stride` bytes apart."""
    f.emit(f"call void @llvm.x86.tilestored64(i8 {tile}, ptr {pointer}, i64 {stride})")


def none_of(f: Function, condition: Bool) -> Bool:
    """True if a vector of conditions is false in all lanes."""
    kind = f"i{f.lanes}"
    return f.value(kind, f"bitcast {condition.type} {condition} to {kind}").compare("eq", 0)
