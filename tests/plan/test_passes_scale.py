"""Scales after a convolution are folded into its weights if they are per channel, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from models import ir
from tests.plan.exact import Exact, plan_of, same

C, SIZE = 5, 5


def factor(net: Exact, *shape: int) -> ir.Ref:
    return net.constant((np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32) / 2).reshape(shape))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("shape", "folded"),
    [
        ((1, C, 1, 1), True),
        ((C, 1, 1), True),
        ((1,), True),
        ((), True),
        ((1, 1, 1, 1), True),
        ((1, 1, SIZE, 1), False),
        ((SIZE,), False),
        ((SIZE, 1), False),
        ((1, C, SIZE, 1), False),
        ((2, C, 1, 1), False),
        ((2, 1, 1, 1), False),
    ],
)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("groups", [1, 5])
def test_a_constant_factor(groups: int, first: bool, shape: tuple[int, ...], folded: bool) -> None:
    net = Exact()
    x = net.input(2, C, SIZE, SIZE)
    y = net.conv(x, C, C) if groups == 1 else net.depthwise(x, C, 1)
    c = factor(net, *shape)
    model = net.model(net.op("ReLU", net.op("Multiply", *((c, y) if first else (y, c)))))
    same(model, net.shapes)
    (kernel,) = plan_of(model, net.shapes).kernels
    assert ("multiply" not in str(kernel.step.epilogue)) == folded  # type: ignore[attr-defined]


@pytest.mark.parametrize("why", ["computed", "added", "wider", "weights computed", "infinite", "taken twice"])
def test_other_factors(why: str) -> None:
    net = Exact()
    x = net.input(1, C, SIZE, SIZE)
    y = net.conv(x, C, C)
    c = net.input(1, C, 1, 1) if why == "computed" else factor(net, 1, C, 1, 1)
    if why == "wider":
        c = net.constant(np.ones((2, 1, 1, 1), np.float32))
    if why == "infinite":
        c = net.constant(np.float32([1, 2, np.inf, 1, 1]).reshape(1, C, 1, 1))
    z = net.op("Add" if why == "added" else "Multiply", y, c)
    if why == "weights computed":
        z = net.op("Multiply", net.op("Convolution", x, net.input(3, C, 1, 1), strides="1,1", dilations="1,1",
                                      pads_begin="0,0", pads_end="0,0"), net.constant(np.float32(2)))  # fmt: skip
    if why == "taken twice":
        z = net.concat(z, net.op("Sin", y), axis=1)
    model = net.model(z)
    if why != "taken twice":
        same(model, net.shapes)
    steps = plan_of(model, net.shapes).kernels
    said = [str(getattr(b.step, "epilogue", getattr(b.step, "expression", ""))) for b in steps]
    assert any("multiply" in s or s == "add" for s in said), said
