"""Layers of detectors: prior boxes, DetectionOutput, Proposal, YOLO."""

from __future__ import annotations

from irload.read.legacy.layer import LegacyLayer, Wire
from irload.read.legacy.table import rewrites

_BOXES = ("min_size", "max_size", "aspect_ratio", "density", "fixed_ratio", "fixed_size")
_FLAGS = frozenset(
    {
        *("clip", "flip", "scale_all_sizes", "share_location", "variance_encoded_in_target", "clip_before_nms"),
        *("clip_after_nms", "decrease_label_id", "normalized", "normalize"),
    }
)

_IMAGE_SIZES = ("img_h", "img_size"), ("img_w", "img_size")
"""Attributes that state the height and the width of the image, in order of preference."""

_SIZES = ("input_height", "input_width")
"""Attributes that are −1 in files if the boxes are normalized."""


@rewrites("PriorBox")
def prior_box(layer: LegacyLayer) -> Wire:
    """PriorBox; the dims of the inputs are the sizes of the feature map and of the image."""
    data = _flags(layer, layer.copied(*_BOXES, "clip", "flip", "scale_all_sizes", "step", "offset", "variance"))
    return _priors(layer, "PriorBox", data)


@rewrites("PriorBoxClustered")
def prior_box_clustered(layer: LegacyLayer) -> Wire:
    """PriorBoxClustered of the dims of the inputs, or of the image size in the attributes."""
    data = layer.copied("width", "height", "clip", "step", "step_w", "step_h", "offset", "variance")
    return _priors(layer, "PriorBoxClustered", _flags(layer, data))


def _priors(layer: LegacyLayer, type: str, data: dict[str, str]) -> Wire:
    rank, dims = len(layer.input_dims(1)), layer.output_dims()
    stated = [next((layer.integer(name) for name in names if layer.has(name)), 0) for names in _IMAGE_SIZES]
    if any(stated):
        declared = layer.input_dims(1)[2:]
        image = layer.constant("image", [size or declared[axis] for axis, size in enumerate(stated)])
    else:
        image = layer.dims_of(layer.input(1), 2, rank, "image")
    boxes = layer.op(type, layer.dims_of(layer.input(), 2, len(layer.input_dims()), "grid"), image, data=data)
    return layer.reshaped(boxes, [*dims[:-1], -1])


@rewrites("DetectionOutput")
def detection_output(layer: LegacyLayer) -> Wire:
    """DetectionOutput. The legacy default of `normalized` is true, that of the operation is false."""
    names = ("num_classes", "background_label_id", "top_k", "keep_top_k", "code_type", "nms_threshold")
    names += ("confidence_threshold", "input_height", "input_width", "objectness_score", "share_location")
    names += ("variance_encoded_in_target", "clip_before_nms", "clip_after_nms", "decrease_label_id", "normalized")
    data = {"confidence_threshold": "-1", "normalized": "true"} | _flags(layer, layer.copied(*names))
    data = {"keep_top_k": "-1"} | {k: v for k, v in data.items() if k not in _SIZES or layer.integer(k) > 0}
    return layer.op("DetectionOutput", *layer.inputs, data=data)


@rewrites("Proposal")
def proposal(layer: LegacyLayer) -> list[Wire]:
    """Proposal. The sizes of the image are reshaped to one axis; only the first 4 are used, as by legacy plugins."""
    names = ("base_size", "pre_nms_topn", "post_nms_topn", "nms_thresh", "feat_stride", "min_size", "ratio", "scale")
    names += ("clip_before_nms", "clip_after_nms", "normalize", "box_size_scale", "box_coordinate_scale", "framework")
    size, dims = layer.input(2), layer.input_dims(2)
    if len(dims) > 1:
        size = layer.reshaped(size, [dims[-1]], "image")
    if dims and dims[-1] > 4:
        indices, axis = layer.constant("image/indices", range(4)), layer.constant("image/axis", 0)
        size = layer.op("Gather", size, indices, axis, name="image/sizes")
    data, count = _flags(layer, layer.copied(*names)), len(layer.raw.outputs)
    opset = "opset4" if count > 1 else "opset1"
    output = layer.op("Proposal", layer.input(), layer.input(1), size, data=data, opset=opset, outputs=count)
    return [Wire(output.source, k) for k in range(count)]


@rewrites("RegionYolo")
def region_yolo(layer: LegacyLayer) -> Wire:
    """RegionYolo. With SoftMax, all anchors are used."""
    names = ("anchors", "axis", "coords", "classes", "end_axis", "num", "mask")
    softmax = layer.flag("do_softmax", True)
    data = {"axis": "1", "end_axis": "3"} | layer.copied(*names) | {"do_softmax": str(softmax).lower()}
    output = layer.op("RegionYolo", layer.input(), data=data)
    dims, declared = layer.input_dims(), layer.output_dims()
    if declared == dims and softmax:
        return layer.op("Reshape", output, layer.op("ShapeOf", layer.input()), data={"special_zero": "false"})
    if declared == dims:
        return output
    return output if softmax and len(declared) < 4 else layer.reshaped(output, declared)


@rewrites("ReorgYolo")
def reorg_yolo(layer: LegacyLayer) -> Wire:
    """ReorgYolo."""
    return layer.op("ReorgYolo", layer.input(), data={"stride": layer.text("stride")}, opset="opset2")


@rewrites("CTCGreedyDecoder")
def ctc_greedy_decoder(layer: LegacyLayer) -> Wire:
    """CTCGreedyDecoder, which merges repeated classes by default."""
    data = {"ctc_merge_repeated": str(layer.flag("ctc_merge_repeated", True)).lower()}
    return layer.op("CTCGreedyDecoder", *layer.inputs, data=data)


def _flags(layer: LegacyLayer, data: dict[str, str]) -> dict[str, str]:
    """The attributes with booleans as `true` and `false`."""
    flags = {name: str(layer.flag(name, False)).lower() for name in data if name in _FLAGS}
    return data | flags
