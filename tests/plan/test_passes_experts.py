"""Routers that weight all experts: only the chosen ones are computed, for any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.model import Model
from irload.plan.ir.steps import ExpertMatMulStep, ExpertOrderStep, MatMulStep
from irload.plan.sanitizing import sanitizing
from models import ir
from tests.plan.exact import plan_of
from tests.plan.expert_weights import RANKED, ExpertWeights
from tests.plan.graphs import Net, agrees, close

NUMPY = {"auto_broadcast": "numpy"}
DEPTH, WIDTH = 24, 20


class Mixture:
    """A model of x [rows, DEPTH] in which k of several experts have weights other than zero.

    `zero`: the weight of the others; `ranks`: the number of TopKs that choose experts, at most k; `infinite`: whether
    the first expert returns infinity; `halves`: whether two experts share rows of twice the length.
    """

    def __init__(
        self,
        rows: int,
        experts: int = 6,
        k: int = 2,
        *,
        gated: bool = False,
        element: str = "f32",
        transpose: bool = True,
        zero: float = 0,
        ranks: int = 1,
        infinite: bool = False,
        halves: bool = False,
    ) -> None:
        self.net = net = Net(experts)
        self._experts = experts
        x = net.input(rows, DEPTH)
        self._matrices = ExpertWeights(net, x, element, transpose=transpose, lead=(experts,))
        weights = self._routed(x, k, zero, ranks)
        repeated, times = (net.concat(x, net.op("Abs", x)), experts // 2) if halves else (x, experts)
        tiled = net.reshape(net.op("Tile", repeated, net.constant([times, 1])), experts, -1, DEPTH)
        if gated:
            gate = net.op("Swish", self._matrices.product(tiled, DEPTH, WIDTH), version="opset4")
            hidden = net.op("Multiply", gate, self._matrices.product(tiled, DEPTH, WIDTH), **NUMPY)
        else:
            both = net.op(
                "Add", self._matrices.product(tiled, DEPTH, 2 * WIDTH), net.weights(experts, 1, 2 * WIDTH), **NUMPY
            )
            even, odd = (self._every_second(both, first) for first in (0, 1))
            even = net.op("Multiply", even, net.constant(np.float32(0.5)), **NUMPY)
            hidden = net.op("Multiply", net.op("Clamp", even, min=-7, max=7), odd, **NUMPY)
        bias = np.random.default_rng(5).standard_normal((experts, 1, DEPTH)).astype(np.float32)
        bias[0] = np.inf if infinite else 0
        result = net.op("Add", self._matrices.product(hidden, WIDTH, DEPTH), net.constant(bias), **NUMPY)
        weighted = net.op("Multiply", net.reshape(result, experts, 1, -1, DEPTH), weights, **NUMPY)
        self.sums = net.op("ReduceSum", weighted, net.constant([0]), keep_dims=False)

    @property
    def model(self) -> Model:
        """The model of the sums, in which a scaling follows."""
        return self.net.model(self.net.op("Multiply", self.sums, self.net.constant(np.float32(2)), **NUMPY))

    def _routed(self, x: ir.Ref, k: int, zero: float, ranks: int) -> ir.Ref:
        """The weights [experts, 1, rows, 1]."""
        net, experts = self.net, self._experts
        scores = net.op("MatMul", x, net.weights(DEPTH, experts), transpose_a=False, transpose_b=False)
        ranked = [
            net.ops("TopK", scores, net.constant(k // ranks), version="opset11", outputs=2, axis=1, **RANKED)
            for _ in range(ranks)
        ]
        best, chosen = (ranked[0][n] if ranks == 1 else net.concat(*(r[n] for r in ranked)) for n in (0, 1))
        shape = net.op("ShapeOf", scores, version="opset3", output_type="i64")
        zeros = net.op("Broadcast", net.constant(np.float32(zero)), shape, version="opset3", mode="numpy")
        best, how = net.op("SoftMax", best, axis=1), {"reduction": "none", "use_init_val": True}
        weights = net.op("ScatterElementsUpdate", zeros, chosen, best, net.constant(1), version="opset12", **how)
        spread = net.reshape(net.transpose(weights, 1, 0), experts, 1, -1)
        return net.op("Unsqueeze", spread, net.constant(3))

    def _every_second(self, x: ir.Ref, first: int) -> ir.Ref:
        bounds = (self.net.constant([n]) for n in (first, 2 * WIDTH, 2, 2))
        return self.net.op("Slice", x, *bounds, version="opset8")


def steps(model: Model, rows: int) -> list[type]:
    """The kinds of steps of a plan."""
    return [type(step) for step in plan_of(model, [(rows, DEPTH)]).program.steps]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rows", [1, 2, 6, 40])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_each_expert_multiplies_its_rows(rows: int, gated: bool, transpose: bool) -> None:
    model = Mixture(rows, gated=gated, transpose=transpose).model
    kinds = steps(model, rows)
    assert kinds.count(ExpertMatMulStep) == 2 + gated
    assert kinds.count(MatMulStep) == 1, "only the router multiplies all rows"
    agrees(model, [(rows, DEPTH)])


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("rows", [1, 9])
def test_compressed_weights(transpose: bool, rows: int) -> None:
    model = Mixture(rows, element="i4", transpose=transpose).model
    assert ExpertMatMulStep in steps(model, rows)
    agrees(model, [(rows, DEPTH)])


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_any_number_of_rows(jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second number on, one plan serves all."""
    monkeypatch.setenv("IRLOAD_JIT", jit)
    model, rng = Mixture(-1).model, np.random.default_rng(0)
    with sanitizing(False):
        plain, compiled = irload.compile_model(model, optimize=False), irload.compile_model(model)
        for rows in (3, 1, 5, 12, 1, 40, 2, 6):
            x = rng.standard_normal((rows, DEPTH)).astype(np.float32)
            close(compiled(x)[0], plain(x)[0], 1e-5)
        assert "one plan, whose sizes" in compiled.explain(x)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"zero": 0.25}, id="other experts count"),
        pytest.param({"k": 4}, id="most experts are chosen"),
        pytest.param({"element": "computed"}, id="weights are computed"),
        pytest.param({"halves": True}, id="experts multiply different rows"),
    ],
)
def test_other_sums_multiply_all_rows(other: dict[str, Any]) -> None:
    model = Mixture(5, **other).model
    assert ExpertOrderStep not in steps(model, 5)
    agrees(model, [(5, DEPTH)])


@pytest.mark.parametrize(("k", "ranks"), [(2, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("rows", [1, 5])
def test_the_last_weight_of_an_expert_that_is_chosen_twice(k: int, ranks: int, rows: int) -> None:
    model = Mixture(rows, experts=8, k=k, ranks=ranks).model
    assert ExpertOrderStep in steps(model, rows)
    agrees(model, [(rows, DEPTH)])


def test_results_of_other_experts_are_not_computed() -> None:
    """Infinity times the weight zero would be NaN."""
    x = np.random.default_rng(1).standard_normal((40, DEPTH)).astype(np.float32)
    model = Mixture(40, infinite=True).model
    finite = np.isfinite(irload.compile_model(model)(x)[0][0]).all(axis=1)
    assert 0 < finite.sum() < 40
    assert np.isnan(irload.compile_model(model, optimize=False)(x)[0][0, finite]).all()
