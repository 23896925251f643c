"""Random programs with symbols in batch and space give the same bits as plans of one shape."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core.shape import Shape
from irload.core.tensor import Array
from irload.runtime.compiled_model import CompiledModel
from tests.fuzz.programs.feed import fed
from tests.fuzz.programs.graph import ir
from tests.fuzz.programs.make import make
from tests.harness.tiers import tiered
from tests.plan.graphs import Net

GROWTH: tuple[dict[int, int], ...] = ({}, {0: 1}, {0: 1, 2: 2, 3: 2, 4: 2}, {0: 3, 2: 2, 3: 4, 4: 2}, {2: 1, 3: 3}, {})
"""The growth of each axis, for consecutive inferences."""


def results(compiled: CompiledModel, feed: list[Array]) -> list[tuple[str, tuple[int, ...], bytes]] | str:
    """The results as bytes, or the kind of the error."""
    try:
        inferred = compiled.create_infer_request().infer([a.copy() for a in feed]).values()
    except irload.IRError as error:
        return type(error).__name__
    return [(a.dtype.name, a.shape, a.tobytes()) for a in inferred]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(300))
def test_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    model = irload.read_model(*ir(make(900, seed)))
    base = [[d.lo if d.is_static else 2 for d in port.partial_shape.dims] for port in model.inputs]
    free = [[k for k in range(len(sizes)) if k != 1 or len(sizes) < 3] for sizes in base]
    names = [port.any_name for port in model.inputs]
    try:
        model.reshape(
            {
                name: Shape(*(None if k in axes else n for k, n in enumerate(sizes)))
                for name, axes, sizes in zip(names, free, base, strict=True)
            }
        )
        compiled = CompiledModel(model, 1)
    except irload.IRError:
        pytest.skip("the program fits one shape only")
    for turn, more in enumerate(GROWTH):
        feed = [
            fed(
                port.node.name,
                port.element_type,
                tuple(n + more.get(k, 0) if k in axes else n for k, n in enumerate(sizes)),
                turn % 3,
            )
            for port, axes, sizes in zip(model.inputs, free, base, strict=True)
        ]
        assert results(compiled, feed) == results(CompiledModel(model, 1), feed)


@pytest.mark.parametrize("lanes", tiered((1, 2, 4, 9), tuple(range(1, 10))))
def test_sums_of_short_rows(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the terms is the same, whether the length of a row is compiled in or read."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x = net.input(-1, -1)
    axes = net.constant([1])
    norm = net.op("ReduceL2", x, axes, version="opset4", keep_dims=True)
    mvn = net.op("MVN", x, axes, version="opset6", eps=1e-6, eps_mode="inside_sqrt", normalize_variance=True)
    model = net.model(norm, mvn, net.op("SoftMax", x, axis=1))
    compiled, rng = CompiledModel(model, 1), np.random.default_rng(lanes)
    for rest in (0, 1, 2, 7):
        feed = [rng.standard_normal((3, 8 * lanes + rest)).astype(np.float32)]
        assert results(compiled, feed) == results(CompiledModel(model, 1), feed)
