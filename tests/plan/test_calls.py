"""A CNN runs few NumPy calls in little working memory: a slower plan is detected without a clock."""

from __future__ import annotations

import pytest

from irload.plan.backends.numpy.kernels import packing, weight_streaming, winograd
from models import ir
from tests.plan.exact import Exact, plan_of, tables

pytestmark = pytest.mark.numpy_kernels

PADS = {"pads_begin": "1,1", "pads_end": "1,1"}

MAX_CALLS = {
    "im2col": 20,
    "separable": 6,
    "depthwise": 10,
    "1x1": 4,
    "mean of rows": 4,
    "matmul by columns": 4,
    "rows": 8,
}
"""Calls of each kernel on maps of up to 64 × 64; an im2col copies nine taps."""


def activated(net: Exact, y: ir.Ref, channels: int) -> ir.Ref:
    return net.op("ReLU", net.op("Add", y, net.weights(1, channels, 1, 1)))


def cnn(net: Exact) -> ir.Ref:
    """A stem with pooling, an inverted residual, and a classifier."""
    y = activated(net, net.conv(net.input(1, 3, 64, 64), 3, 32, 3, **PADS), 32)
    pooled = net.op("MaxPool", y, kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0")
    y = activated(net, net.depthwise(pooled, 32, 3, **PADS), 32)
    y = net.op("Add", net.conv(y, 32, 32), pooled)
    y = net.op("ReduceMean", y, net.constant([2, 3]), keep_dims=False)
    y = net.op("MatMul", y, net.weights(32, 10), transpose_a=False, transpose_b=False)
    return net.op("SoftMax", net.op("Add", y, net.weights(10)), axis=1)


@pytest.mark.parametrize("small", [True, False], ids=["BLAS reads in place", "BLAS copies"])
def test_a_cnn_runs_few_calls(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packing, weight_streaming, winograd):
        monkeypatch.setattr(module, "small_kernels", lambda: small)
    net = Exact()
    calls = tables(plan_of(net.model(cnn(net)), net.shapes))
    assert [name for name, _ in calls] == list(MAX_CALLS), "biases, activations and the residual are epilogues"
    for name, phases in calls:
        assert sum(len(part) for phase in phases for part in phase) <= MAX_CALLS[name], name


def test_windows_are_copied_block_by_block() -> None:
    net = Exact()
    plan = plan_of(net.model(net.conv(net.input(1, 16, 256, 256), 16, 4, 3, strides="2,2")), net.shapes)
    (segment,) = plan.segments
    windows = 127 * 127 * 16 * 9 * 4
    assert [kernel.name for kernel in plan.kernels] == ["im2col"]
    assert 0 < segment.executable.nbytes["working memory"] < windows / 4
