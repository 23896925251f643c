"""Interpolate: hand-worked coordinates, ties, filters and sizes, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve

RAMP = np.arange(8, dtype=np.float32)


def interpolate(**attributes: Any) -> Any:
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes", **attributes}
    return resolve("Interpolate", "opset11")[0](**attributes)


def resized(size: int, data: Any = RAMP, **attributes: Any) -> Any:
    return interpolate(**attributes).compute(np.asarray(data), np.array([size])).tolist()


@pytest.mark.parametrize(
    ("nearest_mode", "expected"),
    [  # 4 → 8 by half_pixel: coordinates −.25, .25, .75, 1.25 …; 8 → 4: .5, 2.5, 4.5, 6.5
        ("round_prefer_floor", [0, 2, 4, 6]),
        ("round_prefer_ceil", [1, 3, 5, 7]),
        ("floor", [0, 2, 4, 6]),
        ("ceil", [1, 3, 5, 7]),
        ("simple", [1, 3, 5, 7]),
    ],
)
def test_ties_of_nearest(nearest_mode: str, expected: list[int]) -> None:
    assert resized(4, nearest_mode=nearest_mode) == expected


def test_nearest_mode_simple_truncates_when_enlarging() -> None:
    attributes = {"nearest_mode": "simple", "coordinate_transformation_mode": "asymmetric"}
    assert resized(5, [10.0, 20.0, 30.0], **attributes) == [10, 10, 20, 20, 30]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [  # the linear interpolation of a ramp is the coordinate, clamped to the data
        ("half_pixel", [0.0, 0.625, 1.375, 2.0]),
        ("asymmetric", [0.0, 0.75, 1.5, 2.0]),
        ("tf_half_pixel_for_nn", [0.375, 1.125, 1.875, 2.0]),
        ("align_corners", [0.0, 2 / 3, 4 / 3, 2.0]),
    ],
)
def test_coordinates(mode: str, expected: list[float]) -> None:
    output = interpolate(mode="linear_onnx", coordinate_transformation_mode=mode).compute(RAMP[:3], np.array([4]))
    np.testing.assert_allclose(output, expected, rtol=1e-6)


@pytest.mark.parametrize(("mode", "expected"), [("half_pixel", 3.5), ("pytorch_half_pixel", 0), ("align_corners", 0)])
def test_one_element_is_left(mode: str, expected: float) -> None:
    assert resized(1, mode="linear_onnx", coordinate_transformation_mode=mode) == [expected]


@pytest.mark.parametrize(
    ("antialias", "expected"), [(True, [1.1052632, 3.5, 5.894737]), (False, [0.8333333, 3.5, 6.1666667])]
)
def test_linear_widens_its_triangle_with_antialias(antialias: bool, expected: list[float]) -> None:
    np.testing.assert_allclose(resized(3, mode="linear", antialias=antialias), expected, rtol=1e-5)


def test_scales_decide_the_coordinates_and_not_the_quotient_of_sizes() -> None:
    op = interpolate(shape_calculation_mode="scales", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    assert op.compute(RAMP[:3], np.array([1.9], np.float32)).tolist() == [0, 0, 1, 1, 2]  # 3 · 1.9 = 5.7


@pytest.mark.parametrize(
    ("size", "scale", "expected"),
    [(10, 0.6999995, 7), (10, 0.699995, 6), (100, 0.4999995, 50), (3, 1 / 3, 1), (7, 1.0, 7)],
)
def test_sizes_of_scaled_axes(size: int, scale: float, expected: int) -> None:
    scales = TensorType.of(np.array([scale], np.float32))
    inferred = interpolate(shape_calculation_mode="scales").infer(TensorType(et.f32, Shape(size)), scales)
    assert inferred.shape == Shape(expected)


def test_pads_are_zeros_that_are_resized_too() -> None:
    assert resized(5, [3.0, 4.0, 5.0], pads_begin=(1,), pads_end=(1,)) == [0, 3, 4, 5, 0]


def test_pillow_resizes_one_axis_and_pads() -> None:
    op = interpolate(mode="bilinear_pillow", pads_begin=(0, 1), pads_end=(0, 1))
    output = op.compute(np.array([[4.0, 8]], np.float32), np.array([2]), np.array([1]))
    # 0 4 8 0, halved: a triangle of four elements around 1, with weights 3/8, 3/8, 1/8 (and 1/8 outside).
    assert output.tolist() == [pytest.approx([(3 * 4 + 8) / 7, (3 * 8 + 4) / 7])]


def test_bicubic_pillow_has_the_coefficient_of_pillow() -> None:
    op = interpolate(mode="bicubic_pillow", cube_coeff=-0.75)
    # As torch.nn.functional.interpolate(x, (1, 4), mode="bicubic", antialias=True), whose coefficient is -1/2:
    # weights 111/128 and -9/128 at the distances 1/4 and 5/4, 111/128 and 29/128 at 1/4 and 3/4.
    output = op.compute(np.array([[0.0, 8]], np.float32), np.array([1, 4]))
    assert output.tolist() == [pytest.approx([-12 / 17, 58 / 35, 8 - 58 / 35, 8 + 12 / 17])]


def test_pillow_rounds_integers_after_each_pass() -> None:
    data = np.array([[0, 1], [1, 1]], np.uint8)
    output = interpolate(mode="bilinear_pillow").compute(data, np.array([1, 1]))
    assert output.tolist() == [[1]]  # width first: .5 → 1 and 1, then 1; the mean of all is .75
    data = np.array([[0, 1], [0, 0]], np.uint8)
    assert interpolate(mode="bilinear_pillow").compute(data, np.array([1, 1])).tolist() == [
        [1]
    ]  # the mean of all, .25, would be rounded to 0


@pytest.mark.parametrize(
    ("dtype", "low", "middle", "high"), [(np.uint8, 0, [57, 197], 255), (np.int8, -128, [-70, 69], 127)]
)
def test_cubic_clamps_integers_to_their_type(dtype: Any, low: int, middle: list[int], high: int) -> None:
    output = interpolate(mode="cubic").compute(np.array([low] * 3 + [high] * 3, dtype), np.array([12]))
    assert output.tolist() == [low] * 5 + middle + [high] * 5  # two overshoots of f32 on each side


@pytest.mark.parametrize(("dtype", "expected"), [(np.float32, 0.5), (np.int8, 1)])
def test_linear_rounds_integers_away_from_zero(dtype: Any, expected: float) -> None:
    assert resized(1, np.array([0, 1], dtype), mode="linear") == [expected]


@pytest.mark.parametrize(
    ("attributes", "rank", "axes", "coordinates", "mode"),
    [
        ({"mode": "linear"}, 4, (2, 3), "align_corners", "linear_onnx"),
        ({"mode": "linear", "align_corners": False}, 4, (2, 3), "asymmetric", "linear_onnx"),
        ({"mode": "linear", "align_corners": False}, 4, (3,), "half_pixel", "linear_onnx"),
        ({"mode": "linear", "align_corners": False, "pads_end": (1,)}, 4, (3,), "asymmetric", "linear_onnx"),
        ({"mode": "linear", "align_corners": False}, 5, (2, 3, 4), "half_pixel", "linear"),
        ({"mode": "cubic", "align_corners": False}, 4, (3,), "asymmetric", "cubic"),
    ],
)
def test_first_version_in_terms_of_the_later(
    attributes: dict[str, Any], rank: int, axes: tuple[int, ...], coordinates: str, mode: str
) -> None:
    reached = resolve("Interpolate", "opset1")[0](axes=axes, **attributes).sampling(rank)
    assert (reached.coordinates, reached.mode, reached.nearest) == (coordinates, mode, "simple")


@pytest.mark.parametrize(
    ("data", "sizes", "expected"),
    [
        (Shape(1, 3, None, None), TensorType.of(np.array([4, 5])), Shape(1, 3, 4, 5)),
        (Shape(1, 3, None, None), TensorType(et.i64, Shape(2)), Shape(1, 3, None, None)),
        (Shape.unranked(), TensorType.of(np.array([4, 5])), Shape.unranked()),
    ],
)
def test_inferred_shapes(data: Shape, sizes: TensorType, expected: Shape) -> None:
    assert interpolate().infer(TensorType(et.f32, data), sizes, TensorType.of(np.array([2, 3]))).shape == expected


@pytest.mark.parametrize(
    ("attributes", "data", "target", "axes", "error"),
    [
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3]), None, ShapeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3, -3]), None, ShapeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([[3, 3]]), None, ShapeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3]), np.array([-1]), ShapeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3]), np.array([2]), ShapeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3, 3]), np.array([1, 1]), ShapeMismatch),
        ({}, TensorType(et.f32, Shape(0, 2)), np.array([3, 3]), None, ShapeMismatch),
        ({}, TensorType(et.u16, Shape(2, 2)), np.array([3, 3]), None, TypeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3.0, 3.0]), None, TypeMismatch),
        ({}, TensorType(et.f32, Shape(2, 2)), np.array([3]), np.array([1.0]), TypeMismatch),
        ({"mode": "bicubic_pillow"}, TensorType(et.f32, Shape(2, 2, 2)), np.array([3, 3, 3]), None, ShapeMismatch),
        (
            {"shape_calculation_mode": "scales"},
            TensorType(et.f32, Shape(2)),
            np.array([np.nan], np.float32),
            None,
            ShapeMismatch,
        ),
    ],
)
def test_invalid_inputs_are_rejected(
    attributes: dict[str, Any], data: TensorType, target: Any, axes: Any, error: type[IRError]
) -> None:
    inputs = [data, TensorType.of(target)] + ([] if axes is None else [TensorType.of(axes)])
    with pytest.raises(error):
        interpolate(**attributes).infer(*inputs)


def test_pads_are_not_negative() -> None:
    with pytest.raises(AttributeInvalid):
        interpolate(pads_begin=(-1,))


def test_a_scalar_has_no_axis_to_resize() -> None:
    assert interpolate(pads_end=(2,)).compute(np.array(5.0), np.zeros(0, int)).tolist() == 5
