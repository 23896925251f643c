"""Instructions without an LLVM operator: atomics, time stamps, dot products, AMX, rate-limited prefetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irload.plan.backends.llvm.builder import Function, Int, Pointer
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.values import SIZES, AnyInt, Bool, LlvmValue, Vec, vec_type


def round_pair(f: Function, low: Vec, high: Vec) -> Vec:
    """Round two vectors of f32 to one of bf16 (AVX512_BF16)."""
    kind = vec_type("bf16", 2 * f.lanes)
    name = f"@llvm.x86.avx512bf16.cvtne2ps2bf16.{f.lanes * 32}"
    return f.value(kind, f"call {kind} {name}({f.vector} {high}, {f.vector} {low})")


def pause(f: Function) -> None:
    """The `pause` instruction of spin loops."""
    f.emit("call void @llvm.x86.sse2.pause()")


def cycles(f: Function) -> Int:
    """The time stamp counter, which counts at a constant rate near the nominal frequency."""
    return f.value("i64", "call i64 @llvm.readcyclecounter()")


def load_shared(f: Function, pointer: Pointer, offset: int = 0) -> Int:
    """Load an i64 that another thread may change (acquire): the stores before its store are visible afterwards."""
    return f.value("i64", f"load atomic i64, ptr {pointer + offset} acquire, align 8")


def store_shared(f: Function, number: AnyInt, pointer: Pointer, offset: int = 0) -> None:
    """Store an i64 for other threads, after all earlier stores and before all later loads (sequentially consistent)."""
    f.value("i64", f"atomicrmw xchg ptr {pointer + offset}, i64 {number} seq_cst, align 8")


def add_shared(f: Function, pointer: Pointer, number: int) -> None:
    """Add atomically to an i64, before all later loads (sequentially consistent)."""
    f.value("i64", f"atomicrmw add ptr {pointer}, i64 {number} seq_cst, align 8")


def exchange(f: Function, pointer: Pointer, old: AnyInt, new: AnyInt) -> Bool:
    """Compare and exchange: replace the i64 by `new` if it is `old`. False if another thread has changed it."""
    kind = "{ i64, i1 }"
    both = f.value(kind, f"cmpxchg ptr {pointer}, i64 {old}, i64 {new} acq_rel acquire, align 8")
    return f.value("i1", f"extractvalue {kind} {both}, 1")


def call_address(f: Function, address: Pointer, arguments: Sequence[LlvmValue | int], result: str = "void") -> None:
    """Call the C function at an address. Python numbers are passed as i64."""
    listed = (f"i64 {a}" if isinstance(a, int) else f"{a.type} {a}" for a in arguments)
    f.emit(f"call {result} {address}({', '.join(listed)})")


def opaque(f: Function, pointer: Pointer) -> Pointer:
    """The same pointer, hidden from LLVM's analysis of how it is derived from others."""
    return f.value("ptr", f'call ptr asm "", "=r,0"(ptr {pointer})')


def load_after(f: Function, values: Sequence[Vec]) -> None:
    """Keep LLVM from moving later loads before the computation of `values`. Emits no instruction."""
    if not f.target.is_native:
        return
    operands = ", ".join(f"{value.type} {value}" for value in values)
    f.emit(f'call void asm sideeffect "", "{"v," * len(values)}~{{memory}}"({operands})')


def distance(f: Function, a: AnyInt, b: AnyInt) -> Int:
    """|a − b|."""
    return f.value("i64", f"call i64 @llvm.abs.i64(i64 {a - b}, i1 false)")


def bits(f: Function, operation: str, a: AnyInt, b: AnyInt) -> Int:
    """An operation on bits, or a product modulo 2^64: and, or, xor, shl, lshr, mul."""
    return f.value("i64", f"{operation} i64 {a}, {b}")


def dot_pairs(f: Function, sums: Vec, data: Vec, weights: Vec) -> Vec:
    """sums + Σ data · weights of the two bf16 in each lane of f32 (AVX512_BF16, 512 bits).

    Neither sums nor products are rounded to bf16. Subnormal numbers are treated as 0.
    """
    pairs = vec_type("bf16", 2 * f.lanes)
    left, right = (vector.bitcast(pairs) for vector in (data, weights))
    name = f"@llvm.x86.avx512bf16.dpbf16ps.{f.lanes * 32}"
    return f.value(f.vector, f"call {f.vector} {name}({f.vector} {sums}, {pairs} {left}, {pairs} {right})")


def multiply_byte_pairs(f: Function, data: Vec, weights: Vec) -> Vec:
    """The i16 sums of two products of u8 data and i8 weights, saturated (vpmaddubsw)."""
    return _by_pairs(f, {256: "avx2.pmadd.ub.sw", 512: "avx512.pmaddubs.w.512"}, "i8", "i16", data, weights)


def multiply_pairs(f: Function, a: Vec, b: Vec) -> Vec:
    """The i32 sums of two products of i16 (vpmaddwd)."""
    return _by_pairs(f, {256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}, "i16", "i32", a, b)


def _by_pairs(f: Function, names: Mapping[int, str], of: str, to: str, a: Vec, b: Vec) -> Vec:
    """Sums of products of neighbouring elements. Halves are computed if no instruction processes whole vectors."""
    bits = 32 * f.lanes if "avx512bw" in f.target.flags else 256
    count = bits // 8 // SIZES[of]
    whole = 4 * f.lanes // SIZES[of]
    left, right = (vector.bitcast(vec_type(of, whole)) for vector in (a, b))
    sums: list[Vec] = []
    for first in range(0, whole, count):
        lanes = range(first, first + count)
        x, y = (v if whole == count else f.shuffle(v, v, lanes) for v in (left, right))
        kind = vec_type(to, count // 2)
        sums.append(f.value(kind, f"call {kind} @llvm.x86.{names[bits]}({x.type} {x}, {y.type} {y})"))
    return sums[0] if len(sums) == 1 else f.shuffle(sums[0], sums[1], range(whole // 2))


def dot_bytes(f: Function, sums: Vec, data: Vec, weights: Vec) -> Vec:
    """sums + Σ data · weights of the four u8 and i8 in each lane (vpdpbusd of AVX512_VNNI or AVX_VNNI)."""
    from llvmlite.binding import llvm_version_info  # plans from the cache load without llvmlite

    kind = f.integers if llvm_version_info[0] < 22 else vec_type("i8", 4 * f.lanes)
    left, right = (vector.bitcast(kind) for vector in (data, weights))
    name = f"@llvm.x86.avx512.vpdpbusd.{32 * f.lanes}"
    return f.value(f.integers, f"call {f.integers} {name}({f.integers} {sums}, {kind} {left}, {kind} {right})")


def look_up(f: Function, table: Sequence[int], codes: Vec) -> Vec:
    """The entries of a table of 16 numbers, given as bits of f32, for the lowest four bits of each lane (vpermps)."""
    if f.lanes == 16 and "avx512f" in f.target.flags:
        return _permuted(f, "avx512.permvar.sf.512", table, codes)
    parts = [codes] if f.lanes == 8 else [f.shuffle(codes, codes, range(k, k + 8)) for k in (0, 8)]
    entries: list[Vec] = []
    for part in parts:
        low, high = (_permuted(f, "avx2.permps", half, part) for half in (table[:8], table[8:]))
        entries.append(high.where((part << 28).compare("slt", 0), low))
    return entries[0] if len(entries) == 1 else f.shuffle(entries[0], entries[1], range(16))


def _permuted(f: Function, name: str, table: Sequence[int], lanes: Vec) -> Vec:
    """The entries of a table with one number per lane."""
    entries = f.numbers(table).floats()
    return f.value(
        entries.type, f"call {entries.type} @llvm.x86.{name}({entries.type} {entries}, {lanes.type} {lanes})"
    )


def on_tiles(f: Function, name: str, *arguments: int | LlvmValue) -> None:
    """An instruction of AMX. Python ints are indices of tiles."""
    listed = (f"i8 {a}" if isinstance(a, int) else f"{a.type} {a}" for a in arguments)
    f.emit(f"call void @llvm.x86.{name}({', '.join(listed)})")


def none_of(f: Function, condition: Bool) -> Bool:
    """True if a vector of conditions is false in all lanes."""
    kind = f"i{f.lanes}"
    return f.value(kind, f"bitcast {condition.type} {condition} to {kind}").compare("eq", 0)


def prefetch_slowly(f: Function, pointer: Pointer, lines: int) -> None:
    """Prefetch consecutive cache lines at a limited rate.

    Two dependent multiplications by 1 separate the addresses. A burst of prefetches occupies all line fill buffers,
    and demand misses of L1 wait for them: 25088 × 4096 weights take 18 ms with bursts, 15 ms without.
    """
    zero, one = _hidden(f, 0), _hidden(f, 1)
    offset: AnyInt = 0
    for line in range(lines):
        f.prefetch(pointer, offset)
        if line + 1 < lines:
            for _ in range(2):
                offset = f.value("i64", f"xor i64 {offset}, {zero}")
                offset = f.value("i64", f"mul i64 {offset}, {one}")
            offset = offset + LINE


def _hidden(f: Function, number: int) -> Int:
    """A number hidden from the compiler, so that it cannot fold arithmetic on it."""
    return f.value("i64", f"load volatile i64, ptr {f.table(f'hidden{number}', [number])}, align 8")
