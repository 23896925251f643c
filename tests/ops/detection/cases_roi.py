"""Random cases of the pooling of regions of interest, and of the YOLO layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape
from tests.ops.detection.material import random_boxes

FLOATS = (et.f32, et.f32, et.f16, et.bf16)


def some(rng: Random, **attributes: Any) -> dict[str, Any]:
    """A random selection of the attributes."""
    return {name: value for name, value in attributes.items() if rng.random() < 0.7}


def regions(rng: Random, count: int, batches: int, element: ElementType, scale: float) -> Array:
    """Regions (batch element, x1, y1, x2, y2)."""
    batch = rng.integers(0, batches, (count, 1))
    return np.concatenate([batch, random_boxes(rng, (count,), scale=scale)], -1).astype(element.dtype)


@cases("ROIAlign", "opset3", "opset9")
def roi_align(rng: Random, version: str) -> Case:
    element = pick(rng, FLOATS)
    shape = (*random_shape(rng, 2, 1, 3), *random_shape(rng, 2, 1, 9))
    count = int(rng.integers(1, 5))
    make = pick(rng, (param, const))
    inputs = [
        param(random_array(rng, shape, element), element),
        param(random_boxes(rng, (count,), element, scale=pick(rng, [6, 16])), element),
        make(rng.integers(0, shape[0], count), pick(rng, INDICES)),
    ]
    attributes = {
        "pooled_h": int(rng.integers(1, 4)),
        "pooled_w": int(rng.integers(1, 4)),
        "spatial_scale": pick(rng, [1.0, 0.5]),
        "sampling_ratio": int(rng.integers(0, 4)),
        "mode": pick(rng, ["avg", "max"]),
    }
    if version == "opset9" and rng.random() < 0.8:
        attributes["aligned_mode"] = pick(rng, ["asymmetric", "half_pixel_for_nn", "half_pixel"])
    return Case("ROIAlign", version, inputs, attributes, oracle="cpu" if element.is_low_precision else "both")


@cases("ROIAlignRotated", "opset15")
def roi_align_rotated(rng: Random, version: str) -> Case:
    element = et.f32  # OpenVINO crashes on narrower ones: see deviations
    shape = (*random_shape(rng, 2, 1, 3), *random_shape(rng, 2, 1, 9))
    count = int(rng.integers(1, 5))
    boxes = random_boxes(rng, (count,), center=True, scale=8)
    boxes = np.concatenate([boxes, rng.uniform(-4, 4, (count, 1))], -1).astype(element.dtype)
    inputs = [
        param(random_array(rng, shape, element), element),
        param(boxes, element),
        pick(rng, (param, const))(rng.integers(0, shape[0], count), pick(rng, INDICES)),
    ]
    attributes = {
        "pooled_h": int(rng.integers(1, 4)),
        "pooled_w": int(rng.integers(1, 4)),
        "spatial_scale": pick(rng, [1.0, 0.5]),
        "sampling_ratio": int(rng.integers(0, 4)),
        **some(rng, clockwise_mode=pick(rng, [True, False])),
    }
    return Case("ROIAlignRotated", version, inputs, attributes, oracle="cpu")


@cases("ExperimentalDetectronROIFeatureExtractor", "opset6")
def roi_features(rng: Random, version: str) -> Case:
    element = pick(rng, FLOATS)
    levels, channels, count = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    pyramid = [(1, channels, *random_shape(rng, 2, 2, 9)) for _ in range(levels)]
    rois = random_boxes(rng, (count,), element, scale=pick(rng, [40, 400, 1500]))
    if count > 2:
        rois[1, 2:] = rois[1, :2]  # no area
    attributes = {
        "output_size": int(rng.integers(1, 4)),
        "sampling_ratio": int(rng.integers(0, 3)),
        "pyramid_scales": [4 * 2**k for k in range(levels)],
        **some(rng, aligned=pick(rng, [True, False])),
    }
    inputs = [param(rois, element), *(param(random_array(rng, s, element), element) for s in pyramid)]
    return Case("ExperimentalDetectronROIFeatureExtractor", version, inputs, attributes, 2)


@cases("ROIPooling", "opset1", "opset2")
def roi_pooling(rng: Random, version: str) -> Case:
    element = pick(rng, FLOATS)
    shape = (*random_shape(rng, 2, 1, 3), *random_shape(rng, 2, 1, 9))
    method = pick(rng, ["max", "bilinear"])
    rois = regions(rng, int(rng.integers(1, 5)), shape[0], element, 1 if method == "bilinear" else pick(rng, [6, 16]))
    attributes: dict[str, Any] = {"spatial_scale": pick(rng, [1.0, 0.53]), **some(rng, method=method)}
    if "method" not in attributes:
        rois[:, 1:] *= 8
    sizes = [int(n) for n in rng.integers(1, 4, 2)]
    size_attributes = {"pooled_h": sizes[0], "pooled_w": sizes[1]}
    attributes |= pick(
        rng, [size_attributes, size_attributes, {"output_size": sizes}, {"output_roi": sizes, "output_size": [7, 7]}]
    )
    if "pooled_h" in attributes and rng.random() < 0.4:
        attributes |= {"output_roi": [7, 7]}
    inputs = [param(random_array(rng, shape, element), element), param(rois, element)]
    return Case("ROIPooling", version, inputs, attributes, oracle="cpu" if element.is_low_precision else "both")


@cases("PSROIPooling", "opset1")
def psroi_pooling(rng: Random, version: str) -> Case:
    element = pick(rng, FLOATS)
    output_dim, group = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    mode = pick(rng, ["average", "bilinear"])
    bins = [int(n) for n in rng.integers(1, 4, 2)]
    parts = group**2 if mode == "average" else bins[0] * bins[1]
    shape = (int(rng.integers(1, 3)), parts * output_dim, *random_shape(rng, 2, 2, 9))
    scale = 1 if mode == "bilinear" else 7
    rois = regions(rng, int(rng.integers(1, 5)), shape[0], element, scale)
    attributes = {
        "output_dim": output_dim,
        "group_size": group,
        "spatial_scale": pick(rng, [1.0, 0.53]),
        "mode": mode,
        **({"spatial_bins_x": bins[0], "spatial_bins_y": bins[1]} if mode == "bilinear" else {}),
    }
    inputs = [param(random_array(rng, shape, element), element), param(rois, element)]
    return Case("PSROIPooling", version, inputs, attributes, oracle="cpu" if element.is_low_precision else "both")


@cases("DeformablePSROIPooling", "opset1")
def deformable(rng: Random, version: str) -> Case:
    element = pick(rng, FLOATS)
    classes, each, group = int(rng.integers(1, 3)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    part = int(rng.integers(1, 4))
    shape = (int(rng.integers(1, 3)), classes * each * group**2, *random_shape(rng, 2, 2, 9))
    count = int(rng.integers(1, 5))
    inputs = [
        param(random_array(rng, shape, element), element),
        param(regions(rng, count, shape[0], element, 7), element),
    ]
    if rng.random() < 0.6:
        inputs.append(param(random_array(rng, (count, 2 * classes, part, part), element, -1, 1), element))
    attributes = {
        "output_dim": classes * each,
        "group_size": group,
        "spatial_scale": pick(rng, [1.0, 0.53]),
        "part_size": part,
        **some(
            rng,
            mode="bilinear_deformable",
            spatial_bins_x=int(rng.integers(1, 4)),
            spatial_bins_y=int(rng.integers(1, 4)),
            trans_std=pick(rng, [0.1, 0.5]),
        ),
    }
    oracle = "cpu" if element.is_low_precision else "both"
    return Case("DeformablePSROIPooling", version, inputs, attributes, oracle=oracle)


@cases("RegionYolo", "opset1")
def region_yolo(rng: Random, version: str) -> Case:
    element = pick(rng, FLOATS)
    coords, classes, count, softmax = 4, int(rng.integers(1, 5)), int(rng.integers(1, 4)), rng.random() < 0.5
    more = int(rng.integers(1, 4)) if element is et.f32 and rng.random() < 0.2 else 0
    shape = (int(rng.integers(1, 4)), count * (coords + 1 + classes) + more, *random_shape(rng, 2, 1, 5))
    axis = int(rng.integers(0, 4)) if softmax else 1
    attributes = {
        "axis": axis,
        "end_axis": pick(rng, [3, -1]) if not softmax else int(rng.integers(axis, 4)),
        "coords": coords,
        "classes": classes,
        "num": count,
        **some(rng, anchors=[10.5, 14, 23, 27]),
        "do_softmax": softmax,
        "mask": list(range(count)),
    }
    inputs = [param(random_array(rng, shape, element), element)]
    return Case("RegionYolo", version, inputs, attributes, oracle="cpu" if more else "both")


@cases("ReorgYolo", "opset1", "opset2")
def reorg_yolo(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, et.i32, et.u8))
    stride = int(rng.integers(1, 4))
    n, c, h, w = random_shape(rng, 4, 1, 3)
    shape = (n, c * stride**2, h * stride, w * stride)
    return Case("ReorgYolo", version, [param(random_array(rng, shape, element), element)], {"stride": stride})
