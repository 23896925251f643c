"""Plans for many shapes at a batch of 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from tests.plan.graphs import Net


@pytest.mark.parametrize("options", [{}, {"jit": False}, {"optimize": False}], ids=str)
def test_a_view_with_the_batch_from_its_shape(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """x.view(batch, -1, 4) as PyTorch exports it keeps the length, though 0 elements do not determine it."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x = net.input(-1, -1, 8)
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    batch = net.op("Gather", shape, net.constant([0]), net.constant(0), version="opset8", batch_dims=0)
    target = net.op("Concat", batch, net.constant([-1, 4]), axis=0)
    compiled = irload.compile_model(net.model(net.op("Reshape", x, target, special_zero=False)), 1, **options)
    for sizes in ((2, 3), (0, 3), (2, 0), (5, 7), (0, 1), (2, 3)):
        assert compiled(np.ones((*sizes, 8), np.float32))[0].shape == (sizes[0], 2 * sizes[1], 4)
