"""Adds a `Dot` of 8-bit integers to the contraction driver: i8 · i8 → i32, exact, by AVX512_VNNI or by AVX2."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from dataclasses import replace

from llvmlite.binding import llvm_version_info

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import I8, I32, WORD
from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.kernels.contraction.build import ResultTensors, packing_of, register_product, shared
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks, reads_in_place
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import AVX2, AVX512, Target, _flags
from irload.plan.backends.llvm.values import vec_type
from irload.plan.ir.steps import IDENTITY
from tests.harness.tiers import tiered
from tests.plan.llvm.harness import guarded

VNNI = replace(AVX512, name="vnni", flags=AVX512.flags | {"avx512_vnni"}, features="+avx512vnni")


def by_vnni(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    """vpdpbusd multiplies u8 by s8: a + 128 is unsigned, and 128 · b is subtracted again."""
    offset = f.zero("i32").constant(-0x7F7F7F80)
    kind = (
        f.integers if llvm_version_info[0] < 22 else vec_type("i8", 4 * f.lanes)
    )  # its type depends on the version of LLVM

    def products(total: Vec, unsigned: Vec) -> Vec:
        arguments = f"{f.integers} {total}, {kind} {unsigned.bitcast(kind)}, {kind} {b.bitcast(kind)}"
        return f.value(f.integers, f"call {f.integers} @llvm.x86.avx512.vpdpbusd.512({arguments})")

    return products(sums, a.bits() ^ offset) - products(f.zero("i32"), offset)


def by_widening(f: Function, sums: Vec, a: Vec, b: Vec) -> Vec:
    """Each byte of a word, sign-extended to 32 bits."""
    a, b = a.bits(), b.bits()
    for shift in (24, 16, 8, 0):
        sums = sums + ((a << shift) >> 24) * ((b << shift) >> 24)
    return sums


BY_VNNI = Dot("AVX512_VNNI, a + 128", I8, I8, I32, 4, by_vnni, 0.5)
BY_WIDENING = Dot("i8 widened to i32", I8, I8, I32, 4, by_widening, 0.125)
DOCKED = [(AVX2, BY_WIDENING), *([(VNNI, BY_VNNI)] if VNNI.flags <= _flags() else [])]


def product(a: Array, b: Array, target: Target, dot: Dot, threads: int) -> Array:
    """a [rows, length] · b [length, columns] of i8 as i32. Rows of a are padded with zeros to whole words."""
    (rows, length), columns = a.shape, b.shape[1]
    data = guarded((rows, -(-length // WORD) * WORD), np.int8)
    data.fill(0)
    data[:, :length] = a
    out = guarded((rows, columns), np.int32)
    assert reads_in_place(data, 1, data.shape[1], dot)
    chunks = Chunks.in_place(data.shape[1], data.strides[1], dot)
    axes = [Axis(rows, (0, data.strides[0], out.strides[0]))]
    results = ResultTensors.of([out], 1, columns, IDENTITY)
    kernel = register_product(target, dot, axes, chunks.levels(dot), results)
    kernel = shared(kernel, threads, data.nbytes)
    weights = np.zeros((1, columns, data.shape[1]), np.int8)
    weights[..., :length] = b.T
    packed = packing_of(kernel, chunks).packed(weights)
    arrays = [data, packed, out]
    launched([Launch(kernel, list(map(address, arrays)), arrays)], target, threads, 0).run(0, 1)
    return out


@pytest.mark.parametrize(("target", "dot"), DOCKED, ids=lambda x: x.name)
def test_random_shapes_are_exact(target: Target, dot: Dot) -> None:
    rng = np.random.default_rng(0)
    sizes = [1, 2, 3, 4, 5, 7, 8, 13, 14, 16, 17, 31, 33, 64, 65, 100]
    for _ in range(tiered(20, 200)):
        rows, length, columns = (int(n) for n in rng.choice(sizes, 3))
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((rows, length), (length, columns)))
        output = product(a, b, target, dot, int(rng.integers(1, 3)))
        np.testing.assert_array_equal(output, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(("target", "dot"), DOCKED, ids=lambda x: x.name)
def test_extreme_values_do_not_saturate(target: Target, dot: Dot) -> None:
    for left in (-128, 127):
        for right in (-128, 127):
            a, b = np.full((3, 4096), left, np.int8), np.full((4096, 33), right, np.int8)
            output = product(a, b, target, dot, 1)
            np.testing.assert_array_equal(output, np.full((3, 33), 4096 * left * right))


def test_words_are_checked() -> None:
    with pytest.raises(ValueError, match="2 elements of i8 are not a word"):
        replace(BY_WIDENING, k=2)
