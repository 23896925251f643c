"""Layers that move values: Permute, Concat, Split, Crop, Tile, StridedSlice …."""

from __future__ import annotations

from collections.abc import Sequence

from irload.errors import AttributeInvalid, ReadError
from irload.read.legacy.layer import LegacyLayer, Wire, listed
from irload.read.legacy.table import rewrites


@rewrites("Permute")
def permute(layer: LegacyLayer) -> Wire:
    """Transpose by `order`."""
    return layer.op("Transpose", layer.input(), layer.constant("order", list(layer.integers("order"))))


@rewrites("Squeeze", "Unsqueeze")
def squeeze(layer: LegacyLayer) -> Wire:
    """Squeeze or Unsqueeze."""
    return layer.op(layer.type, *layer.inputs)


@rewrites("Concat")
def concat(layer: LegacyLayer) -> Wire:
    """Concat along `axis`, 1 by default."""
    return layer.op("Concat", *layer.inputs, data={"axis": layer.text("axis", "1")})


@rewrites("Split", "Slice")
def split(layer: LegacyLayer) -> list[Wire]:
    """VariadicSplit along `axis`, 1 by default, into the declared lengths."""
    axis, count = layer.integer("axis", 1), len(layer.raw.outputs)
    lengths = [layer.output_dims(k)[axis] for k in range(count)]
    inputs = layer.input(), layer.constant("axis", axis), layer.constant("lengths", lengths)
    output = layer.op("VariadicSplit", *inputs, outputs=count)
    return [Wire(output.source, k) for k in range(count)]


@rewrites("Crop")
def crop(layer: LegacyLayer) -> Wire:
    """StridedSlice from `offset` or `crop_begin`, with the declared dims along `axis`."""
    dims, outputs = layer.input_dims(), layer.output_dims()
    axes = layer.integers("axis")
    starts = layer.integers("offset") if layer.has("offset") else layer.integers("crop_begin")
    if len(axes) != len(starts) or any(not 0 <= axis < min(len(dims), len(outputs)) for axis in axes):
        raise AttributeInvalid(f"axis {listed(axes)} and offset {listed(starts)} do not fit a rank of {len(dims)}")
    begin, end = [0] * len(dims), list(dims)
    for axis, start in zip(axes, starts, strict=True):
        begin[axis], end[axis] = start, start + outputs[axis]
    ignored = [int(axis not in axes) for axis in range(len(dims))]
    return _sliced(layer, begin, end, ignored)


def _sliced(layer: LegacyLayer, begin: Sequence[int], end: Sequence[int], ignored: Sequence[int]) -> Wire:
    bounds = layer.constant("begin", begin), layer.constant("end", end)
    data = {"begin_mask": listed(ignored), "end_mask": listed(ignored)}
    return layer.op("StridedSlice", layer.input(), *bounds, data=data)


@rewrites("StridedSlice")
def strided_slice(layer: LegacyLayer) -> Wire:
    """StridedSlice. A 1 in `begin_mask` or `end_mask` selects a bound in legacy layers, ignores it in operations."""
    count = layer.input_dims(1)[0] if layer.input_dims(1) else 0
    data: dict[str, str] = {}
    for name in ("begin_mask", "end_mask"):
        bits = (*layer.integers(name, ()), *[1] * count)[:count]
        data[name] = listed([int(not bit) for bit in bits])
    for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask"):
        bits = (*layer.integers(name, ()), *[0] * count)[:count]
        if any(bits):
            data[name] = listed(bits)
    return layer.op("StridedSlice", *layer.inputs, data=data)


@rewrites("Tile")
def tile(layer: LegacyLayer) -> Wire:
    """Tile `axis` by `tiles`."""
    repeats = [1] * len(layer.input_dims())
    axis = layer.integer("axis")
    if not -len(repeats) <= axis < len(repeats):
        raise AttributeInvalid(f"attribute axis is {axis}, outside a rank of {len(repeats)}")
    repeats[axis] = layer.integer("tiles")
    return layer.op("Tile", layer.input(), layer.constant("repeats", repeats))


@rewrites("Gather")
def gather(layer: LegacyLayer) -> Wire:
    """Gather along `axis`, 0 by default; indices that are floats are converted."""
    indices = layer.input(1)
    if not layer.raw.inputs[1].precision and (layer.raw.precision or "FP32").startswith("FP"):
        indices = layer.op("Convert", indices, data={"destination_type": "i32"})
    return layer.op("Gather", layer.input(), indices, layer.constant("axis", layer.integer("axis", 0)))


@rewrites("Pad")
def pad(layer: LegacyLayer) -> Wire:
    """Pad by `pads_begin` and `pads_end`."""
    mode = layer.text("pad_mode", "constant")
    inputs = [layer.constant(name, list(layer.integers(name))) for name in ("pads_begin", "pads_end")]
    if mode == "constant":
        inputs.append(layer.scalar("pad_value", layer.number("pad_value", 0.0)))
    return layer.op("Pad", layer.input(), *inputs, data={"pad_mode": mode})


@rewrites("ShuffleChannels")
def shuffle_channels(layer: LegacyLayer) -> Wire:
    """ShuffleChannels of `group` groups along `axis`, 1 by default."""
    data = {"axis": layer.text("axis", "1"), "group": layer.text("group", "1")}
    return layer.op("ShuffleChannels", layer.input(), data=data)


@rewrites("DepthToSpace", "SpaceToDepth")
def blocks(layer: LegacyLayer) -> Wire:
    """DepthToSpace or SpaceToDepth; blocks first by default."""
    data = {"block_size": layer.text("block_size", "1"), "mode": layer.text("mode", "blocks_first")}
    return layer.op(layer.type, layer.input(), data=data)


@rewrites("Broadcast")
def broadcast(layer: LegacyLayer) -> Wire:
    """Broadcast to the dims of the second input."""
    return layer.op("Broadcast", layer.input(), layer.input(1))


@rewrites("ReverseSequence")
def reverse_sequence(layer: LegacyLayer) -> Wire:
    """ReverseSequence by the lengths of the second input."""
    data = {"batch_axis": layer.text("batch_axis", "0"), "seq_axis": layer.text("seq_axis", "1")}
    return layer.op("ReverseSequence", *layer.inputs, data=data)


@rewrites("ShapeOf")
def shape_of(layer: LegacyLayer) -> Wire:
    """ShapeOf in the declared precision."""
    precision = layer.precision()
    if precision in ("I32", "I64"):
        return layer.op("ShapeOf", layer.input(), data={"output_type": precision.lower()}, opset="opset3")
    return layer.as_declared(layer.op("ShapeOf", layer.input()))


@rewrites("OneHot")
def one_hot(layer: LegacyLayer) -> Wire:
    """OneHot of `depth` classes along `axis`."""
    indices = layer.op("Convert", layer.input(), data={"destination_type": "i32"})
    values = [layer.scalar(name, layer.number(name, d)) for name, d in (("on_value", 1.0), ("off_value", 0.0))]
    depth = layer.constant("depth", layer.integer("depth"))
    return layer.op("OneHot", indices, depth, *values, data={"axis": layer.text("axis", "-1")})


@rewrites("Memory")
def memory(layer: LegacyLayer) -> list[Wire]:
    """ReadValue that starts with zeros (index 1), or Assign (index 0)."""
    variable = {"variable_id": layer.text("id")}
    if layer.integer("index", 0):
        if not layer.raw.outputs:
            raise ReadError("has index 1, which reads, but no output")
        zero = layer.scalar("zero", 0.0)
        start = layer.op("Broadcast", zero, layer.constant("shape", list(layer.output_dims())))
        return [layer.op("ReadValue", start, data=variable, opset="opset3")]
    layer.op("Assign", layer.input(), data=variable, opset="opset3", outputs=0)
    return []
