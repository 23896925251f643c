"""Convert: values out of range of the new type, and types narrower than a byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.element import ELEMENTS
from irload.errors import ExecutionError, TypeMismatch
from tests.harness.direct import computed, operation

INF, NAN = float("inf"), float("nan")
MIN32, MIN64 = -(2**31), -(2**63)


@pytest.mark.parametrize(
    ("source", "to", "x", "expected"),
    [
        (et.f32, et.i32, [1.9, -1.9, NAN, INF, -INF, 3e9], [1, -1, MIN32, MIN32, MIN32, MIN32]),
        (et.f32, et.i64, [1e10, NAN, -INF], [10_000_000_000, MIN64, MIN64]),
        (et.f64, et.i64, [2.0**53 + 2, 1e19], [2**53 + 2, MIN64]),
        (et.f32, et.u8, [300.7, -1.5, NAN, INF, 1e10], [44, 255, 0, 0, 0]),
        (et.f32, et.i8, [127.9, 128, -129], [127, -128, 127]),
        (et.f32, et.u32, [3e9, -1, 4294967296.0], [3_000_000_000, 4294967295, 0]),
        (et.f32, et.u64, [1e19, -1], [9999999980506447872, 2**64 - 1]),
        (et.f16, et.i32, [INF, -NAN, 65504], [MIN32, MIN32, 65504]),
        (et.i32, et.u8, [300, -1], [44, 255]),
        (et.i64, et.i32, [2**31, -(2**31) - 1], [MIN32, 2**31 - 1]),
        (et.f32, et.boolean, [0, -0.0, 0.5, NAN, -3], [False, False, True, True, True]),
        (et.boolean, et.f32, [True, False], [1, 0]),
        (et.f32, et.u4, [15.9, 16, 300.7, -1], [15, 0, 12, 15]),
        (et.f32, et.i4, [7.9, 8, -9, NAN], [7, -8, 7, 0]),
        (et.i32, et.u2, [3, 4, -1], [3, 0, 3]),
        (et.i32, et.u6, [63, 64, -1], [63, 0, 63]),
        (et.i4, et.i32, [-8, 7], [-8, 7]),
        (et.f32, et.f16, [65536, 1e-8, 2049], [INF, 0, 2048]),
        (et.f32, et.bf16, [0.4, 257], [0.400390625, 256]),
        (et.f32, et.f8e4m3, [500, -1e9, 460], [NAN, NAN, 448]),
        (et.f32, et.f8e5m2, [1e6, 9, 11], [INF, 8, 12]),
        (et.f32, et.f4e2m1, [2.5, -2.7, 100, 0.25, 0.75], [2, -3, 6, 0, 1]),
        (et.f32, et.f8e8m0, [3, 6, 0, -4, 3e38, 0.75, 2.9], [2, 8, 2.0**-127, 2.0**-127, 2.0**127, 0.5, 2]),
        (et.f32, et.nf4, [0.4, -0.5, 9, -9], [0.44070983, -0.52507305, 1, -1]),
    ],
)
def test_values(source: et.ElementType, to: et.ElementType, x: list[Any], expected: list[Any]) -> None:
    (output,) = computed("Convert", "opset1", (x, source), destination_type=to)
    assert output.dtype == to.dtype
    wide = output.astype(np.float64) if to.is_float else output
    np.testing.assert_array_equal(wide, np.array(expected, np.float32 if to is et.nf4 else wide.dtype))


NUMBERS = [e for e in ELEMENTS if e is not et.string and e is not et.dynamic]


@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("source", NUMBERS)
def test_one_is_one_in_every_type(source: et.ElementType, to: et.ElementType) -> None:
    (output,) = computed("Convert", "opset1", ([1, 1], source), destination_type=to)
    assert output.astype(np.float32).tolist() == [1, 1]


def test_convert_like_takes_the_type_of_the_other() -> None:
    (output,) = computed("ConvertLike", "opset1", ([7.9, 9, -9], et.f32), ([0], et.i4))
    assert output.tolist() == [7, -7, 7]


def test_strings_do_not_convert() -> None:
    with pytest.raises(TypeMismatch, match="strings"):
        computed("Convert", "opset1", (["1"], et.string), destination_type=et.i32)
    with pytest.raises(TypeMismatch, match="strings"):
        computed("ConvertLike", "opset1", (["1"], et.string), ([0], et.f16))


def test_a_missing_destination_is_a_warning_and_fails_when_run() -> None:
    op, notes = type(operation("Convert", "opset1")).parse({})
    assert any("destination_type" in note for note in notes)
    with pytest.raises(ExecutionError, match="destination_type"):
        op.compute(np.zeros(2))
