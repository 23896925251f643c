"""Whether AMX is used: the processor's flags, the system's permission, and a check of its products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from ml_dtypes import bfloat16

import irload
from irload.core.tensor import Array
from irload.errors import Unsupported
from irload.ops.sliding import WindowAxis
from irload.options import Options
from irload.plan.backends.llvm import available, target, tile_check
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.kernels.reorder import Reorder
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import AMX, AVX512, AVX512_BF16, Target, tiles_are_permitted
from irload.plan.backends.llvm.tiles import Tiles
from irload.plan.backends.registry import compiled_backend
from tests.plan.llvm.harness import BF16, DOTS, TARGETS, TILES


def chosen(monkeypatch: pytest.MonkeyPatch, *, permitted: bool, asked: str = "") -> Target | None:
    """The target on a processor with AMX."""
    monkeypatch.setattr(target, "_flags", lambda: AMX.flags)
    monkeypatch.setattr(target, "tiles_are_permitted", lambda: permitted)
    return target._host_target.__wrapped__(asked)


def test_tiles_are_used_where_the_system_permits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, permitted=True) is AMX
    assert chosen(monkeypatch, permitted=False) is AVX512_BF16
    assert chosen(monkeypatch, permitted=False, asked="avx512") is AVX512
    with pytest.raises(Unsupported, match="the system does not permit AMX"):
        chosen(monkeypatch, permitted=False, asked="amx")


def test_no_permission_without_amx() -> None:
    assert not tiles_are_permitted() or "amx_tile" in target._flags()


def test_a_product_is_checked_first() -> None:
    assert tile_check.tiles_multiply(TILES)


def test_a_wrong_product_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(self: Tiles, sums: int, data: int, weights: int) -> None:
        right(self, sums, weights, data)

    right = Tiles.dot
    monkeypatch.setattr(Tiles, "dot", swapped)
    assert not tile_check.tiles_multiply(replace(TILES, name="wrong"))


def test_wrong_tiles_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: TILES)
    monkeypatch.setattr(tile_check, "tiles_multiply", lambda target: False)
    available._checked.cache_clear()
    with pytest.warns(UserWarning, match="products by AMX differ from NumPy's"):
        used = compiled_backend(Options(precision="auto"))
    assert used is not None
    assert used.target is AVX512
    compiled_backend(Options(precision="auto"))  # warns once
    available._checked.cache_clear()


@pytest.mark.parametrize(
    ("target", "said"),
    [(TILES, "TileProduct: compiled, bf16 by AMX"), (DOTS, "Product: compiled, bf16 by AVX512_BF16")],
)
def test_a_model_in_bf16(monkeypatch: pytest.MonkeyPatch, target: Target, said: str) -> None:
    monkeypatch.setattr(available, "host_target", lambda: target)
    monkeypatch.setattr("irload.plan.backends.llvm.kernels.precision._is_faster", lambda *_: True)
    image = np.random.default_rng(3).random((1, 1, 8, 8), np.float32)
    plain = irload.compile_model("models/digits/model.xml", optimize=False)(image)[0]
    compiled = irload.compile_model("models/digits/model.xml", precision="bf16")
    assert said in compiled.explain(image)
    np.testing.assert_allclose(compiled(image)[0], plain, rtol=0, atol=0.02 * np.abs(plain).max())


def copied(data: Array, kernel: Reorder, target: Target) -> Array:
    """The copy that the kernel writes, as bits."""
    copy = np.full(kernel.nbytes // 2, 0xFFFF, np.uint16)
    launched([Launch(kernel, [address(data), address(copy)])], target, 1, 0).run(0, 1)
    return copy


@pytest.mark.parametrize("target", dict.fromkeys([*TARGETS, *BF16]), ids=lambda t: t.name)
def test_copies_round_to_nearest_even(target: Target) -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 32, (2048, 32), np.uint32)
    bits[:512] &= 0xFFFF8000  # including ties
    bits[0, :4] = (0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0xFF800000)
    if not target.emulated and target.bf16:
        bits[bits & 0x7F800000 == 0] &= 0x80000000  # the instruction flushes subnormal numbers to 0
    data = bits.view(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = data.astype(bfloat16)
    copy = copied(data, Reorder((), 32, 4, (), (CopiedAxis(WindowAxis(2048, 2048), 128),)), target).view(bfloat16)
    np.testing.assert_array_equal(copy.reshape(wanted.shape).astype(np.float32), wanted.astype(np.float32))
    numbers = ~np.isnan(data)
    np.testing.assert_array_equal(copy.view(np.uint16).reshape(bits.shape)[numbers], wanted.view(np.uint16)[numbers])


def test_copies_are_padded_and_split_into_phases() -> None:
    data = np.arange(1, 7, dtype=np.float32)  # positions −1…7 in steps of 2: phases of −1, 1, 3, 5 and 0, 2, 4, 6
    kernel = Reorder((), 1, 4, (), (CopiedAxis(WindowAxis(6, 3, kernel=3, stride=2, begin=1), 4),))
    copy = copied(data, kernel, TILES).view(bfloat16).astype(np.float32).reshape(2, 4, 32)
    np.testing.assert_array_equal(copy[..., 0], [[0, 2, 4, 6], [1, 3, 5, 0]])
    assert not copy[..., 1:].any()


@pytest.mark.parametrize(("channels", "members"), [(1, 1), (1, 2), (2, 2), (3, 4), (5, 8), (8, 8), (10, 16)])
@pytest.mark.parametrize("innermost", [False, True])
@pytest.mark.parametrize(("columns", "begin", "length"), [(37, 2, 41), (5, 0, 4), (3, 9, 8), (16, 1, 30)])
def test_copies_of_images(channels: int, members: int, innermost: bool, columns: int, begin: int, length: int) -> None:
    image = np.random.default_rng(channels).standard_normal((2, channels, 3, columns)).astype(np.float32)
    image = image.astype(bfloat16).astype(np.float32)
    data = np.moveaxis(np.ascontiguousarray(np.moveaxis(image, 1, -1)), -1, 1) if innermost else image
    batch, channel, line, column = data.strides
    axes = (CopiedAxis(WindowAxis(3, 6, begin=1), line), CopiedAxis(WindowAxis(columns, length, begin=begin), column))
    kernel = Reorder((Axis(2, (batch,)),), channels, channel, (), axes, members=members)
    wanted = np.zeros((2, 6, length, members), np.float32)
    inside = image.transpose(0, 2, 3, 1)[:, :, : max(length - begin, 0)]
    wanted[:, 1:4, begin : begin + inside.shape[2], :channels] = inside
    copy = copied(data, kernel, TILES).view(bfloat16).astype(np.float32)
    np.testing.assert_array_equal(copy.reshape(wanted.shape), wanted)
