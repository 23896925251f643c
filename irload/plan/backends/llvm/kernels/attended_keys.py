"""Skips the keys after the last key to which a block of queries attends, such as later tokens.

With a causal mask, this halves the products of a long prompt. Exporters write causal masks as f32 or boolean tensors,
so the mask is searched. Results are equal: the exponentials of skipped scores are 0, and skipped values are finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, I32, SIZES, WORD
from irload.plan.backends.llvm.intrinsics import none_of
from irload.plan.backends.llvm.kernels.attention_sums import AttentionSums, Block
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.plan.backends.llvm.kernels.score_rows import ScoreRows
from irload.plan.backends.llvm.operands import read
from irload.plan.backends.llvm.shuffles import across

DROPPED, KEPT, PRODUCT = -60000.0, -10000.0, 20000.0
"""Numbers up to `DROPPED` in an f32 mask drop a key if the query has a key with a number above `KEPT`.

If no product of a query and a key exceeds `PRODUCT` in magnitude, the scores of these two keys differ by at least
10,000, so the exponential of the lower score is 0. Masks contain −65504, the lowest f16, or lower numbers.
"""
INFINITY = 0x7F800000
"""The bits of infinity: the bits of NaN are larger integers, the bits of other positive numbers smaller ones."""


def without_dropped_keys(b: Block, sums: AttentionSums, queries: AnyInt, depth: int) -> Block:
    """Emit the search, and return the block with the panels of keys up to the last attended key.

    All keys are multiplied if the mask drops every key of a query, since they then have equal weights; if a skipped
    value is not finite; and if products may exceed `PRODUCT` with an f32 mask. `queries`: the number of queries of the
    matrix; `depth`: the elements of a value.
    """
    f, rows, wide = b.f, b.rows, sums.keys * sums.lanes
    end = _end(rows, queries)
    if end is None:
        return b
    panels = (end + wide - 1) // wide
    limit: list[Any] = [f.integer(f.minimum(panels * wide, rows.keys))]
    with f.when(limit[0] < rows.keys, limit):
        row, k = sums.values * sums.lanes * WORD, sums.dot.k
        key_bytes = (rows.keys + wide - 1) // wide * (sums.dot.words(b.width) * wide * WORD)
        first, last = limit[0] // k, sums.dot.words(rows.keys)
        parts = -(-depth // (sums.values * sums.lanes))
        values = _largest(f, b.values + first * row, (last - first) * row, k, parts, last * row)
        exact = values.lane(0).compare("slt", INFINITY)
        if rows.scoring.dropped is None and not rows.scoring.causal:
            exact = exact & _are_small(b, partial(_largest, f, b.keys, key_bytes, k), queries)
        limit[0] = f.select(exact, limit[0], f.integer(rows.keys))
    return replace(b, rows=replace(rows, keys=limit[0]))


def _end(rows: ScoreRows, queries: AnyInt) -> AnyInt | None:
    """The end of the last vector of keys to which a query of the block attends; None if the code does not search."""
    f, mask, scoring = rows.f, rows.mask, rows.scoring
    last = _stop(rows, queries)
    if mask is None:
        return f.minimum(rows.keys, last) if scoring.causal else None
    if scoring.causal or scoring.mask != (SIZES[F32] if scoring.dropped is None else 1):
        return None
    end: list[Any] = [f.integer(rows.keys)]
    with f.when(rows.keys >= f.lanes, end):
        end[0] = _last_kept(rows, mask, last)
    return end[0]


def _stop(rows: ScoreRows, queries: AnyInt) -> AnyInt:
    """The index after the last query of the block."""
    return rows.f.minimum(rows.start + rows.layout.strips * rows.layout.rows, queries)


def _last_kept(rows: ScoreRows, mask: Pointer, last: AnyInt) -> AnyInt:
    """The end of the last vector of the mask that keeps a key, over all queries of the block."""
    f, begin = rows.f, rows.first(0)
    stop = begin + 1 if isinstance(rows.mask_row, int) else last  # one row is broadcast
    v = LocalIntegers(f, "key", "end")
    v["end"] = 0
    for query in f.range(begin, stop):
        line = mask + query * rows.mask_row
        v["key"] = rows.keys - f.lanes
        for _ in f.until(lambda line=line: _keeps(rows, line, v["key"], DROPPED) | f.equal(v["key"], 0)):
            v["key"] = f.maximum(v["key"] - f.lanes, 0)
        key = v["key"]
        after = f.select(_keeps(rows, line, key, KEPT), f.integer(key + f.lanes), f.integer(rows.keys))
        v["end"] = f.maximum(v["end"], after)
    return v["end"]


def _keeps(rows: ScoreRows, line: Pointer, key: AnyInt, least: float) -> Bool:
    """True if a vector of a row of the mask keeps any key: by true, or by a number above `least` or NaN."""
    f = rows.f
    if rows.scoring.dropped is not None:
        kept = f.load(line, key, element="i8").compare("ne", 0)
    else:
        kept = f.load(line, key * SIZES[F32]).compare("ugt", least)
    return f.equal(none_of(f, kept).as_int(), 0)


def _are_small(b: Block, largest: Callable[[], Vec], queries: AnyInt) -> Bool:
    """True if no product of a query of the block with a key exceeds `PRODUCT`: Σ |q| · max |k|.

    `largest`: emits the bits of max |k|.
    """
    f, rows = b.f, b.rows
    most: list[Any] = [f.zero()]
    for query in f.range(rows.first(0), _stop(rows, queries), 1, most):
        total, line = f.zero(), b.q + query * b.row
        for at in range(0, b.width, f.lanes):
            count = min(b.width - at, f.lanes)
            element = abs(read(f, line, at * b.column, b.column, count))
            total = total + (element if count == f.lanes else f.select(f.mask(count), element, f.zero()))
        total = across(f, total, Vec.__add__)
        most[0] = total.maximum(most[0])
    product = most[0] * largest().floats() * abs(rows.scoring.scale)
    return product.lane(0).compare("ole", PRODUCT)


def _largest(f: Function, start: Pointer, nbytes: AnyInt, k: int, count: int = 1, pitch: AnyInt = 0) -> Vec:
    """The bits of the largest magnitude in packed keys or values, in all lanes. The bits of NaN are above `INFINITY`.

    There are `count` parts, `pitch` bytes apart. A part has `nbytes` bytes, which are whole vectors. `k`: the elements
    of a word, 1 for f32 or 2 for bf16.
    """
    top: list[Any] = [f.zero(I32)]
    for part in range(count):
        for at in f.range(0, nbytes, f.lanes * SIZES[F32], top):
            words = f.load(start + part * pitch, at).bits()
            for element in (words,) if k == 1 else (words & -65536, words << 16):
                top[0] = _larger(element & 0x7FFFFFFF, top[0])
    return across(f, top[0], _larger)


def _larger(a: Vec, b: Vec) -> Vec:
    return a.where(a.compare("sgt", b), b)
