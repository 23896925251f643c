"""Layers that are rewritten to the operation of the same name, inputs and attributes."""

from __future__ import annotations

from irload.read.legacy.layer import LegacyLayer, Wire
from irload.read.legacy.table import rewrites

_SAME: dict[str, tuple[str, tuple[str, ...]]] = {
    "ScatterUpdate": ("opset3", ()),
    "Range": ("opset1", ()),
    "BatchToSpace": ("opset2", ()),
    "SpaceToBatch": ("opset2", ()),
    "DeformableConvolution": (
        "opset1",
        ("strides", "dilations", "pads_begin", "pads_end", "auto_pad", "group", "deformable_group"),
    ),
    "NonMaxSuppression": ("opset1", ("box_encoding", "sort_result_descending")),
}
"""By type: the opset and the attributes."""


def _same(layer: LegacyLayer) -> list[Wire]:
    opset, names = _SAME[layer.type]
    count = len(layer.raw.outputs)
    output = layer.op(layer.type, *layer.inputs, data=layer.copied(*names), opset=opset, outputs=count)
    return [Wire(output.source, k) for k in range(count)]


rewrites(*_SAME)(_same)
