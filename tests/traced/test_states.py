"""Random decoders give the results of plain execution after any sequence of inferences and changes of state."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.runtime.traced import TracedPlans
from tests.harness.tiers import tiered
from tests.plan.graphs import Net
from tests.traced.states import Decoder


class Pair:
    """A request by plans and one by plain execution."""

    def __init__(self, decoder: Decoder, models: tuple[irload.CompiledModel, irload.CompiledModel]) -> None:
        self.decoder = decoder
        self.requests = [model.create_infer_request() for model in models]
        self.batch, self.length = 0, 0
        self.saved: list[list[Array]] | None = None

    def turn(self, rng: np.random.Generator) -> None:
        """Run one inference; sometimes change the state before it."""
        chance = rng.random()
        order: Array | None = None
        if not self.batch or chance < 0.06:
            for request in self.requests:
                request.reset_state()
            self.batch, self.length = int(rng.integers(1, 4)), 0
        elif chance < 0.14:
            self.saved = [[s.state.copy() for s in request.query_state()] for request in self.requests]
            self.kept = self.batch, self.length
        elif chance < 0.2 and self.saved is not None:
            for request, saved in zip(self.requests, self.saved, strict=True):
                for state, value in zip(request.query_state(), saved, strict=True):
                    state.state = value
            self.batch, self.length = self.kept
        elif chance < 0.3 and self.decoder.has_beam:
            order = rng.integers(self.batch, size=int(rng.integers(1, 4))).astype(np.int32)
            self.batch = len(order)
        rows = int(rng.choice([1, 1, 1, 1, 2, 5, 30]))
        self.length += rows
        inputs: list[Array] = [rng.standard_normal((self.batch, rows, self.decoder.width)).astype(np.float32)]
        if self.decoder.has_mask:
            mask = (rng.random((self.batch, self.length)) < 0.9).astype(np.int64)
            inputs.append(mask)
        if self.decoder.has_beam:
            inputs.append(np.arange(self.batch, dtype=np.int32) if order is None else order)
        self.infer(inputs)

    def infer(self, inputs: list[Array]) -> None:
        actual, expected = ([*r.infer([a.copy() for a in inputs]).values()] for r in self.requests)
        states = ([s.state for s in r.query_state()] for r in self.requests)
        for a, b in zip([*actual, *next(states)], [*expected, *next(states)], strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * max(1.0, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize("seed", range(tiered(3, 200)))
def test_random_decoders(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    rng = np.random.default_rng([seed, 1])
    decoder = Decoder(seed)
    jit = None if rng.random() < 0.85 else False
    models = (
        irload.compile_model(decoder.model, int(rng.integers(1, 3)), jit=jit),
        irload.compile_model(decoder.model, 1, optimize=False),
    )
    pairs = [Pair(decoder, models), Pair(decoder, models)]
    for _ in range(24):
        pairs[int(rng.integers(2))].turn(rng)


@pytest.mark.parametrize("traces", [True, False])
def test_a_variable_may_have_another_shape_than_its_initial_value(
    traces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input of a ReadValue has a new length, but the variable is not reset and keeps its value."""
    if not traces:
        monkeypatch.setattr(TracedPlans, "find", lambda *_: None)
    net = Net()
    x = net.input(1, -1, 8)
    read = net.op("ReadValue", x, version="opset6", variable_id="v", variable_type="dynamic", variable_shape="...")
    kept = net.op("Assign", read, version="opset6", variable_id="v")
    model = net.model(net.op("MatMul", kept, net.weights(8, 4), transpose_a=False, transpose_b=False))
    planned, expected = (irload.compile_model(model, 1, optimize=optimize) for optimize in (True, False))
    for seed, length in enumerate((9, 12, 5)):
        data = np.random.default_rng(seed).standard_normal((1, length, 8)).astype(np.float32)
        a, b = planned(data)[0], expected(data)[0]
        assert a.shape == b.shape == (1, 9, 4)
        np.testing.assert_allclose(a, b, rtol=1e-5)
