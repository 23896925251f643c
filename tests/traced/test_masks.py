"""Ids and masks that a traced plan converts."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.model import Model
from tests.plan.graphs import Net
from tests.traced.nets import linear


def masked() -> Model:
    """[batch, length, 16] plus a bias, by a mask that is shifted by one position and divided by divisors."""
    net = Net()
    x, mask, divisors = net.input(-1, -1, 16), net.integers(-1, -1), net.integers(-1, 1)
    sizes = net.op("ShapeOf", mask, version="opset3", output_type="i64")
    zero, one = net.constant(0), net.constant(1)
    length = net.op("Gather", sizes, one, zero, version="opset8", batch_dims=0)
    positions = net.op("Range", one, net.op("Add", length, one), one, version="opset4", output_type="i64")
    shifted = net.op("Gather", mask, positions, one, version="opset8", batch_dims=0)  # the last one is out of range
    flags = net.op("Convert", net.op("Divide", shifted, divisors), destination_type="boolean")
    bias = net.op("Select", flags, net.constant(np.float32(0)), net.constant(np.float32(-5)), auto_broadcast="numpy")
    return net.model(linear(net, net.op("Add", x, net.op("Unsqueeze", bias, net.constant([2]))), 16, 24))


def inputs(batch: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(length)
    x = rng.standard_normal((batch, length, 16)).astype(np.float32)
    return [x, rng.integers(0, 4, (batch, length)), np.full((batch, 1), 2)]


def test_masks_of_many_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    model = masked()
    compiled, plain = (irload.compile_model(model, 1, optimize=on) for on in (True, False))
    for batch, length in [(2, 5), (2, 6), (3, 9), (2, 7), (2, 33), (2, 5)]:
        feed = inputs(batch, length)
        np.testing.assert_allclose(compiled(feed)[0], plain(feed)[0], rtol=1e-5, atol=1e-5)


def test_errors_name_the_layer() -> None:
    compiled = irload.compile_model(masked(), 1)
    names: list[str] = []
    for length in (5, 6, 7):  # the first shape is planned alone
        feed = inputs(2, length)
        compiled(feed)
        feed[2][1] = 0
        with pytest.raises(irload.ExecutionError) as caught:
            compiled(feed)
        names.append(str(caught.value).replace(f"{length}]", "n]"))
    assert names[0] == names[1] == names[2]
    compiled(inputs(2, 8))


def test_empty_results_are_not_computed() -> None:
    """Divisors may be zero if no element is divided."""
    model = masked()
    compiled, plain = (irload.compile_model(model, 1, optimize=on) for on in (True, False))
    for batch, length in [(2, 5), (2, 0), (3, 0), (4, 0)]:
        feed = inputs(batch, length)
        feed[2][:] = length
        assert compiled(feed)[0].shape == plain(feed)[0].shape == (batch, length, 24)
