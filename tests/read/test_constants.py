"""Const layers: what is checked of them, and where their bytes come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.errors import IRError
from irload.read import Weights
from irload.read.constants import RANK
from tests.read.texts import RESULT, const_net, faults, net, ours, theirs

FLOATS = np.arange(6, dtype=np.float32).tobytes()


def value(text: str, weights: bytes) -> np.ndarray:
    return irload.compile_model(irload.read_model(text.encode(), weights))()[0]


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        ('element_type="f32" shape="2,3" offset="0" size="24"', (2, 3)),
        ('element_type="f32" shape="6" offset="00" size="24"', (6,)),
        ('element_type="f32" shape="" offset="4" size="4"', ()),
        ('element_type="f32" shape="1" offset="7" size="4"', (1,)),
        ('element_type="f32" shape="0,3" offset="0" size="1"', (0, 3)),
        ('element_type="f32" shape="2" offset=" 0" size="24"', (2,)),
    ],
)
def test_both_read(data: str, shape: tuple[int, ...]) -> None:
    text = const_net(data)
    assert ours(text, FLOATS) == theirs(text, FLOATS)
    assert value(text, FLOATS).shape == shape


@pytest.mark.parametrize(
    "data",
    [
        'shape="1" offset="0" size="4"',
        'element_type="f32" offset="0" size="4"',
        'element_type="f32" shape="1" size="4"',
        'element_type="f32" shape="1" offset="0"',
        'element_type="FP32" shape="1" offset="0" size="4"',
        'element_type="dynamic" shape="1" offset="0" size="4"',
        'element_type="f32" shape="?" offset="0" size="4"',
        'element_type="f32" shape="-1" offset="0" size="4"',
        'element_type="f32" shape="..." offset="0" size="4"',
        'element_type="f32" shape="2" offset="0" size="4"',
        'element_type="f32" shape="1" offset="24" size="4"',
        'element_type="f32" shape="1" offset="22" size="4"',
        'element_type="f32" shape="7" offset="0" size="28"',
        'element_type="f32" shape="1" offset="-4" size="4"',
        'element_type="f32" shape="1" offset="0" size="-4"',
        'element_type="f32" shape="1" offset="0x0" size="4"',
        'element_type="f32" shape="1" offset="1_0" size="4"',
        'element_type="f32" shape="1" offset="１２" size="4"',
        'element_type="f32" shape="1" offset="18446744073709551612" size="8"',
        'element_type="f32" shape="1" offset="9223372036854775807" size="4"',
        'element_type="f32" shape="1000000000000000000" offset="0" size="24"',
        'element_type="f32" shape="4294967296,4294967296" offset="0" size="24"',
        'element_type="u1" shape="4611686018427387904,4" offset="0" size="24"',
        'element_type="string" shape="1000000000000" offset="0" size="24"',
        'element_type="string" shape="1" offset="0" size="24"',
        f'element_type="f32" shape="{",".join(["1"] * (RANK + 1))}" offset="0" size="4"',
        f'element_type="f32" shape="0,{"9" * 18},{"9" * 18}" offset="0" size="1"',
    ],
)
def test_refused_before_anything_is_allocated(data: str) -> None:
    with pytest.raises(IRError):
        ours(const_net(data), FLOATS)


def test_a_size_that_is_too_large_is_a_warning() -> None:
    model, found = faults(const_net('element_type="f32" shape="2" offset="0" size="24"'), FLOATS)
    assert not found
    assert "size 24 is more than the 8 bytes" in model.warnings[0]


@pytest.mark.parametrize("size", [29, 40])
def test_strings(size: int) -> None:
    raw = bytes.fromhex("0400000000000000020000000300000003000000050000006162637a6f") + bytes(20)
    text = const_net(f'element_type="string" shape="2,2" offset="0" size="{size}"', "STRING")
    assert value(text, raw).tolist() == [["ab", "c"], ["", "zo"]]


def test_constants_over_one_range_share_it() -> None:
    weights = Weights(FLOATS)
    from irload.core import element as et

    first = weights.array(0, 16, et.f32, (4,))
    assert np.shares_memory(first, weights.array(0, 16, et.i64, (2,)))
    assert weights.array(0, 16, et.f32, (4,)) is first
    assert not first.flags.writeable


def test_ranges_of_a_file_are_read_as_they_are_needed(tmp_path: Path) -> None:
    file = tmp_path / "sparse.bin"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)  # a terabyte of nothing
        stream.seek((1 << 40) - 4)
        stream.write(b"abcd")
    weights = Weights(file)
    assert weights.bytes((1 << 40) - 4, 4).tobytes() == b"abcd"
    assert weights.bytes((1 << 40) - 4, 4) is weights.bytes((1 << 40) - 4, 4)


def test_overlapping_ranges_do_not_add_up(tmp_path: Path) -> None:
    file = tmp_path / "m.bin"
    file.write_bytes(bytes(range(100)))
    weights = Weights(file)
    found = [weights.bytes(k, 60) for k in range(40)]
    assert [f[0] for f in found] == list(range(40))
    assert np.shares_memory(found[5], found[6])


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "m.bin"
    file.write_bytes(bytes(100))
    weights = Weights(file)
    os.truncate(file, 10)
    with pytest.raises(IRError, match="changed"):
        weights.bytes(50, 50)


def test_without_weights_a_model_can_be_looked_at() -> None:
    text = const_net('element_type="f32" shape="100000" offset="0" size="400000"')
    model = irload.read_model(text.encode())
    assert model.outputs[0].shape == (100000,)
    with pytest.raises(IRError, match=r"no \.bin file"):
        irload.compile_model(model)()


def test_a_broken_constant_that_nothing_needs_is_still_told() -> None:
    dead = (
        '<layer id="7" name="dead" type="Const" version="opset1"><data element_type="f32" shape="9" offset="0" '
        'size="36"/><output><port id="0" precision="FP32"/></output></layer>'
    )
    _, found = faults(const_net('element_type="f32" shape="1" offset="0" size="4"', extra=dead), FLOATS)
    assert len(found) == 1
    assert "'dead' (id 7)" in found[0]


@pytest.mark.parametrize("weights", [3, 3.5, object()])
def test_weights_that_are_neither_path_nor_bytes(weights: object) -> None:
    with pytest.raises(IRError, match="neither a path nor bytes"):
        Weights(weights)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("give", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.float32)[::1]])
def test_weights_in_any_buffer(give: Any) -> None:
    text = const_net('element_type="f32" shape="6" offset="0" size="24"')
    assert irload.compile_model(irload.read_model(text.encode(), give(FLOATS)))()[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_names_of_a_constant_output() -> None:
    const = (
        '<layer id="0" name="c" type="Const" version="opset1"><data element_type="f32" shape="1" offset="0" size="4"/>'
        '<output><port id="0" precision="FP32" names="k"/></output></layer>'
    )
    text = net(const + RESULT, '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>', version="10")
    assert ours(text, FLOATS) == theirs(text, FLOATS)
