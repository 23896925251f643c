"""Kernels for rows against `compute`, over shapes and layouts, also with blocks so small that a step has several."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import irload
from models import ir
from tests.fuzz.programs.thresholds import lowered_thresholds
from tests.plan.exact import Exact, kernels, same
from tests.plan.graphs import Net, agrees
from tests.plan.test_exact_maps import random_layout
from tests.plan.test_exact_products import operand

blocks = pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])


@blocks
@pytest.mark.parametrize("seed", range(20))
def test_reductions(seed: int, small: bool) -> None:
    rng = np.random.default_rng([seed, 8])
    net = Exact(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 4, 8], 1 + seed % 4))
    first = int(rng.integers(0, len(shape)))
    axes = list(range(first, int(rng.integers(first, len(shape))) + 1))
    type = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")[seed % 4]
    x = random_layout(net, rng, shape)
    y = net.op(type, x, net.constant(axes), keep_dims=bool(rng.random() < 0.5))
    y = net.op("Add", y, net.weights(1)) if rng.random() < 0.5 else y
    with lowered_thresholds() if small else nullcontext():
        assert f"{type.removeprefix('Reduce').lower()} of rows" in same(net.model(y), net.shapes)


@blocks
@pytest.mark.parametrize("attention", [False, True])
def test_masked_scores_give_no_subnormal_powers(attention: bool, small: bool) -> None:
    """Shifted windows have masks of −100. Processors compute subnormal exponentials a hundred times slower."""
    net = Net(0)
    mask = np.linspace(-115, 0, 16, dtype=np.float32)
    x = net.input(2, 5, 8)
    scores = net.op("MatMul", x, net.weights(2, 8, 16), transpose_a=False, transpose_b=False)
    powers = net.op("SoftMax", net.op("Add", scores, net.constant(mask)), axis=2)
    identity = net.constant(np.eye(16, dtype=np.float32))
    y = net.op("MatMul", powers, identity, transpose_a=False, transpose_b=False) if attention else powers
    model = net.model(y)
    with lowered_thresholds() if small else nullcontext():
        agrees(model, net.shapes)
        (output,) = irload.compile_model(model)([np.ones((2, 5, 8), np.float32)]).values()
    assert (output == 0).any()
    assert not ((output > 0) & (output < np.finfo(np.float32).tiny)).any()


def random_epilogue(net: Net, rng: np.random.Generator, y: ir.Ref, shape: tuple[int, ...]) -> ir.Ref:
    """The result, scaled and shifted by random operands, constant or computed."""
    for type in ("Multiply", "Add", "Add")[: int(rng.integers(0, 4))]:
        other = operand(net, rng, shape)  # type: ignore[arg-type]
        y = net.op(type, *((y, other) if rng.random() < 0.7 else (other, y)))
    return y


@pytest.mark.one_in(2)
@blocks
@pytest.mark.parametrize("kind", ["mvn", "rms", "softmax", "groups"])
@pytest.mark.parametrize("seed", range(8))
def test_normalizations(seed: int, kind: str, small: bool) -> None:
    rng = np.random.default_rng([seed, 9])
    net = Net(seed)
    shape = tuple(int(n) for n in rng.integers(2, 8, 2 + seed % 3))
    if kind == "groups":
        shape = (int(rng.integers(1, 3)), 6, *(int(n) for n in rng.integers(1, 5, 1 + seed % 3)))
    x = random_layout(net, rng, shape)  # type: ignore[arg-type]
    if kind == "mvn":
        axes = [k - len(shape) for k in range(int(rng.integers(1, len(shape))), len(shape))]
        if seed % 4 == 3:  # not the last axes
            axes = sorted(int(k) for k in rng.choice(len(shape), int(rng.integers(1, len(shape))), replace=False))
        y = net.op(
            "MVN", x, net.constant(axes), version="opset6", normalize_variance=True,
            eps=1e-3, eps_mode=("inside_sqrt", "outside_sqrt")[seed % 2],
        )  # fmt: skip
    elif kind == "softmax":
        y = net.op("SoftMax", x, axis=int(rng.integers(0, len(shape))))
    elif kind == "rms":
        mean = net.op("ReduceMean", net.op("Multiply", x, x), net.constant([-1]), keep_dims=True)
        y = net.op("Divide", x, net.op("Sqrt", net.op("Add", mean, net.constant(np.float32(1e-3)))))
    else:
        y = net.op(
            "GroupNormalization", x, net.weights(6), net.weights(6), version="opset12",
            num_groups=int(rng.choice([1, 2, 3, 6])), epsilon=1e-2,
        )  # fmt: skip
    model = net.model(random_epilogue(net, rng, y, shape))
    with lowered_thresholds() if small else nullcontext():
        agrees(model, net.shapes, tolerance=1e-4)


@pytest.mark.parametrize(
    ("shape", "axis", "kernel"),
    [
        ((2, 3, 5, 8), 1, "columns"),
        ((1100, 7, 40), 1, "columns"),
        ((90, 1300), 0, "columns"),
        ((2, 70, 600), 1, "columns"),
        ((4, 5, 31), 1, "rows, moved"),
        ((4, 5, 32), 2, "rows"),
    ],
)
def test_softmax_across_columns(shape: tuple[int, ...], axis: int, kernel: str) -> None:
    net = Net()
    model = net.model(net.op("SoftMax", net.input(*shape), axis=axis))
    assert kernels(model, [shape]) == [kernel]
    agrees(model, [shape])


@blocks
@pytest.mark.parametrize("seed", range(8))
def test_attention(seed: int, small: bool) -> None:
    rng = np.random.default_rng([seed, 10])
    net = Net(seed)
    lead = tuple(int(n) for n in rng.integers(1, 4, 1 + seed % 3))
    rows, keys, width, values = (int(n) for n in rng.integers(1, 7, 4))
    q, k, v = (random_layout(net, rng, (*lead, *s)) for s in ((rows, width), (keys, width), (keys, values)))  # type: ignore[arg-type]
    masks: list[ir.Ref] = []
    if seed % 4 == 1:
        masks = [net.input(*(n if rng.random() < 0.6 else 1 for n in lead), rows, keys)]
    elif seed % 4 == 2:
        masks = [net.constant(np.tri(rows, keys, dtype=bool))]
    y = net.op("ScaledDotProductAttention", q, k, v, *masks, version="opset13", causal=seed % 4 == 3)
    with lowered_thresholds() if small else nullcontext():
        agrees(net.model(y), net.shapes, tolerance=1e-4)


@pytest.mark.one_in(2)
@blocks
@pytest.mark.parametrize("mode", ["nearest", "linear_onnx", "cubic", "linear"])
@pytest.mark.parametrize("seed", range(5))
def test_resampling(seed: int, mode: str, small: bool) -> None:
    rng = np.random.default_rng([seed, 11])
    net = Net(seed)
    shape = (int(rng.integers(1, 3)), int(rng.integers(1, 5)), *(int(n) for n in rng.integers(2, 9, 2)))
    x = net.input(*shape)
    x = net.conv(x, shape[1], shape[1]) if seed % 2 else x
    sizes = [int(n * rng.choice([0.5, 1, 2, 2.5])) or 1 for n in shape[2:]]
    y = net.op(
        "Interpolate", x, net.constant(sizes), net.constant([2, 3]), version="opset11", mode=mode,
        shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric" if seed % 3 else "half_pixel",
        nearest_mode="floor", antialias=False, pads_begin="0,0,0,0", pads_end="0,0,0,0", cube_coeff=-0.75,
    )  # fmt: skip
    y = net.op("ReLU", y) if seed % 2 else y
    with lowered_thresholds() if small else nullcontext():
        agrees(net.model(y), net.shapes, tolerance=1e-5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("seed", range(6))
def test_sampling_by_a_grid(seed: int, mode: str, padding: str) -> None:
    rng = np.random.default_rng([seed, 12])
    net = Exact(seed)
    n, c, *sizes = (int(n) for n in rng.integers(1, 8, 6))
    x = random_layout(net, rng, (n, c, *sizes[:2]))
    x = net.conv(x, c, c) if seed % 2 else x  # channels innermost
    y = net.op(
        "GridSample", x, random_layout(net, rng, (n, *sizes[2:], 2)), version="opset9", mode=mode,
        padding_mode=padding, align_corners=bool(seed // 2 % 2),
    )  # fmt: skip
    assert "compute" in same(net.model(net.conv(y, c, 3) if seed % 3 == 0 else y), net.shapes)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", ["LSTMSequence", "GRUSequence", "GRUSequence, linear", "RNNSequence"])
@pytest.mark.parametrize("reverse", [False, True])
def test_sequences(kind: str, batch: int, directions: int, reverse: bool) -> None:
    net = Net(1)
    type, linear = kind.split(",")[0], "linear" in kind
    gates = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}[type]
    x, length, size = net.input(batch, 5, 3), 5, 4
    states = [net.input(batch, directions, size) for _ in range(2 if type == "LSTMSequence" else 1)]
    w, r = net.weights(directions, gates * size, 3), net.weights(directions, gates * size, size)
    b = net.weights(directions, (gates + linear) * size)
    attributes = {
        "hidden_size": size,
        "direction": "bidirectional" if directions == 2 else "reverse" if reverse else "forward",
    }
    attributes |= {"linear_before_reset": True} if linear else {}
    outputs = net.ops(
        type,
        x,
        *states,
        net.constant([length] * batch),
        w,
        r,
        b,
        version="opset5",
        outputs=len(states) + 1,
        **attributes,
    )
    agrees(net.model(*outputs), net.shapes, tolerance=1e-5)
