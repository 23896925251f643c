"""Packs and unpacks the values of each element type as stored in a .bin file.

All types are little-endian. The first value of a byte is in the low nibble (i4, u4, nf4, f4e2m1), in the low bits (u2),
or in the high bit (u1). u3 and u6 are stored in groups of three bytes: two bytes of low bits, then one byte of high
bits.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.tensor import Array
from irload.errors import ReadError

# fmt: off
NF4_TABLE = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
], np.float32)
# fmt: on
"""The values of the 16 nf4 codes."""


def unpack(raw: Array, element: ElementType, shape: tuple[int, ...]) -> Array:
    """The values in `raw` (u8) as an array of `shape` in the element's storage dtype.

    Trailing bytes are ignored; too few raise ReadError. The result is a view if alignment and width allow it.
    """
    count = int(np.prod(shape, dtype=object)) if shape else 1
    needed = element.bytes_for(count)
    if raw.size < needed:
        raise ReadError(f"{element}{list(shape)} takes {needed} bytes, found {raw.size}")
    if element is et.string:
        return _unpack_strings(raw, count).reshape(shape)
    if element.bits >= 8:
        return _unpack_whole(raw[:needed], element).reshape(shape)
    codes = _codes(raw[:needed], element.bits)[:count]
    if element is et.nf4:
        return NF4_TABLE[codes].reshape(shape)
    if element is et.i4:
        return ((codes ^ 8).astype(np.int8) - 8).astype(np.int8).reshape(shape)
    return (codes.view(element.dtype) if element is et.f4e2m1 else codes).reshape(shape)


def pack(values: Array, element: ElementType) -> bytes:
    """The bytes of `values` (in the element's storage dtype) as stored in a .bin file."""
    if element is et.string:
        return _pack_strings(values)
    flat = np.ascontiguousarray(values).reshape(-1)
    if element.bits >= 8:
        return flat.astype(element.dtype.newbyteorder("<"), copy=False).tobytes()
    if element is et.nf4:
        middle = (NF4_TABLE[1:] + NF4_TABLE[:-1]) / 2
        codes = np.searchsorted(middle, flat).astype(np.uint8)
    else:
        codes = flat.view(np.uint8) & np.uint8((1 << element.bits) - 1)
    return _pack_codes(codes, element.bits).tobytes()


def _unpack_whole(raw: Array, element: ElementType) -> Array:
    if element is et.boolean:
        return raw != 0
    dtype = element.dtype.newbyteorder("<") if element.dtype.kind in "iuf" and element.bits > 8 else element.dtype
    # Copy misaligned arrays once: kernels take more than twice as long on them.
    aligned = raw.ctypes.data % element.dtype.itemsize == 0
    values = (raw if aligned else raw.copy()).view(dtype)
    # `ufunc.at` takes ten times as long on an array whose byte order is explicit, even if it is native.
    return values.view(element.dtype) if dtype == element.dtype else values.astype(element.dtype)


def _codes(raw: Array, bits: int) -> Array:
    """The unsigned codes of packed values, one per byte."""
    if bits == 4:
        return np.stack([raw & 15, raw >> 4], -1).reshape(-1)
    if bits == 2:
        return np.stack([(raw >> s) & 3 for s in (0, 2, 4, 6)], -1).reshape(-1)
    if bits == 1:
        return np.unpackbits(raw)
    group = raw.reshape(-1, 3)
    if bits == 3:
        low = np.stack([(group[:, :2] >> s) & 3 for s in (6, 4, 2, 0)], -1).reshape(-1, 8)
        high = np.unpackbits(group[:, 2]).reshape(-1, 8)
        return (low | high << 2).reshape(-1)
    low = np.stack([(group[:, :2] >> s) & 15 for s in (4, 0)], -1).reshape(-1, 4)
    high = np.stack([(group[:, 2] >> s) & 3 for s in (6, 4, 2, 0)], -1)
    return (low | high << 4).reshape(-1)


def _pack_codes(codes: Array, bits: int) -> Array:
    group = {1: 8, 2: 4, 3: 8, 4: 2, 6: 4}[bits]
    codes = np.pad(codes, (0, -codes.size % group)).reshape(-1, group)
    if bits == 4:
        return codes[:, 0] | codes[:, 1] << 4
    if bits == 2:
        return codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6
    if bits == 1:
        return np.packbits(codes)
    if bits == 3:
        low = codes.reshape(-1, 2, 4) & 3
        low = low[..., 0] << 6 | low[..., 1] << 4 | low[..., 2] << 2 | low[..., 3]
        return np.concatenate([low, np.packbits(codes >> 2, axis=-1)], -1).reshape(-1)
    low = codes.reshape(-1, 2, 2) & 15
    top = codes >> 4
    high = top[:, 0] << 6 | top[:, 1] << 4 | top[:, 2] << 2 | top[:, 3]
    return np.concatenate([low[..., 0] << 4 | low[..., 1], high[:, None]], -1).reshape(-1)


def _unpack_strings(raw: Array, count: int) -> Array:
    """i32 count, count + 1 end offsets that begin with 0, then the bytes of all strings."""
    data = raw.tobytes()
    header = 4 * (count + 2)
    if len(data) < header:
        raise ReadError(f"{count} strings take a header of {header} bytes, found {len(data)}")
    stored, *ends = np.frombuffer(data, "<i4", count + 2).tolist()
    body = data[header:]
    if stored != count or any(a > b for a, b in pairwise(ends)) or ends[0] < 0 or ends[-1] > len(body):
        raise ReadError(f"the string constant is malformed: it states {stored} strings and offsets {ends[:8]}")
    texts = [body[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(ends)]
    result = np.empty(count, object)
    result[:] = texts
    return result


def _pack_strings(values: Array) -> bytes:
    texts = [str(v).encode("utf-8", "surrogateescape") for v in values.reshape(-1)]
    ends = np.cumsum([0, *map(len, texts)])
    return np.array([len(texts), *ends], "<i4").tobytes() + b"".join(texts)
