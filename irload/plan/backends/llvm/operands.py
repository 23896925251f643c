"""Loads and stores of a vector of elements of any stride and type: integers, or numbers converted to and from f32."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import BF16, BYTES, F16, F32, I8, I16, I32, I64, INTEGERS, QUANTIZED, SIZES
from irload.plan.backends.llvm.values import vec_type
from irload.plan.backends.llvm.vector_math import ROUNDING


def read(
    f: Function, pointer: Pointer, offset: AnyInt, stride: AnyInt, count: AnyInt | None = None, element: str = F32
) -> Vec:
    """`count` elements (by default one per lane) with a stride in bytes: i32 and i64 unchanged, others as f32.

    Stride 0 broadcasts one element.

    The lanes after `count` are unspecified, and their memory is not read.
    """
    start = pointer + offset
    if stride == 0:
        return f.splat(_scalar(f, start, 0, element))
    if stride == SIZES[element]:
        return load_lanes(f, start, 0, count, element)
    return _separate(f, start, stride, count, element)


def _separate(f: Function, start: Pointer, stride: AnyInt, count: AnyInt | None, element: str) -> Vec:
    """Elements that are loaded one by one."""
    vector = [f.zero(element if element in INTEGERS else F32)]
    for at in _lanes(f, count, vector):
        vector[0] = vector[0].with_lane(at, _scalar(f, start, at * stride, element))
    return vector[0]


def _lanes(f: Function, count: AnyInt | None, carried: list[Vec] | None = None) -> Iterable[AnyInt]:
    """The indices of `count` lanes, by default of all: a loop in the code if the count is known only at run time."""
    return f.range(0, count, 1, carried) if isinstance(count, Int) else range(count or f.lanes)


def load_lanes(f: Function, pointer: Pointer, offset: AnyInt, count: AnyInt | None, element: str) -> Vec:
    """`count` adjacent elements (all lanes by default); zeros beyond them, which are not read. See `read`."""
    if element == F32:
        return f.load(pointer, offset, count)
    if element == I32:
        return f.load(pointer, offset, count).bits()
    if element == I64:
        whole = count is None or (isinstance(count, int) and count >= f.lanes)
        start = pointer + offset
        return f.load(start, element=I64) if whole else _separate(f, start, SIZES[I64], count, I64)
    if element in BYTES:
        return _widened(_load_bytes(f, pointer + offset, count), element)
    bits = f.load(pointer, offset, count, element=I16)
    if element == I16:
        return _widened(bits, element)
    return bfloat16.widened(bits) if element == BF16 else bits.bitcast(vec_type(F16, f.lanes)).cast("fpext", F32)


def load_lines(f: Function, lines: Sequence[Pointer], offset: AnyInt, element: str) -> Vec:
    """One element of each line as f32."""
    vector = f.zero()
    for lane, line in enumerate(lines):
        vector = vector.with_lane(lane, _scalar(f, line, offset, element))
    return vector


def write(
    f: Function,
    value: Vec,
    pointer: Pointer,
    offset: AnyInt,
    stride: AnyInt,
    count: AnyInt | None = None,
    element: str = F32,
) -> None:
    """Store `count` lanes with a stride in bytes: of f32, rounded if `element` is bf16, or of integers.

    For quantized values, f32 in the range of the type are rounded to integers, halves to even, and integers wrap.
    """
    start = pointer + offset
    whole = not isinstance(count, Int) and (count is None or count >= f.lanes)
    if element in QUANTIZED:
        whole_numbers = (value + ROUNDING).bits() if value.is_float else value & 255
        stored = whole_numbers.cast("trunc", _bits(element))
        if stride == 1 and not whole and isinstance(count, int) and count > 1:
            stored, whole = f.shuffle(stored, stored, range(count)), True
    else:
        stored = bfloat16.rounded(f, value) if element == BF16 else value.floats() if element == I32 else value
    if stride == SIZES[element] and (whole or element not in (*BYTES, I64)):
        f.store(stored, start, 0, None if whole else count)
    else:
        for at in _lanes(f, count):
            f.store_scalar(stored.lane(at), start, at * stride)


def write_row(
    f: Function, values: Sequence[Vec], pointer: Pointer, offset: AnyInt, stride: int, count: int, element: str
) -> None:
    """Store `count` lanes of consecutive vectors. Pairs of whole vectors are rounded to bf16 by one instruction."""
    for first in range(0, len(values), 2):
        pair, start = values[first : first + 2], first * f.lanes
        place = offset + start * stride
        if element == BF16 and stride == SIZES[element] and start + 2 * f.lanes <= count:
            f.store(bfloat16.rounded_pair(f, *pair), pointer, place)
            continue
        for k, value in enumerate(pair):
            remaining = min(count - start - k * f.lanes, f.lanes)
            write(f, value, pointer, place + k * f.lanes * stride, stride, remaining, element)


def _load_bytes(f: Function, start: Pointer, count: AnyInt | None) -> Vec:
    """`count` adjacent bytes, by default one per lane. No other bytes are read."""
    if isinstance(count, Int):
        return _separate_bytes(f, start, 1, count)
    if count is None or count >= f.lanes:
        return f.load(start, element="i8")
    if count == 1:
        return f.zero("i8").with_lane(0, f.load_scalar(start, 0, "i8"))
    loaded = f.load_packed(start, 0, "i8", count)
    return f.shuffle(loaded, f.zero("i8", count), [min(lane, count) for lane in range(f.lanes)])


def _bits(element: str) -> str:
    """LLVM's integer type of stored quantized values, which has no sign."""
    return I16 if element == I16 else I8


def _widened(quantized: Vec, element: str) -> Vec:
    """Quantized values as f32."""
    return quantized.cast("sext" if element == I8 else "zext", "i32").converted()


def read_rounded(f: Function, pointer: Pointer, offset: AnyInt, stride: AnyInt, count: int, element: str = F32) -> Vec:
    """`count` elements with a stride in bytes, rounded to bf16; zeros in the lanes after `count`."""
    if count <= 0:
        return f.zero("i16")
    if element != F32 and stride == SIZES[element]:
        return f.load(pointer, offset, count, element="i16")
    if count >= f.lanes:
        return bfloat16.rounded(f, read(f, pointer, offset, stride, element=element))
    value = read(f, pointer, offset, stride, count, element)
    return bfloat16.rounded(f, f.select(f.mask(count), value, f.zero()))


def _scalar(f: Function, pointer: Pointer, offset: AnyInt, element: str) -> Vec:
    if element == BF16:
        return bfloat16.widened(f.load_scalar(pointer, offset, "i16"))
    if element in QUANTIZED:
        return _widened(f.load_scalar(pointer, offset, _bits(element)), element)
    scalar = f.load_scalar(pointer, offset, element)
    return scalar if element in (F32, *INTEGERS) else scalar.cast("fpext", F32)


def read_booleans(f: Function, pointer: Pointer, offset: AnyInt, stride: int, count: AnyInt | None = None) -> Bool:
    """A vector of i1 from `count` bytes of 0 or 1 (by default one per lane) with a stride in bytes.

    The lanes after `count` are unspecified, and their memory is not read.
    """
    start = pointer + offset
    if stride == 1:
        return f.load(start, count=count, element="i8").compare("ne", 0)
    return _separate_bytes(f, start, stride, count if count is None else f.integer(count)).compare("ne", 0)


def _separate_bytes(f: Function, start: Pointer, stride: AnyInt, count: AnyInt | None) -> Vec:
    """A vector of bytes gathered with a stride in bytes."""
    vector = [f.zero("i8")]
    for at in _lanes(f, count, vector):
        vector[0] = vector[0].with_lane(at, f.load_scalar(start, at * stride, "i8"))
    return vector[0]
