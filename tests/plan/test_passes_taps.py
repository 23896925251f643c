"""Taps of a convolution that only read padding are dropped, and no other ones."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.ir.steps import ConvStep
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees


def convolution(net: Net, size: int, weights: Array, **geometry: int) -> object:
    """A convolution with this geometry along the rows of a map, and a kernel of size 1 along the columns."""
    pairs = {name: f"{value},{0 if 'pads' in name else 1}" for name, value in geometry.items()}
    return net.op("Convolution", net.input(2, 3, size, 4), net.constant(weights), **pairs)


def used_taps(size: int, kernel: int, strides: int, dilations: int, pads_begin: int, pads_end: int) -> set[int]:
    """The taps that read an element of the map for some output."""
    count = (size + pads_begin + pads_end - (kernel - 1) * dilations - 1) // strides + 1
    places = {k: [o * strides + k * dilations - pads_begin for o in range(count)] for k in range(kernel)}
    return {k for k, read in places.items() if any(0 <= p < size for p in read)}


@pytest.mark.parametrize("seed", range(120))
def test_random_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, strides, dilations = (int(rng.integers(1, high)) for high in (9, 4, 12))
    kernel = int(rng.integers(2, 6))
    pads_begin, pads_end = (int(n) for n in rng.integers(0, (kernel - 1) * dilations + 3, 2))
    pads_end = max(pads_end, (kernel - 1) * dilations + 1 - size - pads_begin)  # a window fits
    geometry = {"strides": strides, "dilations": dilations, "pads_begin": pads_begin, "pads_end": pads_end}
    net = Net(seed)
    y = convolution(net, size, rng.standard_normal((5, 3, kernel, 1)).astype(np.float32), **geometry)
    model = net.model(y)  # type: ignore[arg-type]
    convolutions = [s for s in plan_of(model, net.shapes).program.steps if isinstance(s, ConvStep)]
    wanted = used_taps(size, kernel, **geometry)
    for conv in convolutions:
        taps = conv.inputs[1].shape[3]
        assert min(*conv.pads_begin, *conv.pads_end) >= 0
        assert taps >= len(wanted)
        if wanted and pads_begin % dilations == 0 and pads_end % dilations == 0 and strides == 1:
            assert taps == max(wanted) - min(wanted) + 1
    agrees(model, net.shapes)


def test_the_middle_of_a_dilated_window() -> None:
    net = Net()
    pairs = {"strides": "1,1", "dilations": "24,24", "pads_begin": "24,24", "pads_end": "24,24"}
    model = net.model(net.op("Convolution", net.input(1, 3, 16, 16), net.weights(4, 3, 3, 3), **pairs))
    (conv,) = plan_of(model, net.shapes).program.steps
    assert isinstance(conv, ConvStep)
    assert conv.inputs[1].shape == (1, 4, 3, 1, 1)
    assert (*conv.pads_begin, *conv.pads_end) == (0, 0, 0, 0)
    agrees(model, net.shapes)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_infinite_weights_stay(value: float) -> None:
    """Zero times infinity is NaN, in the padding, too."""
    net = Net()
    weights = np.ones((1, 3, 3, 1), np.float32)
    weights[0, 0, 0] = value
    y = convolution(net, 4, weights, strides=1, dilations=9, pads_begin=9, pads_end=9)
    model = net.model(y)  # type: ignore[arg-type]
    (conv,) = (s for s in plan_of(model, net.shapes).program.steps if isinstance(s, ConvStep))
    assert conv.inputs[1].shape[3] == 3
