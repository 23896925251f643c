"""Products of experts as exporters write them: slices of counted rows, planned as one step of known shape."""

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

EXPERTS, DEPTH, COLUMNS, CHOSEN = 5, 24, 40, 2


class Experts:
    """A model that routes tokens [tokens, DEPTH] to CHOSEN of EXPERTS, and returns rows sorted by expert.

    An expert is a MatMul, or with `gated` the three MatMuls of DeepSeek. `listed`: the counts are split into numbers,
    instead of gathered. `odd`: the activation of the second expert, or "shared" for one product instead of two.
    """

    def __init__(
        self,
        tokens: int,
        *,
        one: float = 1,
        skipped: int = 0,
        element: str = "f32",
        transpose: bool = True,
        counted: str = "i64",
        gated: bool = False,
        listed: bool = False,
        odd: str = "Swish",
    ) -> None:
        self.net = net = Net()
        self._gated = gated
        x = net.input(tokens, DEPTH)
        self._weights = ExpertWeights(net, x, element, transpose=transpose)
        scores = net.op("MatMul", x, net.weights(DEPTH, EXPERTS), transpose_a=False, transpose_b=False)
        chosen = net.ops("TopK", scores, net.constant(CHOSEN), version="opset11", outputs=2, axis=1, **RANKED)[1]
        rows = self._rows(x, chosen)
        counts = self._counts(scores, chosen, one, counted)
        ends = self._ends(counts, listed=listed)
        starts = [net.constant([skipped]), *ends[:-1]]
        parts = [
            self._expert(
                net.op("Slice", rows, start, end, net.constant([1]), net.constant([0]), version="opset8"),
                odd if k == 1 else "Swish",
            )
            for k, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        product = net.concat(*parts, axis=0)
        self.model = net.model(net.op("Multiply", product, net.constant(np.float32(0.5))))

    def _expert(self, rows: ir.Ref, activation: str) -> ir.Ref:
        """The result of an expert for its rows."""
        net = self.net
        if not self._gated:
            return self._weights.product(rows, DEPTH, COLUMNS)
        first = self._weights.product(rows, DEPTH, COLUMNS)
        second = first if activation == "shared" else self._weights.product(rows, DEPTH, COLUMNS)
        gate = net.op("Sigmoid", first) if activation == "Sigmoid" else net.op("Swish", first, version="opset4")
        return self._weights.product(net.op("Multiply", gate, second), COLUMNS, COLUMNS)

    def _rows(self, x: ir.Ref, chosen: ir.Ref) -> ir.Ref:
        """The rows of the tokens, sorted by expert."""
        net = self.net
        flat = net.reshape(chosen, -1)
        count = net.op("Squeeze", net.op("ShapeOf", flat, version="opset3", output_type="i64"), net.constant([0]))
        attributes: dict[str, Any] = {**RANKED, "mode": "min"}
        order = net.ops("TopK", flat, count, version="opset11", outputs=2, axis=0, **attributes)[1]
        token = net.op("Divide", order, net.constant(CHOSEN), m_pythondiv=True)
        return net.op("Gather", x, token, net.constant(0), version="opset8", batch_dims=0)

    def _counts(self, scores: ir.Ref, chosen: ir.Ref, one: float, counted: str) -> ir.Ref:
        """The number of tokens of each expert."""
        net = self.net
        shape = net.op("ShapeOf", scores, version="opset3", output_type="i64")
        zeros = net.op("Broadcast", net.constant(np.float32(0)), shape, version="opset3", mode="numpy")
        ones_shape = net.op("ShapeOf", chosen, version="opset3", output_type="i64")
        ones = net.op("Broadcast", net.constant(np.float32(one)), ones_shape, version="opset3", mode="numpy")
        attributes: dict[str, Any] = {"reduction": "none", "use_init_val": True}
        hot = net.op("ScatterElementsUpdate", zeros, chosen, ones, net.constant(1), version="opset12", **attributes)
        hot = hot if counted == "f32" else net.op("Convert", hot, destination_type=counted)
        return net.op("Convert", net.op("ReduceSum", hot, net.constant(0), keep_dims=False), destination_type="i64")

    def _ends(self, counts: ir.Ref, *, listed: bool) -> list[ir.Ref]:
        net, total, ends = self.net, None, list[ir.Ref]()
        zero = net.constant(0)
        numbers = net.ops("Split", counts, zero, outputs=EXPERTS, num_splits=EXPERTS) if listed else None
        for expert in range(EXPERTS):
            if numbers is None:
                count = net.op("Gather", counts, net.constant(expert), zero, version="opset8", batch_dims=0)
            else:
                count = net.op("Squeeze", numbers[expert], zero)
            total = count if total is None else net.op("Add", total, count)
            ends.append(net.reshape(total, -1))
        return ends


def steps(model: Model, tokens: int) -> list[type]:
    """The kinds of steps of a plan."""
    return [type(step) for step in plan_of(model, [(tokens, DEPTH)]).program.steps]


@pytest.mark.parametrize("tokens", [1, 2, 7, 64])
@pytest.mark.parametrize("transpose", [False, True])
def test_one_step_multiplies_the_rows_of_all_experts(tokens: int, transpose: bool) -> None:
    model = Experts(tokens, transpose=transpose).model
    assert ExpertMatMulStep in steps(model, tokens)
    agrees(model, [(tokens, DEPTH)])


@pytest.mark.parametrize("tokens", [1, 7, 64])
@pytest.mark.parametrize("counted", ["i64", "f32"])
def test_experts_of_several_products(tokens: int, counted: str) -> None:
    """As DeepSeek is exported: the counts are sums of f32 numbers, and split."""
    model = Experts(tokens, gated=True, listed=True, counted=counted).model
    assert steps(model, tokens).count(ExpertMatMulStep) == 3
    agrees(model, [(tokens, DEPTH)])


@pytest.mark.parametrize("element", ["f16", "i8", "i4"])
@pytest.mark.parametrize("transpose", [False, True])
def test_compressed_weights(element: str, transpose: bool) -> None:
    agrees(Experts(9, element=element, transpose=transpose).model, [(9, DEPTH)])


def test_any_number_of_tokens() -> None:
    model = Experts(-1).model
    assert model.outputs[0].partial_shape == irload.Shape((0, None), COLUMNS)
    plain, rng = irload.compile_model(model, optimize=False), np.random.default_rng(0)
    for jit in (False, None):
        compiled = irload.compile_model(model, jit=jit)
        for tokens in (3, 1, 5, 12, 1, 40, 2):
            x = rng.standard_normal((tokens, DEPTH)).astype(np.float32)
            close(compiled(x)[0], plain(x)[0], 1e-5)


def test_experts_without_rows() -> None:
    """All tokens choose the same two experts."""
    model = Experts(6).model
    x = np.repeat(np.random.default_rng(1).standard_normal((1, DEPTH)).astype(np.float32), 6, 0)
    with sanitizing():
        close(irload.compile_model(model)(x)[0], irload.compile_model(model, optimize=False)(x)[0], 1e-5)


@pytest.mark.parametrize(
    "changes",
    [{"one": 2.0}, {"skipped": 1}, {"gated": True, "odd": "Sigmoid"}, {"gated": True, "odd": "shared"}],
)
def test_rows_that_may_be_missing_or_differ_are_not_planned(changes: dict[str, Any]) -> None:
    model = Experts(4, **changes).model
    compiled, plain = irload.compile_model(model), irload.compile_model(model, optimize=False)
    x = np.random.default_rng(2).standard_normal((4, DEPTH)).astype(np.float32)
    assert not model.outputs[0].partial_shape.is_static
    close(compiled(x)[0], plain(x)[0], 1e-5)


def test_the_shape_is_inferred() -> None:
    assert Experts(4).model.outputs[0].shape == (4 * CHOSEN, COLUMNS)


def test_computed_weights() -> None:
    """The shape is known, but the products run by the operation."""
    model = Experts(6, element="computed").model
    assert model.outputs[0].shape == (6 * CHOSEN, COLUMNS)
    assert ExpertMatMulStep not in steps(model, 6)
    agrees(model, [(6, DEPTH)])


@pytest.mark.parametrize("element", ["f16", "u8"])
def test_counts_that_may_be_rounded_or_wrap_prove_nothing(element: str) -> None:
    assert not Experts(4, counted=element).model.outputs[0].partial_shape.is_static
