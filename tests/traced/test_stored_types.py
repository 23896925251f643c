"""Traced plans store values in bf16 for products at all shapes, also where f32 would be faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import irload
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.target import host_target
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.traced import planning
from tests.plan.graphs import Net
from tests.plan.llvm.harness import DOTS


@pytest.mark.parametrize("depth", [12, 13])
def test_few_rows_are_multiplied_in_the_stored_type(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Selections with symbols fail for an odd depth that is dynamic in the file. They are repeated at each shape."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    if host_target() is None:
        pytest.skip("kernels are not written for this machine")
    backends = [LlvmBackend(replace(DOTS, effort=3), bf16=True), NumpyBackend()]
    monkeypatch.setattr(planning, "backends", lambda options: backends)
    net = Net()
    weights = net.weights(64, depth)
    model = net.model(net.op("MatMul", net.input(-1, -1), weights, transpose_a=False, transpose_b=True))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, optimize=False)
    for rows in (2, 3, 64, 4, 1):
        x = np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32)
        expected = plain(x)[0]
        np.testing.assert_allclose(compiled(x)[0], expected, atol=0.02 * float(np.abs(expected).max()))
    assert compiled._traced.families.recent
