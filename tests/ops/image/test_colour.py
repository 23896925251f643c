"""Colour conversions and GridSample: hand-worked pixels, padding, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.ops.image import colour
from irload.ops.registry import resolve

GREY = [[16, 16], [235, 235], [128, 128]]  # black, white, and u, v without colour


def image(type: str, *planes: Any) -> Any:
    return resolve(type, "opset8")[0]().compute(*(np.asarray(p) for p in planes))


def test_limited_range_reaches_black_and_white() -> None:
    plane = np.array(GREY, np.uint8).reshape(1, 3, 2, 1)
    assert image("NV12toRGB", plane)[0, :, 0].tolist() == [[0, 0, 0], [255, 255, 255]]
    assert image("I420toBGR", plane)[0, :, 0].tolist() == [[0, 0, 0], [255, 255, 255]]


@pytest.mark.parametrize(
    ("type", "chroma", "expected"),
    [  # luma 1.164 · 84 = 97.776; red + 1.596 · 12, green − .391 · 22 − .813 · 12, blue + 2.018 · 22
        ("NV12toRGB", [[[[[150, 140]]]]], [116.928, 79.418, 142.172]),
        ("NV12toBGR", [[[[[150, 140]]]]], [142.172, 79.418, 116.928]),
        ("I420toRGB", [[[[[150]]]], [[[[140]]]]], [116.928, 79.418, 142.172]),
    ],
)
def test_colours(type: str, chroma: Any, expected: list[float]) -> None:
    y = np.full((1, 2, 2, 1), 100, np.float32)
    output = image(type, y, *(np.array(c, np.float32) for c in chroma))
    np.testing.assert_allclose(output, np.broadcast_to(expected, (1, 2, 2, 3)), rtol=1e-5)


def test_blocks_of_rows_are_converted_like_the_whole_image(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = np.random.default_rng(1).integers(0, 256, (2, 15, 4, 1)).astype(np.uint8)
    whole = image("NV12toRGB", plane)
    monkeypatch.setattr(colour, "TOGETHER", 32)
    assert np.array_equal(image("NV12toRGB", plane), whole)


@pytest.mark.parametrize(
    ("type", "version", "shapes", "error"),
    [
        ("NV12toRGB", "opset8", [Shape(1, 4, 2, 1)], ShapeMismatch),  # not a multiple of 3
        ("NV12toRGB", "opset8", [Shape(1, 3, 3, 1)], ShapeMismatch),
        ("NV12toRGB", "opset8", [Shape(1, 3, 2)], ShapeMismatch),
        ("NV12toRGB", "opset8", [Shape(1, 3, 2, 3)], ShapeMismatch),
        ("NV12toRGB", "opset8", [Shape(1, 4, 4, 1), Shape(1, 2, 4, 2)], ShapeMismatch),
        ("I420toRGB", "opset8", [Shape(1, 4, 4, 1), Shape(1, 2, 2, 1)], ShapeMismatch),
        ("I420toRGB", "opset8", [Shape(1, 4, 4, 1), Shape(1, 2, 2, 1), Shape(2, 2, 2, 1)], ShapeMismatch),
        ("RGBtoNV12", "opset17", [Shape(1, 3, 4, 3)], ShapeMismatch),
        ("RGBtoNV12", "opset17", [Shape(1, 4, 4, 1)], ShapeMismatch),
    ],
)
def test_shapes_that_do_not_fit(type: str, version: str, shapes: list[Shape], error: type[IRError]) -> None:
    op: Any = resolve(type, version)[0]()
    with pytest.raises(error):
        op.infer(*(TensorType(et.u8, s) for s in shapes))


@pytest.mark.parametrize("type", ["NV12toRGB", "RGBtoNV12"])
def test_images_are_bytes_or_floats(type: str) -> None:
    op: Any = resolve(type, "opset17")[0]()
    with pytest.raises(TypeMismatch):
        op.infer(TensorType(et.i8, Shape.unranked()))


# -- GridSample


def sampled(x: list[float], data: Any = (0.0, 1.0, 2.0, 3.0), **attributes: Any) -> Any:
    """A row of pixels, sampled at these normalized x coordinates."""
    op: Any = resolve("GridSample", "opset9")[0](**attributes)
    row = np.asarray(data).reshape(1, 1, 1, -1)
    grid = np.array([[[[at, 0] for at in x]]], np.float32)
    return op.compute(row, grid)[0, 0, 0].tolist()


@pytest.mark.parametrize(("aligned", "expected"), [(True, [0, 1.5, 3]), (False, [0, 1.5, 1.5])])
def test_outermost_points(aligned: bool, expected: list[float]) -> None:
    assert sampled([-1, 0, 1], align_corners=aligned, mode="bilinear") == expected


def test_halves_go_to_the_even_pixel() -> None:
    at = [(k + 0.5) / 1.5 - 1 for k in range(3)]  # pixel k + .5 with aligned corners
    assert sampled(at, align_corners=True, mode="nearest") == [0, 2, 2]


@pytest.mark.parametrize(
    ("padding", "aligned", "expected"),
    [  # pixels −2, −1, 4 and 5 of 4
        ("zeros", True, [0, 0, 0, 0]),
        ("border", True, [10, 10, 40, 40]),
        ("reflection", True, [30, 20, 30, 20]),
        ("reflection", False, [20, 10, 40, 30]),
    ],
)
def test_padding(padding: str, aligned: bool, expected: list[int]) -> None:
    pixels = np.array([-2, -1, 4, 5])
    x = pixels / 1.5 - 1 if aligned else (2 * pixels + 1) / 4 - 1
    data = np.array([10, 20, 30, 40], np.int32)
    assert sampled(x.tolist(), data, padding_mode=padding, align_corners=aligned, mode="nearest") == expected


def test_integers_are_truncated() -> None:
    assert sampled([0], np.array([1, 2], np.int32)) == [1]


def test_points_that_are_no_numbers_raise_nothing() -> None:
    with np.errstate(invalid="ignore"):
        assert len(sampled([np.nan, np.inf, -np.inf, 1e30], padding_mode="reflection", mode="nearest")) == 4


def test_points_at_infinity_are_beyond_the_border() -> None:
    far = [np.inf, -np.inf, 1e30, -1e30]
    assert sampled(far, padding_mode="border", mode="nearest") == [3, 0, 3, 0]
    assert sampled(far, padding_mode="zeros", mode="nearest") == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("data", "grid", "error"),
    [
        (Shape(1, 1, 2), Shape(1, 2, 2, 2), ShapeMismatch),
        (Shape(1, 1, 2, 2), Shape(1, 2, 2, 3), ShapeMismatch),
        (Shape(1, 1, 2, 2), Shape(2, 2, 2, 2), ShapeMismatch),
    ],
)
def test_grids_that_do_not_fit(data: Shape, grid: Shape, error: type[IRError]) -> None:
    op: Any = resolve("GridSample", "opset9")[0]()
    with pytest.raises(error):
        op.infer(TensorType(et.f32, data), TensorType(et.f32, grid))
