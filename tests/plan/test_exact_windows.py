"""Convolutions and poolings of random geometry, by every kernel that supports them, bit for bit."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from models import ir
from tests.fuzz.programs.thresholds import lowered_thresholds
from tests.plan.exact import Exact, same


def text(values: object) -> str:
    """Numbers as the text of an attribute."""
    return ",".join(map(str, values))  # type: ignore[call-overload]


def geometry(rng: np.random.Generator, axes: int, widest: int) -> tuple[tuple[int, ...], dict[str, str], list[int]]:
    """A kernel, attributes, and how much larger than the window the data is along each axis."""
    kernel = tuple(int(k) for k in rng.integers(1, widest + 1, axes))
    strides, dilations = rng.integers(1, 3, axes), rng.integers(1, 3, axes)
    begin, end = rng.integers(0, 3, axes), rng.integers(0, 3, axes)
    attributes = {"strides": strides, "dilations": dilations, "pads_begin": begin, "pads_end": end}
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return kernel, {name: text(v) for name, v in attributes.items()}, [int(r + rng.integers(0, 9)) for r in reach]


def epilogue(net: Exact, rng: np.random.Generator, y: ir.Ref, shape: tuple[int, ...]) -> ir.Ref:
    """A frequent epilogue of a convolution of known result shape: bias, residual, activation, or nothing."""
    column = (1, shape[1], *(1,) * (len(shape) - 2))
    for _ in range(int(rng.integers(0, 4))):
        operand = {
            0: lambda: net.weights(*column),
            1: lambda: net.input(*shape),
            2: lambda: net.weights(1),
            3: lambda: net.input(*(n if rng.random() < 0.5 else 1 for n in shape)),
            4: lambda: net.op("ReLU", net.input(*shape)),
        }[int(rng.integers(0, 5))]()
        y = net.op("Add", *((y, operand) if rng.random() < 0.7 else (operand, y)))
        y = net.op("ReLU", y) if rng.random() < 0.4 else y
    return y


def size(n: int, kernel: int, attributes: dict[str, str], axis: int) -> int:
    """The length of a result along an axis."""
    stride, dilation, begin, end = (int(attributes[k].split(",")[axis]) for k in attributes)
    return (n + begin + end - (kernel - 1) * dilation - 1) // stride + 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
@pytest.mark.parametrize("seed", range(30))
def test_convolutions(seed: int, small: bool) -> None:
    rng = np.random.default_rng([seed, 1])
    net = Exact(seed)
    axes = (2, 2, 2, 1, 3)[seed % 5]
    kernel, attributes, sizes = geometry(rng, axes, 1 if seed % 7 == 3 else 3)
    if seed % 7 == 3 and seed % 4 < 3:
        attributes |= {"pads_begin": text([0] * axes), "pads_end": text([0] * axes)}
    if seed % 10 == 7:  # supported by Winograd
        kernel, sizes = (3,) * axes, [9, 14, 5][:axes]
        attributes |= {"strides": text([1] * axes), "dilations": text([1] * axes)}
    batch, groups = int(rng.integers(1, 3)), (1, 1, 2, 3)[seed % 4]
    depth, per_group = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    if seed % 4 == 3:  # depthwise
        groups, depth, per_group = int(rng.integers(2, 9)), 1, 1
    if seed % 8 == 5:
        depth, per_group = 16, 32
    x = net.input(batch, groups * depth, *sizes)
    x = net.op("ReLU", x) if rng.random() < 0.3 else x
    if groups == 1:
        y = net.op("Convolution", x, net.weights(per_group, depth, *kernel), **attributes)
    else:
        y = net.op("GroupConvolution", x, net.weights(groups, per_group, depth, *kernel), **attributes)
    counts = [size(n, k, attributes, a) for a, (n, k) in enumerate(zip(sizes, kernel, strict=True))]
    y = epilogue(net, rng, y, (batch, groups * per_group, *counts))
    with lowered_thresholds() if small else nullcontext():
        names = same(net.model(y), net.shapes)
    assert names - {"tiles", "copy"} == able(kernel, attributes, groups, depth, (batch, groups * per_group, *counts))


def able(
    kernel: tuple[int, ...], attributes: dict[str, str], groups: int, depth: int, shape: tuple[int, ...]
) -> set[str]:
    """The kernels that support a convolution, at one thread or more."""
    if len(kernel) == 3:
        return {"im2col of volumes"}
    if groups > 1:
        return {"depthwise", "im2col"} if depth == 1 and shape[1] == groups else {"im2col"}
    if set(kernel) == {1} and not any(c in "12" for c in attributes["pads_begin"] + attributes["pads_end"]):
        return {"1x1"}
    names = {"im2col"}
    names |= {"im2col of a small map"} if shape[0] == 1 else set()
    plain = "2" not in attributes["strides"] + attributes["dilations"]
    return names | {"winograd"} if kernel == (3, 3) and plain else names


@pytest.mark.one_in(4)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("channels", [(3, 5), (16, 32), (8, 1)])
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
def test_pointwise(small: bool, channels: tuple[int, int], batch: int, stride: int) -> None:
    rng = np.random.default_rng([batch, stride, *channels])
    net = Exact(stride)
    depth, out = channels
    rows, columns = 9 if out < 32 else 13, 10
    attributes = {"strides": f"{stride},{stride}", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    y = net.op("Convolution", net.input(batch, depth, rows, columns), net.weights(out, depth, 1, 1), **attributes)
    y = epilogue(net, rng, y, (batch, out, -(-rows // stride), -(-columns // stride)))
    with lowered_thresholds() if small else nullcontext():
        names = same(net.model(y), net.shapes)
    assert names - {"tiles", "copy"} == able(
        (1, 1), attributes, 1, depth, (batch, out, -(-rows // stride), -(-columns // stride))
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("seed", range(18))
def test_poolings(seed: int, kind: str, small: bool) -> None:
    rng = np.random.default_rng([seed, 2])
    net = Exact(seed)
    axes = (2, 1, 3)[seed % 3]
    kernel, attributes, sizes = geometry(rng, axes, 3)
    begin = [min(int(b), k - 1) for b, k in zip(attributes["pads_begin"].split(","), kernel, strict=True)]
    end = [min(int(b), k - 1) for b, k in zip(attributes["pads_end"].split(","), kernel, strict=True)]
    attributes |= {"pads_begin": text(begin), "pads_end": text(end), "kernel": text(kernel), "rounding_type": "floor"}
    attributes["rounding_type"] = ("floor", "ceil")[seed % 2]
    x = net.input(int(rng.integers(1, 3)), int(rng.integers(1, 5)), *sizes)
    if kind == "AvgPool":
        del attributes["dilations"]
        exclude = str(seed % 4 < 2).lower()
        y = net.op("AvgPool", x, **attributes, **{"exclude-pad": exclude}, auto_pad="explicit")
    else:
        y = net.ops("MaxPool", x, version="opset8", outputs=2, **attributes, index_element_type="i64", axis=0)[0]
    with lowered_thresholds() if small else nullcontext():
        net_model = net.model(y)
        if kind == "MaxPool":
            assert same(net_model, net.shapes) == {"separable"}
            return
        from tests.plan.graphs import agrees

        agrees(net_model, net.shapes, tolerance=1e-6)


@pytest.mark.parametrize("seed", range(36))
def test_transposed_convolutions(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    net = Exact(seed)
    axes = (2, 1, 3)[seed % 3]
    kernel = tuple(int(k) for k in rng.integers(1, 4, axes))
    strides, dilations = rng.integers(1, 4, axes), rng.integers(1, 3, axes)
    sizes = rng.integers(1, 6, axes)
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(sizes, strides, kernel, dilations, strict=True)]
    begin = [int(rng.integers(0, max(1, min(3, f)))) for f in full]
    end = [int(rng.integers(0, max(1, min(3, f - b)))) for f, b in zip(full, begin, strict=True)]
    extra = [int(rng.integers(0, s)) for s in strides]
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads_begin": begin,
        "pads_end": end,
        "output_padding": extra,
    }
    groups, depth, per_group = (1, 2, 3)[seed % 3], int(rng.integers(1, 4)), int(rng.integers(1, 5))
    x = net.input(int(rng.integers(1, 3)), groups * depth, *map(int, sizes))
    type = "ConvolutionBackpropData" if groups == 1 else "GroupConvolutionBackpropData"
    lead = (depth, per_group) if groups == 1 else (groups, depth, per_group)
    y = net.op(type, x, net.weights(*lead, *kernel), **{k: text(v) for k, v in attributes.items()})
    y = net.op("Add", y, net.weights(1, groups * per_group, *(1,) * axes)) if seed % 2 else y
    assert "matmul, then taps" in same(net.model(y), net.shapes)


@pytest.mark.parametrize("pads", ["1,1 1,1", "0,1 2,0", "2,0 0,1", "0,2 1,0", "1,0 0,2"])
@pytest.mark.parametrize("size", [(12, 13), (5, 6), (4, 20)])
def test_three_by_three(size: tuple[int, int], pads: str) -> None:
    begin, end = pads.split()
    net = Exact(2)
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": begin, "pads_end": end}
    y = net.op("Convolution", net.input(2, 3, *size), net.weights(4, 3, 3, 3), **attributes)
    with lowered_thresholds():
        assert "winograd" in same(net.model(net.op("Add", y, net.weights(1, 4, 1, 1))), net.shapes)


@pytest.mark.parametrize("other", ["strides", "dilations", "groups"])
def test_convolutions_unsupported_by_winograd(other: str) -> None:
    net = Exact(2)
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    x = net.input(1, 4, 14, 15)
    if other == "groups":
        y = net.op("GroupConvolution", x, net.weights(2, 2, 2, 3, 3), **attributes)
    else:
        y = net.op("Convolution", x, net.weights(4, 4, 3, 3), **{**attributes, other: "1,2"})
    with lowered_thresholds():
        assert "winograd" not in same(net.model(y), net.shapes)


def test_winograd_is_for_squares_of_three() -> None:
    net = Exact(2)
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    y = net.op("Convolution", net.input(1, 4, 14, 15), net.weights(4, 4, 3, 2), **attributes)
    with lowered_thresholds():
        assert "winograd" not in same(net.model(y), net.shapes)
