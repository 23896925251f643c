"""Mixtures of experts whose rows NonZero selects, planned as products of known shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.model import Model
from irload.plan.ir.steps import ExpertMatMulStep
from irload.plan.sanitizing import sanitizing
from models import ir
from tests.plan.exact import plan_of
from tests.plan.expert_weights import RANKED, ExpertWeights
from tests.plan.graphs import Net, agrees, close

NUMPY = {"auto_broadcast": "numpy"}
DEPTH, WIDTH, EXPERTS = 24, 20, 5


class Mixture:
    """A model of x [tokens, DEPTH] as optimum-intel 1 exports a mixture: k of EXPERTS are added for each token.

    `experts`: how many are added; `first`: the initial sums; `off`: the value of the mask for other experts;
    `reduction`: of the Scatters; `odd`: the activation of the second expert; `squeezed`: whether the mask is indexed by
    a tensor of one element; `seen`: whether the sums of two experts are returned, too.
    """

    def __init__(
        self,
        tokens: int,
        k: int = 2,
        *,
        experts: int = EXPERTS,
        first: float = 0,
        off: int = 0,
        reduction: str = "sum",
        odd: str = "Swish",
        element: str = "f32",
        transpose: bool = True,
        squeezed: bool = False,
        seen: bool = False,
    ) -> None:
        self.net = net = Net(k)
        self._k, self._reduction, self._squeezed = k, reduction, squeezed
        x = self._x = net.input(tokens, DEPTH)
        self._matrices = ExpertWeights(net, x, element, transpose=transpose)
        scores = net.op("MatMul", x, net.weights(DEPTH, EXPERTS), transpose_a=False, transpose_b=False)
        best, chosen = net.ops("TopK", scores, net.constant(k), version="opset11", outputs=2, axis=1, **RANKED)
        hot = net.op("OneHot", chosen, net.constant(EXPERTS), net.constant(1), net.constant(off), axis=2)
        self._mask, self._best = net.transpose(hot, 2, 1, 0), net.op("SoftMax", best, axis=1)
        sums = net.op("Broadcast", net.constant(np.float32(first)), self._shape(x), version="opset3", mode="numpy")
        partial = [sums]
        for expert in range(experts):
            partial.append(self._added(partial[-1], expert, odd if expert == 1 else "Swish"))
        scaled = net.op("Multiply", partial[-1], net.constant(np.float32(2)), **NUMPY)
        self.model: Model = net.model(scaled, *partial[2:3] if seen else ())

    def _shape(self, x: ir.Ref) -> ir.Ref:
        return self.net.op("ShapeOf", x, version="opset3", output_type="i32")

    def _added(self, sums: ir.Ref, expert: int, activation: str) -> ir.Ref:
        """The sums with the results of an expert."""
        net, zero = self.net, self.net.constant(0)
        index = net.constant([expert] if self._squeezed else expert)
        mask = net.op("Gather", self._mask, index, zero, version="opset8", batch_dims=0)
        mask = net.op("Squeeze", mask, zero) if self._squeezed else mask
        nonzero = net.op("NonZero", mask, version="opset3", output_type="i64")
        column, token = (
            net.op("Convert", net.op("Squeeze", part, zero), destination_type="i32")
            for part in net.ops("Split", nonzero, zero, outputs=2, num_splits=2)
        )
        rows = net.op("Gather", self._x, token, zero, version="opset8", batch_dims=0)
        rows = net.reshape(net.op("Reshape", rows, net.constant([1, -1, DEPTH]), special_zero=True), -1, DEPTH)
        version = "opset4" if activation == "Swish" else "opset1"
        gate = net.op(activation, self._matrices.product(rows, DEPTH, WIDTH), version=version)
        hidden = net.op("Multiply", gate, self._matrices.product(rows, DEPTH, WIDTH), **NUMPY)
        hidden = net.op("Multiply", hidden, net.constant(np.full((1, 1), 0.5, np.float32)), **NUMPY)
        result = net.op("Multiply", self._matrices.product(hidden, WIDTH, DEPTH), self._weights(token, column), **NUMPY)
        row = net.op("Slice", sums, *(net.constant(n) for n in ([0, 0], [1, 9999], [1, 1], [0, 1])), version="opset8")
        token, result = (
            net.op("Broadcast", v, self._shape(row), version="opset3", mode="bidirectional")
            for v in (net.reshape(token, -1, 1), result)
        )
        how = {"reduction": self._reduction, "use_init_val": True}
        return net.op("ScatterElementsUpdate", sums, token, result, zero, version="opset12", **how)

    def _weights(self, token: ir.Ref, column: ir.Ref) -> ir.Ref:
        """The weights [rows, 1] of the router."""
        net = self.net
        start = net.op("Multiply", token, net.op("Convert", net.constant(self._k), destination_type="i32"), **NUMPY)
        pair = net.op("Add", column, start, **NUMPY)
        weights = net.op(
            "Gather", net.reshape(self._best, -1, 1), pair, net.constant(0), version="opset8", batch_dims=0
        )
        return net.op("Reshape", weights, net.constant([0, 1]), special_zero=True)


def steps(model: Model, tokens: int) -> list[type]:
    """The kinds of steps of the plan of a whole model."""
    return [type(step) for step in plan_of(model, [(tokens, DEPTH)]).program.steps]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("tokens", [1, 2, 5, 40])
@pytest.mark.parametrize(("k", "squeezed"), [(1, False), (2, True), (5, False)])
@pytest.mark.parametrize("transpose", [False, True])
def test_one_step_multiplies_the_rows_of_all_experts(tokens: int, k: int, squeezed: bool, transpose: bool) -> None:
    model = Mixture(tokens, k, squeezed=squeezed, transpose=transpose).model
    assert steps(model, tokens).count(ExpertMatMulStep) == 3
    agrees(model, [(tokens, DEPTH)])


@pytest.mark.parametrize("tokens", [1, 9])
def test_compressed_weights(tokens: int) -> None:
    model = Mixture(tokens, element="i4").model
    assert ExpertMatMulStep in steps(model, tokens)
    agrees(model, [(tokens, DEPTH)])


def test_computed_weights() -> None:
    """The shape is known, but the products run by the operation."""
    model = Mixture(6, element="computed").model
    assert ExpertMatMulStep not in steps(model, 6)
    agrees(model, [(6, DEPTH)])


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_any_number_of_tokens(jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second number on, one plan serves all."""
    monkeypatch.setenv("IRLOAD_JIT", jit)
    model, rng = Mixture(-1).model, np.random.default_rng(0)
    with sanitizing(False):
        plain, compiled = irload.compile_model(model, optimize=False), irload.compile_model(model)
        for tokens in (3, 1, 5, 12, 1, 40, 2, 6):
            x = rng.standard_normal((tokens, DEPTH)).astype(np.float32)
            close(compiled(x)[0], plain(x)[0], 1e-5)
        assert "one plan, whose sizes" in compiled.explain(x)
        assert "NonZero" not in compiled.explain(x)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"experts": 4}, id="an expert is missing"),
        pytest.param({"first": 1.0}, id="the first sums are not zero"),
        pytest.param({"off": 2}, id="the mask selects all experts"),
        pytest.param({"reduction": "max"}, id="results are not added"),
        pytest.param({"odd": "Sigmoid"}, id="an expert differs"),
        pytest.param({"seen": True}, id="sums of some experts are returned"),
    ],
)
def test_other_models_select_rows(other: dict[str, Any]) -> None:
    model = Mixture(4, **other).model
    compiled, plain = irload.compile_model(model), irload.compile_model(model, optimize=False)
    x = np.random.default_rng(2).standard_normal((4, DEPTH)).astype(np.float32)
    assert "NonZero" in compiled.explain(x)
    for actual, wanted in zip(compiled(x).values(), plain(x).values(), strict=True):
        close(actual, wanted, 1e-5)
