"""Maxima over large windows are computed along one axis after the other."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan.ir.steps import PoolStep
from tests.plan.exact import plan_of
from tests.plan.graphs import Net


def pooled(net: Net, *shape: int, type: str = "MaxPool", **attributes: str) -> irload.Model:
    ones = ",".join(["1"] * (len(shape) - 2))
    how = {"strides": ones, "rounding_type": "floor", **attributes}
    return net.model(net.op(type, net.input(*shape), **how))


def kernels(model: irload.Model, net: Net) -> list[tuple[int, ...]]:
    return [step.kernel for step in plan_of(model, net.shapes).program.steps if isinstance(step, PoolStep)]


@pytest.mark.parametrize(
    ("shape", "kernel", "pads", "expected"),
    [
        ((1, 3, 12, 15), "5,5", ("2,2", "2,2"), [(5, 1), (1, 5)]),
        ((2, 1, 20, 9), "9,9", ("4,3", "4,5"), [(9, 1), (1, 9)]),
        ((1, 2, 6, 7, 8), "3,3,3", ("1,1,0", "1,0,1"), [(3, 1, 1), (1, 3, 1), (1, 1, 3)]),
        ((1, 2, 9, 40), "1,25", ("0,0", "0,0"), [(1, 25)]),
        ((1, 2, 9, 9), "4,6", ("0,0", "0,0"), [(4, 6)]),
    ],
)
@pytest.mark.parametrize("jit", [True, False])
def test_maxima(
    shape: tuple[int, ...],
    kernel: str,
    pads: tuple[str, str],
    expected: list[tuple[int, ...]],
    jit: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Net()
    model = pooled(net, *shape, kernel=kernel, pads_begin=pads[0], pads_end=pads[1])
    assert kernels(model, net) == expected
    if jit:
        monkeypatch.setenv("IRLOAD_JIT", "auto")
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.reshape(-1)[::37], x.reshape(-1)[5::53] = np.nan, -np.inf
    plain = irload.compile_model(model, 1, optimize=False)(x)[0]
    np.testing.assert_array_equal(irload.compile_model(model, 1)(x)[0], plain)


def test_means_and_windows_with_strides_stay() -> None:
    zeros = {"pads_begin": "0,0", "pads_end": "0,0"}
    net = Net()
    assert kernels(pooled(net, 1, 2, 9, 9, kernel="5,5", strides="2,2", **zeros), net) == [(5, 5)]
    net = Net()
    mean = pooled(net, 1, 2, 9, 9, type="AvgPool", kernel="5,5", **zeros, **{"exclude-pad": "true"})
    assert kernels(mean, net) == [(5, 5)]
