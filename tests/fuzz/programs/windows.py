"""Layers over windows: convolutions of all kinds, poolings, resizing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.operands import operand


def spatial(x: Value) -> int:
    """The number of spatial axes of [N,C,X…]."""
    if not 3 <= x.rank <= 5 or not x.element.is_float:
        raise DoesNotFit("no spatial axes")
    return x.rank - 2


WIDE = (16, 32, 33, 40, 48, 64)


def channels(b: Build, at_most: int = 64) -> int:
    """A number of channels: small, odd, or a multiple of the vector length. More of these in wide programs."""
    if b.wide and b.chance(0.6):
        return b.pick(WIDE)
    big = b.big and b.chance(0.5)
    return min(b.pick((32, 48, 64, 33, 16)) if big else b.pick((1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16)), at_most)


def geometry(
    b: Build, x: Value, kernel: tuple[int, ...] | None = None, *, plain: bool = False
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """A kernel, and matching strides, dilations and pads."""
    axes = spatial(x)
    if kernel is None:
        size = b.pick((1, 1, 3, 3, 3, 2, 5))
        kernel = (size,) * axes if b.chance(0.75) else tuple(b.pick((1, 2, 3)) for _ in range(axes))
    strides = [1] * axes if plain or b.chance(0.65) else [b.pick((1, 2, 2, 3)) for _ in range(axes)]
    dilations = [1] * axes if plain or b.chance(0.8) else [b.pick((1, 2, 3)) for _ in range(axes)]
    roll = b.rng.random()
    auto = "explicit"
    if plain or roll < 0.45:
        begin = end = [(k - 1) * d // 2 for k, d in zip(kernel, dilations, strict=True)]
    elif roll < 0.7:
        begin = end = [0] * axes
    elif roll < 0.85:
        begin, end = [b.number(0, 2) for _ in range(axes)], [b.number(0, 2) for _ in range(axes)]
    else:
        begin = end = [0] * axes
        auto = b.pick(("same_upper", "same_lower", "valid"))
    data = {"strides": strides, "dilations": dilations, "pads_begin": begin, "pads_end": end, "auto_pad": auto}
    return tuple(kernel), data


def filters(b: Build, x: Value, *shape: int, fan: int) -> Value:
    """Weights of a convolution; some are multiplied by a number between −1 and 1 that is computed from its data."""
    weights = b.weights(*shape, fan=fan)
    if b.chance(0.93):
        return weights
    factor = b.op("ReduceMax", x, b.ints(*range(x.rank)), keep_dims=False)
    return b.binary("Multiply", weights, b.op("Clamp", factor, min=-1.0, max=1.0))


def convolution(
    b: Build, x: Value, out: int | None = None, kernel: tuple[int, ...] | None = None, *, plain: bool = False
) -> Value:
    """A Convolution."""
    x = b.bounded(x)
    kernel, data = geometry(b, x, kernel, plain=plain)
    c = x.shape[1]
    fan = c
    for k in kernel:
        fan *= k
    return b.op("Convolution", x, filters(b, x, out or channels(b), c, *kernel, fan=fan), **data)


def grouped(
    b: Build, x: Value, *, depthwise: bool | None = None, plain: bool = False, kernel: tuple[int, ...] | None = None
) -> Value:
    """A GroupConvolution: depthwise, with a multiplier, or of groups."""
    x = b.bounded(x)
    kernel, data = geometry(b, x, kernel, plain=plain)
    c = x.shape[1]
    depthwise = b.chance(0.6) if depthwise is None else depthwise
    groups = c if depthwise else b.pick([g for g in range(1, c + 1) if c % g == 0])
    per = 1 if plain or b.chance(0.7 if depthwise else 0.2) else b.number(1, 4)
    if not depthwise and c // groups <= 8 and b.chance(0.5):
        per = c // groups
    fan = c // groups
    for k in kernel:
        fan *= k
    return b.op("GroupConvolution", x, filters(b, x, groups, per, c // groups, *kernel, fan=fan), **data)


def transposed(b: Build, x: Value) -> Value:
    """A ConvolutionBackpropData or GroupConvolutionBackpropData."""
    x = b.bounded(x)
    axes, c = spatial(x), x.shape[1]
    kernel = tuple(b.pick((1, 2, 2, 3, 4)) for _ in range(axes)) if b.chance(0.4) else (b.pick((2, 3, 4)),) * axes
    strides = [b.pick((1, 2, 2, 3)) for _ in range(axes)] if b.chance(0.5) else [2] * axes
    dilations = [1] * axes if b.chance(0.8) else [b.number(1, 2) for _ in range(axes)]
    data: dict[str, Any] = {"strides": strides, "dilations": dilations}
    data |= {"pads_begin": [b.number(0, 1) for _ in range(axes)], "pads_end": [b.number(0, 1) for _ in range(axes)]}
    data["auto_pad"] = b.pick(("explicit", "explicit", "explicit", "same_upper", "same_lower", "valid"))
    if b.chance(0.4):
        data["output_padding"] = [b.number(0, max(s - 1, 0)) for s in strides]
    groups = b.pick([g for g in range(1, c + 1) if c % g == 0]) if b.chance(0.4) else 0
    fan = max(c // max(groups, 1) * max(1, kernel[0] // strides[0]), 1)
    per = b.number(1, 6)
    if groups:
        inputs = [x, filters(b, x, groups, c // groups, per, *kernel, fan=fan)]
        name = "GroupConvolutionBackpropData"
    else:
        inputs = [x, filters(b, x, c, per, *kernel, fan=fan)]
        name = "ConvolutionBackpropData"
    if b.chance(0.2):
        data.pop("output_padding", None)
        inputs.append(b.ints(*(n * s + b.number(0, 1) for n, s in zip(x.shape[2:], strides, strict=True))))
    return b.op(name, *inputs, **data)


def max_pool(b: Build, x: Value) -> Value:
    """A MaxPool."""
    axes = spatial(x)
    kernel = [b.pick((1, 2, 2, 3))] * axes if b.chance(0.6) else [b.number(1, 3) for _ in range(axes)]
    data: dict[str, Any] = {"kernel": kernel, "strides": [b.pick((1, 1, 2)) for _ in range(axes)]}
    data |= {"pads_begin": [b.number(0, k // 2) for k in kernel], "pads_end": [b.number(0, k // 2) for k in kernel]}
    data |= {
        "rounding_type": b.pick(("floor", "ceil")),
        "auto_pad": b.pick(("explicit", "explicit", "same_upper", "valid")),
    }
    if b.chance(0.7):
        return b.op("MaxPool", x, **data)
    data |= {"dilations": [b.number(1, 2) for _ in range(axes)], "index_element_type": "i64", "axis": 0}
    return b.many("MaxPool", x, version="opset8", **data)[0]


def avg_pool(b: Build, x: Value) -> Value:
    """An AvgPool."""
    axes = spatial(x)
    x = b.bounded(x)
    kernel = [b.pick((1, 2, 2, 3, 4))] * axes if b.chance(0.6) else [b.number(1, 3) for _ in range(axes)]
    data: dict[str, Any] = {"kernel": kernel, "strides": [b.pick((1, 1, 2)) for _ in range(axes)]}
    pads = b.chance(0.5)
    data |= {side: [b.number(0, k // 2) if pads else 0 for k in kernel] for side in ("pads_begin", "pads_end")}
    data |= {
        "rounding_type": b.pick(("floor", "floor", "ceil")),
        "auto_pad": b.pick(("explicit", "explicit", "same_lower")),
    }
    y = b.op("AvgPool", x, exclude_pad=b.chance(0.5), **data)
    begins = [(n - 1) * s - p for n, s, p in zip(y.shape[2:], data["strides"], data["pads_begin"], strict=True)]
    if any(begin >= n for begin, n in zip(begins, x.shape[2:], strict=True)):
        raise DoesNotFit("a mean of nothing")
    return y


def adaptive(b: Build, x: Value) -> Value:
    """An AdaptiveAvgPool or AdaptiveMaxPool."""
    axes = spatial(x)
    least = 2 if x.rank == 3 else 1  # OpenVINO wrongly fuses a pooling of a whole line with the next layer
    shape = b.ints(*(b.number(min(least, n), n) for n in x.shape[2:]))
    if b.chance(0.5):
        return b.op("AdaptiveAvgPool", x, shape, version="opset8")
    assert axes
    return b.many("AdaptiveMaxPool", x, shape, version="opset8", index_element_type="i64")[0]


def resize(b: Build, x: Value) -> Value:
    """An Interpolate of any version over the spatial axes."""
    axes = spatial(x)
    which = list(range(2, 2 + axes))
    if axes > 1 and b.chance(0.2):
        which = [b.pick(which)]
    mode = b.pick(("nearest", "nearest", "linear", "linear_onnx", "cubic", "linear_onnx"))
    if mode == "linear_onnx" and (len(which) == 1 or axes == 1):
        mode = "nearest"
    factor = b.pick((2, 2, 2, 1.5, 0.5, 3, 1))
    sizes = [max(1, int(x.shape[a] * factor)) if b.chance(0.8) else b.number(1, 12) for a in which]
    if axes == 2 and b.chance(0.1) and which == [2, 3]:
        old: dict[str, Any] = {"axes": which, "mode": b.pick(("nearest", "linear")), "antialias": False}
        old |= {"align_corners": b.chance(0.5), "pads_begin": [0], "pads_end": [0]}
        return b.op("Interpolate", x, b.ints(*sizes), version="opset1", **old)
    data: dict[str, Any] = {"mode": mode, "pads_begin": [0], "pads_end": [0], "cube_coeff": -0.75}
    data["antialias"] = mode == "linear" and b.chance(0.4)
    data["coordinate_transformation_mode"] = b.pick(
        ("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "tf_half_pixel_for_nn")
    )
    data["nearest_mode"] = b.pick(("round_prefer_floor", "floor", "ceil", "round_prefer_ceil", "simple"))
    version = b.pick(("opset4", "opset11"))
    scales = [n / x.shape[a] for n, a in zip(sizes, which, strict=True)]
    by_size = b.chance(0.6)
    data["shape_calculation_mode"] = "sizes" if by_size else "scales"
    scale_values = np.array([s + 1e-4 for s in scales], np.float32)
    ends = (
        [b.ints(*sizes), b.const(scale_values)]
        if version == "opset4"
        else [b.ints(*sizes) if by_size else b.const(scale_values)]
    )
    return b.op("Interpolate", x, *ends, b.ints(*which), version=version, **data)


def sampled(b: Build, x: Value) -> Value:
    """A GridSample. Its grid is an input or constant: rounding a computed one would move points to other pixels."""
    if spatial(x) != 2:
        raise DoesNotFit("no image")
    n, height, width = x.shape[0], b.number(1, 9), b.number(1, 9)
    turned = b.chance(0.3)
    shape = (n, 2, height, width) if turned else (n, height, width, 2)
    grid = b.parameter(shape) if b.dynamic or b.chance(0.5) else b.weights(*shape)
    data: dict[str, Any] = {"mode": b.pick(("bilinear", "bilinear", "bicubic", "nearest"))}
    data |= {"padding_mode": b.pick(("zeros", "border", "reflection")), "align_corners": b.chance(0.5)}
    return b.op("GridSample", x, b.transpose(grid, 0, 2, 3, 1) if turned else grid, version="opset9", **data)


def deformed(b: Build, x: Value) -> Value:
    """A DeformableConvolution. Its offsets are an input or constant, as the grid of a GridSample."""
    if spatial(x) != 2:
        raise DoesNotFit("no image")
    x = b.bounded(x)
    kernel, data = geometry(b, x)
    c, masked = x.shape[1], b.chance(0.7)
    groups, parts = ([g for g in (1, 1, 2, 4) if c % g == 0] for _ in range(2))
    data |= {"group": b.pick(groups), "deformable_group": b.pick(parts)}
    if masked:
        data["bilinear_interpolation_pad"] = b.chance(0.5)
    taps = kernel[0] * kernel[1]
    out, depth = data["group"] * channels(b, 16), c // data["group"]
    weights = b.weights(out, depth, *kernel, fan=depth * taps)
    plain = {k: v for k, v in data.items() if k in ("strides", "dilations", "pads_begin", "pads_end", "auto_pad")}
    size = b.op("Convolution", x, b.weights(1, c, *kernel), **plain).shape[2:]
    counts = [2 * data["deformable_group"] * taps, data["deformable_group"] * taps]
    given = [
        b.parameter((x.shape[0], count, *size)) if b.dynamic or b.chance(0.5) else b.weights(x.shape[0], count, *size)
        for count in counts
    ]
    if not masked:
        return b.op("DeformableConvolution", x, given[0], weights, **data)
    return b.op("DeformableConvolution", x, given[0], weights, given[1], version="opset8", **data)


def regions(b: Build, x: Value) -> Value:
    """A ROIAlign of constant regions."""
    if spatial(x) != 2 or b.dynamic:
        raise DoesNotFit("no image")
    count, (height, width) = b.number(1, 7), x.shape[2:]
    corners = b.rng.uniform(-0.3, 1.3, (count, 2, 2)) * [width, height]
    rois = np.sort(corners, 1) if b.chance(0.8) else corners
    images = b.const(b.rng.integers(0, x.shape[0], count))
    data: dict[str, Any] = {
        "pooled_h": b.number(1, 7),
        "pooled_w": b.number(1, 7),
        "mode": b.pick(("avg", "avg", "max")),
    }
    data |= {"sampling_ratio": b.pick((0, 1, 2, 2, 3)), "spatial_scale": b.pick((1.0, 0.5, 0.25))}
    data["aligned_mode"] = b.pick(("asymmetric", "half_pixel", "half_pixel_for_nn"))
    given = b.const(rois.reshape(count, 4).astype(np.float32))
    return b.op("ROIAlign", x, given, images, version="opset9", **data)


def bias(b: Build, x: Value) -> Value:
    """A per-channel term, or another operand that broadcasts, perhaps computed."""
    shape = (1, x.shape[1], *(1,) * (x.rank - 2))
    return b.add(x, b.weights(*shape) if b.chance(0.7) else operand(b, x.shape))


def batch_norm(b: Build, x: Value) -> Value:
    """A batch normalization, as a layer or as scale and shift."""
    c = x.shape[1]
    if b.chance(0.4) and not b.dyadic:
        return b.op(
            "BatchNormInference",
            x,
            b.positive(c),
            b.weights(c),
            b.weights(c),
            b.positive(c),
            version="opset5",
            epsilon=0.001,
        )
    shape = (1, c, *(1,) * (x.rank - 2))
    return b.add(b.mul(x, b.positive(*shape)), b.weights(*shape))


def lrn(b: Build, x: Value) -> Value:
    """A local response normalization."""
    return b.op("LRN", x, b.ints(1), alpha=0.1, beta=0.75, bias=1.0, size=b.pick((1, 3, 5)))


def rearranged(b: Build, x: Value) -> Value:
    """A SpaceToDepth or DepthToSpace."""
    axes, c = spatial(x), x.shape[1]
    block = 2
    if c % block**axes == 0 and b.chance(0.5):
        return b.op("DepthToSpace", x, block_size=block, mode=b.pick(("blocks_first", "depth_first")))
    return b.op("SpaceToDepth", x, block_size=block, mode=b.pick(("blocks_first", "depth_first")))


def shuffled(b: Build, x: Value) -> Value:
    """A ShuffleChannels of one layer."""
    c = x.shape[1]
    return b.op("ShuffleChannels", x, axis=1, group=b.pick([g for g in range(1, c + 1) if c % g == 0]))
