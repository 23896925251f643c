"""Pooling of regions, and the YOLO layers: hand-worked cases and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.remarks import collecting
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve

RAMP = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)  # value = 4 · row + column
POOL: dict[str, Any] = {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1.0}


def make(type: str, version: str = "opset15", **attributes: Any) -> Any:
    return resolve(type, version)[0](**attributes)


def roi(*values: float) -> Any:
    return np.array([values], np.float32)


@pytest.mark.parametrize(
    ("attributes", "corners", "expected"),
    [
        ({"sampling_ratio": 1}, (1, 1, 3, 3), 10),  # the middle (2, 2)
        ({"sampling_ratio": 1, "spatial_scale": 0.5}, (2, 2, 6, 6), 10),
        ({"sampling_ratio": 1}, (1, 1, 1, 1), 7.5),  # at least one cell large
        ({"sampling_ratio": 1, "aligned_mode": "half_pixel_for_nn"}, (1, 1, 1, 1), 2.5),
        ({"sampling_ratio": 1, "aligned_mode": "half_pixel"}, (1, 1, 1, 1), 5),
        ({"sampling_ratio": 2, "mode": "max"}, (0, 0, 2, 2), 7.5),
        ({"sampling_ratio": 0, "mode": "max"}, (0, 0, 2, 2), 7.5),  # adaptive: two samples per axis
        ({"sampling_ratio": 1}, (3.5, 3.5, 4.5, 4.5), 15),  # less than a cell outside: the value at the edge
        ({"sampling_ratio": 1}, (5, 5, 7, 7), 0),  # farther outside: 0
    ],
)
def test_roi_align(attributes: dict[str, Any], corners: tuple[float, ...], expected: float) -> None:
    output = make("ROIAlign", "opset9", **{**POOL, **attributes}).compute(RAMP, roi(*corners), np.array([0]))
    assert output.ravel() == pytest.approx([expected])


def test_the_maximum_of_a_region_starts_from_zero() -> None:
    op = make("ROIAlign", "opset9", **{**POOL, "sampling_ratio": 2, "mode": "max"})
    assert op.compute(-RAMP - 1, roi(0, 0, 2, 2), np.array([0])).tolist() == [[[[0]]]]


def test_rotation_by_a_right_angle_turns_the_bins() -> None:
    attributes: dict[str, Any] = {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1.0, "sampling_ratio": 1}
    regions = roi(2, 2, 2, 2, np.pi / 2)
    output = make("ROIAlignRotated", **attributes).compute(RAMP, regions, np.array([0]))[0, 0]
    back = make("ROIAlignRotated", **attributes, clockwise_mode=True).compute(RAMP, regions, np.array([0]))[0, 0]
    plain = make("ROIAlignRotated", **attributes).compute(RAMP, roi(2, 2, 2, 2, 0), np.array([0]))[0, 0]
    assert plain == pytest.approx(np.array([[5, 6], [9, 10]]))
    assert output == pytest.approx(np.rot90(plain, -1))
    assert back == pytest.approx(np.rot90(output, 2))


@pytest.mark.parametrize(
    ("side", "level"),
    [(56, 0), (111, 0), (113, 1), (225, 2), (450, 3), (5000, 3), (0, None)],
)
def test_features_come_from_the_level_of_the_region(side: float, level: int | None) -> None:
    op = make(
        "ExperimentalDetectronROIFeatureExtractor", output_size=1, sampling_ratio=1, pyramid_scales=(4, 8, 16, 32)
    )
    pyramid = [np.full((1, 2, 2, 2), k + 1, np.float32) for k in range(4)]
    features, rois = op.compute(roi(0, 0, side, side) * 0 + roi(-side / 2, -side / 2, side / 2, side / 2), *pyramid)
    assert rois.shape == (1, 4)
    assert features.ravel().tolist() == [0 if level is None else level + 1] * 2


@pytest.mark.parametrize(
    ("attributes", "region", "expected"),
    [
        ({"pooled_h": 2, "pooled_w": 2}, (0, 0, 0, 3, 3), [5, 7, 13, 15]),
        ({"pooled_h": 2, "pooled_w": 2}, (0, 0, 0, 2, 2), [5, 6, 9, 10]),  # bins share the middle row and column
        ({"pooled_h": 1, "pooled_w": 1}, (0, 0.5, 0, 0.5, 0), [1]),  # halves are rounded away from zero
        ({"pooled_h": 1, "pooled_w": 1}, (0, 9, 9, 9, 9), [0]),  # no cells
        ({"pooled_h": 1, "pooled_w": 1, "method": "bilinear"}, (0, 0, 0, 1, 1), [7.5]),
        ({"pooled_h": 2, "pooled_w": 2, "method": "bilinear"}, (0, 0, 0, 1, 1), [0, 3, 12, 15]),
        ({"pooled_h": 1, "pooled_w": 1, "method": "bilinear"}, (0, 1, 1, 2, 2), [0]),
        ({"output_roi": (1, 1)}, (-1, 0, 0, 3, 3), [0]),  # batch element −1 ends the list
        ({"output_roi": (1, 1)}, (-1.5, 0, 0, 3, 3), [0]),  # truncated to −1
    ],
)
def test_roi_pooling(attributes: dict[str, Any], region: tuple[float, ...], expected: list[float]) -> None:
    output = make("ROIPooling", "opset2", spatial_scale=1.0, **attributes).compute(RAMP, roi(*region))
    assert output.ravel().tolist() == expected


def test_position_sensitive_bins_read_their_own_channels() -> None:
    data = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1) * np.ones((1, 1, 4, 4), np.float32)
    average = make("PSROIPooling", "opset1", output_dim=1, group_size=2, spatial_scale=1.0, mode="average")
    assert average.compute(data, roi(0, 0, 0, 3, 3)).ravel().tolist() == [0, 1, 2, 3]
    bilinear = make(
        *("PSROIPooling", "opset1"),
        output_dim=1,
        group_size=2,
        spatial_scale=1.0,
        mode="bilinear",
        spatial_bins_x=2,
        spatial_bins_y=2,
    )
    assert bilinear.compute(data, roi(0, 0, 0, 1, 1)).ravel().tolist() == [1.5] * 4


def test_bins_of_regions_that_are_not_regular() -> None:
    data = np.arange(1, 65, dtype=np.float32).reshape(1, 4, 4, 4)  # channel · 16 + row · 4 + column + 1
    pool = make("PSROIPooling", output_dim=1, group_size=2, spatial_scale=0.7, mode="average")
    # From 2.1 back to 1.4: only the last of the bins includes a cell, (1, 1) of channel 3.
    assert pool.compute(data, roi(0, 3, 3, 1, 1)).ravel().tolist() == [0, 0, 0, 54]
    with np.errstate(invalid="ignore"):
        assert not pool.compute(data, roi(0, np.nan, np.nan, 3, 3)).any()


def test_offsets_move_bins_by_parts_of_the_region() -> None:
    op = make("DeformablePSROIPooling", "opset1", output_dim=1, spatial_scale=1.0, trans_std=0.5)
    region = roi(0, 1, 1, 1, 1)  # from (0.5, 0.5), one cell large
    assert op.compute(RAMP, region).item() == 2.5
    moved = op.compute(RAMP, region, np.array([1, 2], np.float32).reshape(1, 2, 1, 1))
    assert moved.item() == 2.5 + 0.5 * 1 + 4 * 0.5 * 2


def test_region_yolo() -> None:
    data = np.zeros((1, 7, 1, 1), np.float32)
    data[0, 5:, 0, 0] = [0, np.log(3)]
    shared: dict[str, Any] = {"classes": 2, "coords": 4, "num": 1, "axis": 1, "end_axis": 3}
    softmax = make("RegionYolo", "opset1", do_softmax=True, **shared).compute(data)
    sigmoid = make("RegionYolo", "opset1", mask=(0,), **shared).compute(data)
    assert softmax == pytest.approx(np.array([[0.5, 0.5, 0, 0, 0.5, 0.25, 0.75]]))
    assert sigmoid.ravel() == pytest.approx([0.5, 0.5, 0, 0, 0.5, 0.5, 0.75])


@pytest.mark.parametrize("softmax", [True, False])
def test_region_yolo_of_more_channels_than_regions(softmax: bool) -> None:
    """The regions of both batches are the first 14 of 18 elements, as in OpenVINO."""
    op = make("RegionYolo", "opset1", classes=2, coords=4, num=1, mask=(0,), axis=0, end_axis=3, do_softmax=softmax)
    data = np.random.default_rng(0).standard_normal((2, 9, 1, 1)).astype(np.float32)
    with collecting() as remarks:
        inferred = op.infer(TensorType(et.f32, Shape(2, 9, 1, 1)))
    assert any("must have 7 channels" in text for text in remarks)
    output = op.compute(data)
    assert inferred.shape == Shape(*output.shape) == (Shape(18) if softmax else Shape(2, 7, 1, 1))
    regions = op.compute(data.ravel()[:14].reshape(2, 7, 1, 1))
    np.testing.assert_array_equal(output.ravel()[:14], regions.ravel())
    if softmax:
        np.testing.assert_array_equal(output[14:], data.ravel()[14:])


def test_reorg_yolo_is_its_own_order() -> None:
    data = np.arange(16, dtype=np.int32).reshape(1, 4, 2, 2)
    output = make("ReorgYolo", "opset1", stride=(2,)).compute(data)
    assert output.shape == (1, 16, 1, 1)
    assert output.ravel().tolist() == [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]


@pytest.mark.parametrize(
    ("type", "attributes", "shapes"),
    [
        ("ROIAlign", POOL, [Shape(1, 1, 4), Shape(2, 4), Shape(2)]),
        ("ROIAlign", POOL, [Shape(1, 1, 4, 4), Shape(2, 5), Shape(2)]),
        ("ROIAlign", POOL, [Shape(1, 1, 4, 4), Shape(2, 4), Shape(3)]),
        ("ROIAlignRotated", POOL, [Shape(1, 1, 4, 4), Shape(2, 4), Shape(2)]),
        ("ROIPooling", POOL, [Shape(1, 1, 4, 4), Shape(2, 4)]),
        ("PSROIPooling", {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0, "mode": "average"},
         [Shape(1, 4, 4, 4), Shape(2, 5)]),
        ("DeformablePSROIPooling", {"output_dim": 2}, [Shape(1, 4, 4, 4), Shape(2, 5)]),
        ("DeformablePSROIPooling", {"output_dim": 2}, [Shape(1, 2, 4, 4), Shape(2, 5), Shape(2, 3, 1, 1)]),
        ("RegionYolo", {"num": 1, "classes": 1, "coords": 4, "do_softmax": True}, [Shape(1, 5, 4, 4)]),
        ("RegionYolo", {"num": 1, "classes": 1, "coords": 4, "do_softmax": True, "axis": 4}, [Shape(1, 6, 4, 4)]),
        ("ReorgYolo", {"stride": (2,)}, [Shape(1, 2, 4, 4)]),
        ("ReorgYolo", {"stride": (2,)}, [Shape(1, 4, 3, 4)]),
        ("ReorgYolo", {"stride": (2,)}, [Shape(1, 4, 4)]),
    ],
)  # fmt: skip
def test_shape_faults(type: str, attributes: dict[str, Any], shapes: list[Shape]) -> None:
    elements = [et.f32, et.f32, et.i64 if type.startswith("ROIAlign") else et.f32]
    with pytest.raises(ShapeMismatch):
        make(type, **attributes).infer(*(TensorType(e, s) for e, s in zip(elements, shapes, strict=False)))


@pytest.mark.parametrize(
    ("type", "attributes"),
    [
        ("ROIAlign", {**POOL, "pooled_h": -1}),
        ("ROIPooling", {"spatial_scale": 0.0, "pooled_h": 1, "pooled_w": 1}),
        ("ROIPooling", {"spatial_scale": 1.0, "pooled_h": 1}),
        ("ROIPooling", {"spatial_scale": 1.0, "output_roi": (1,)}),
        ("PSROIPooling", {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0, "mode": "bilinear"}),
        ("ReorgYolo", {"stride": (1, 2)}),
    ],
)
def test_invalid_attributes(type: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        make(type, **attributes)


def test_batch_elements_that_are_not_there() -> None:
    with pytest.raises(ExecutionError):
        make("ROIAlign", **POOL).compute(RAMP, roi(0, 0, 1, 1), np.array([1]))
    with pytest.raises(ExecutionError):
        make("ROIPooling", **POOL).compute(RAMP, roi(2, 0, 0, 1, 1))


def test_element_types() -> None:
    data, rois = TensorType(et.f32, Shape(1, 1, 4, 4)), TensorType(et.f16, Shape(2, 4))
    with pytest.raises(TypeMismatch):
        make("ROIAlign", **POOL).infer(data, rois, TensorType(et.i32, Shape(2)))
