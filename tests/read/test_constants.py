"""Const layers: the checks of their attributes, and the source of their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.errors import IRError
from irload.read import Weights
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


def test_a_size_that_is_too_large_is_a_warning() -> None:
    model, errors = faults(const_net('element_type="f32" shape="2" offset="0" size="24"'), FLOATS)
    assert not errors
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


def test_a_model_can_be_inspected_without_weights() -> None:
    text = const_net('element_type="f32" shape="100000" offset="0" size="400000"')
    model = irload.read_model(text.encode())
    assert model.outputs[0].shape == (100000,)
    with pytest.raises(IRError, match=r"no \.bin file"):
        irload.compile_model(model)()


def test_an_invalid_unused_constant_is_reported() -> None:
    dead = (
        '<layer id="7" name="dead" type="Const" version="opset1"><data element_type="f32" shape="9" offset="0" '
        'size="36"/><output><port id="0" precision="FP32"/></output></layer>'
    )
    _, errors = faults(const_net('element_type="f32" shape="1" offset="0" size="4"', extra=dead), FLOATS)
    assert len(errors) == 1
    assert "'dead' (id 7)" in errors[0]


@pytest.mark.parametrize("weights", [3, 3.5, object()])
def test_weights_that_are_neither_path_nor_bytes(weights: object) -> None:
    with pytest.raises(IRError, match="neither a path nor bytes"):
        Weights(weights)


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


def test_an_empty_constant_needs_no_weights() -> None:
    text = const_net('element_type="f32" shape="0,3" offset="0" size="1"')
    assert irload.compile_model(irload.read_model(text.encode()))()[0].shape == (0, 3)
