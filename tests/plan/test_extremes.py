"""Every lowered operation on NaN, infinities and numbers near the limits of f32."""

from __future__ import annotations

import pytest

from irload.plan.backends.llvm.target import host_target
from tests.plan.extremes import VALUES, classes_agree
from tests.plan.graphs import Net
from tests.plan.lowering.test_lowering import CASES

COMPILED = tuple(v for v in VALUES if not abs(v) >= 1e38 or abs(v) == float("inf"))
"""The values for compiled kernels: attention scales products of q and k, which may overflow before
(docs/precision.md)."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_classes(name: str) -> None:
    net = Net(3)
    model = net.model(CASES[name][0](net))
    values = COMPILED if "attention" in name and host_target() is not None else VALUES
    if net.shapes and any(all(shape) for shape in net.shapes):
        assert classes_agree(model, net.shapes, values)
