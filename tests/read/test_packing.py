"""Values in bytes: the examples of the format, every code of every type, constants read as OpenVINO reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core import element as et
from irload.core.element import ELEMENTS, ElementType
from irload.core.packing import NF4_TABLE, pack, unpack
from irload.errors import ReadError
from tests.harness.runtime import core
from tests.read.texts import const_net, runtime_model

EXAMPLES: list[tuple[ElementType, list[Any], str]] = [
    (et.i4, [1, 2, 3, -1, 7], "21f307"),
    (et.u4, [1, 2, 3, 15, 7], "21f307"),
    (et.f4e2m1, [0, 0.5, 1, -6, 3], "10f205"),
    (et.u1, [1, 0, 1, 1, 0, 0, 0, 1, 1, 0], "b180"),
    (et.u2, [0, 1, 2, 3, 3, 2, 1, 0, 1], "e41b01"),
    (et.u3, [0, 1, 2, 3, 4, 5, 6, 7], "1b1b0f"),
    (et.u6, [0, 1, 33, 63], "011f0b"),
    (et.nf4, [-1.0, 0.0, 1.0], "700f"),
    (et.f8e4m3, [1.0, 448.0], "387e"),
    (et.f8e5m2, [1.0, 57344.0], "3c7b"),
    (et.f8e8m0, [1.0, 2.0], "7f80"),
    (et.bf16, [1.0, -2.0], "803f00c0"),
    (et.f16, [1.0], "003c"),
    (et.boolean, [True, False], "0100"),
    (et.i16, [-2], "feff"),
    (et.u32, [1], "01000000"),
    (et.string, ["ab", "c", "", "zo"], "0400000000000000020000000300000003000000050000006162637a6f"),
]


@pytest.mark.parametrize(("element", "values", "text"), EXAMPLES, ids=[e[0].name for e in EXAMPLES])
def test_bytes_of_the_format(element: ElementType, values: list[Any], text: str) -> None:
    array = np.array(values, element.dtype)
    raw = bytes.fromhex(text)
    assert pack(array, element) == raw
    assert unpack(np.frombuffer(raw, np.uint8), element, array.shape).tolist() == array.tolist()


@pytest.mark.parametrize("element", [e for e in ELEMENTS if 0 < e.bits < 8], ids=str)
def test_scalars_are_arrays(element: ElementType) -> None:
    value = unpack(np.ones(element.bytes_for(1), np.uint8), element, ())
    assert isinstance(value, np.ndarray)
    assert value.shape == ()
    assert value.dtype == element.dtype


@pytest.mark.parametrize(("element", "count", "size"), [(et.u3, 9, 6), (et.u6, 5, 6), (et.u1, 9, 2), (et.i4, 3, 2)])
def test_groups_are_whole(element: ElementType, count: int, size: int) -> None:
    assert element.bytes_for(count) == size == len(pack(np.zeros(count, element.dtype), element))


NUMERIC = [e for e in ELEMENTS if e not in (et.string, et.dynamic)]


@pytest.mark.parametrize("element", NUMERIC, ids=str)
@pytest.mark.parametrize("count", [1, 7, 8, 13])
def test_random_bytes_read_as_the_runtime_reads_them(element: ElementType, count: int) -> None:
    rng = np.random.default_rng(count)
    size = element.bytes_for(count)
    raw = rng.integers(0, 2 if element is et.boolean else 256, size, np.uint8).tobytes()
    weights = b"\xff" + raw  # an odd offset: nothing is aligned
    text = const_net(f'element_type="{element}" shape="{count}" offset="1" size="{size}"', element.precision)
    ours = irload.compile_model(irload.read_model(text.encode(), weights))()[0]
    (constant,) = (n for n in runtime_model(text, weights).get_ops() if n.get_type_name() == "Constant")
    assert ours.dtype == element.dtype
    if element is et.boolean or element.bits >= 8:
        assert ours.tobytes() == constant.data.tobytes()
    else:
        np.testing.assert_array_equal(ours.astype(np.float32), as_floats(constant))


def as_floats(constant: Any) -> Any:
    """The constant converted by OpenVINO, which shows how it reads the bits."""
    model = ov.Model([ov.opset13.convert(constant, "f32")], [])
    return core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([])[0]


@pytest.mark.parametrize("element", NUMERIC, ids=str)
def test_packing_undoes_unpacking(element: ElementType) -> None:
    codes = np.resize(np.arange(256, dtype=np.uint8), 768)
    codes = codes & 1 if element is et.boolean else codes
    count = codes.size * 8 // element.bits
    values = unpack(codes, element, (count,))
    assert pack(values, element) == codes.tobytes()


def test_the_table_of_nf4_rises() -> None:
    assert np.all(np.diff(NF4_TABLE) > 0)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\1\0\0\0",
        np.array([2, 0, 1, 2], "<i4").tobytes(),  # the characters are missing
        np.array([3, 0, 1, 2], "<i4").tobytes() + b"ab",  # the count is not 2
        np.array([2, 0, 2, 1], "<i4").tobytes() + b"ab",  # ends that decrease
        np.array([2, -1, 1, 2], "<i4").tobytes() + b"ab",
    ],
)
def test_malformed_strings(raw: bytes) -> None:
    with pytest.raises(ReadError):
        unpack(np.frombuffer(raw, np.uint8), et.string, (2,))


def test_strings_that_are_no_utf8_survive() -> None:
    raw = np.array([1, 0, 2], "<i4").tobytes() + b"\xff\xfe"
    assert pack(unpack(np.frombuffer(raw, np.uint8), et.string, (1,)), et.string) == raw
