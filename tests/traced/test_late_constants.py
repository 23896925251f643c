"""Constants that depend on sizes, of steps with equal kernels."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan.sanitizing import sanitizing
from tests.plan.graphs import Net


@pytest.mark.parametrize("axis", [2, 3])
def test_one_of_two_equal_steps_depends_on_a_size_that_changes(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipping boxes to the image computes min(x, width) and min(y, height), which have the same kernel."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    boxes = [net.input(2, 5) for _ in range(2)]
    shape = net.op("ShapeOf", net.input(1, 3, -1, -1), version="opset3", output_type="i64")
    sizes = [net.op("Gather", shape, net.constant(np.array([k])), net.constant(0)) for k in (2, 3)]
    limits = [net.op("Convert", size, destination_type="f32") for size in sizes]
    clipped = [net.op("Minimum", b, limit, auto_broadcast="numpy") for b, limit in zip(boxes, limits, strict=True)]
    model = net.model(*clipped)
    far = np.full((2, 5), 1e6, np.float32)
    with sanitizing(False):
        compiled = irload.compile_model(model)
        for size in (4, 5, 6, 9, 7):
            image = [8, 8]
            image[axis - 2] = size
            results = compiled([far, far, np.ones((1, 3, *image), np.float32)]).values()
            assert [r.max() for r in results] == image


@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_part_of_a_shape_that_is_a_number_at_every_shape(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view of a shape may contain numbers only, as the last of [batch, length, 12]: it is not an array of sizes."""
    monkeypatch.setenv("IRLOAD_JIT", kernels)
    net = Net()
    shape = net.op("ShapeOf", net.input(-1, -1, 12), version="opset3", output_type="i32")
    at, one = net.constant(np.array([1])), net.constant(np.array([1], np.int32))
    model = net.model(net.op("ScatterUpdate", shape, at, one, net.constant(0), version="opset3"))
    with sanitizing(False):
        compiled = irload.compile_model(model)
        for batch, length in ((2, 9), (1, 2), (3, 5), (4, 7), (2, 9)):
            (result,) = compiled(np.ones((batch, length, 12), np.float32)).values()
            assert result.tolist() == [batch, 1, 12]
