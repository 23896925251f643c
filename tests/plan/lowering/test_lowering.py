"""The lowering of each operation: the kernels of its plan, and the results of `compute`."""

from __future__ import annotations

import pytest

from tests.plan.exact import kernels
from tests.plan.graphs import Net, agrees
from tests.plan.lowering import elementwise, moves, rows, windows

CASES = {**elementwise.CASES, **rows.CASES, **moves.CASES, **windows.CASES}


@pytest.mark.parametrize("name", CASES)
def test_lowering(name: str) -> None:
    build, expected = CASES[name]
    net = Net(3)
    model = net.model(build(net))
    assert kernels(model, net.shapes) == expected
    agrees(model, net.shapes, tolerance=2e-5)
