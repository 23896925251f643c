"""Traced plans of convolutions do not serve axes that are too short for a window; some of these give no outputs."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.errors import ShapeMismatch
from tests.plan.graphs import Net
from tests.traced.test_plans import values, variants


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_axes_of_any_length(jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", jit)
    net = Net()
    y = net.op("ReLU", net.conv(net.input(1, 3, -1, -1), 3, 8, 3))
    y = net.op("ReLU", net.conv(net.depthwise(y, 8, pads_begin="1,1", pads_end="1,1"), 8, 4))
    model = net.model(y, net.op("ReduceSum", y, net.constant([2, 3]), keep_dims=True))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for height, width in ((20, 24), (12, 9), (2, 9), (3, 30), (2, 11), (2, 2), (7, 2), (16, 16)):
        x = values(1, 3, height, width)
        results, expected = list(compiled(x).values()), list(plain(x).values())
        assert results[0].shape == (1, 4, height - 2, width - 2)
        for actual, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, 1e-4, 1e-4)
    before = variants(compiled)
    for shape in ((1, 3, 1, 9), (1, 3, 9, 0)):
        with pytest.raises(ShapeMismatch, match="the window spans 3 elements on spatial axis"):
            compiled(values(*shape))
    compiled(values(1, 3, 17, 13))
    assert variants(compiled) == before > 0
