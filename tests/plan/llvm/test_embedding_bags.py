"""Compiled sums of rows equal `sum_rows`, up to the order of additions."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.errors import ExecutionError
from irload.ops.sparse.embedding import sum_rows
from irload.plan.backends.llvm.kernels import embedding_bags
from irload.plan.backends.llvm.kernels.embedding_bags import row_summer
from irload.plan.backends.llvm.target import Target
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS, guarded


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("columns", [(), (1,), (7,), (16,), (3, 11), (64,), (131,), (257,)], ids=str)
def test_sums(columns: tuple[int, ...], target: Target) -> None:
    rng = np.random.default_rng(len(columns))
    table = guarded((9, *columns), at_end=True)
    table[:] = rng.standard_normal(table.shape)
    compiled = row_summer(target)
    for ends in ([0], [0, 0], [0, 3, 3, 8], [2, 3, 4, 44, 46]):
        indices = rng.integers(0, 9, ends[-1]).astype(rng.choice([np.int32, np.int64]))
        indices[: ends[0]] = 99  # before the first bag
        for weights in (None, rng.standard_normal(len(indices)).astype(np.float32)):
            arguments = table, indices, np.array(ends, np.int64), weights
            np.testing.assert_allclose(compiled(*arguments), sum_rows(*arguments), rtol=1e-5, atol=1e-5)


def test_indices_out_of_range_are_reported() -> None:
    table = np.ones((4, 5), np.float32)
    for index in (4, -1):
        with pytest.raises(ExecutionError, match=f"index {index} is outside the 4 rows"):
            row_summer(TARGETS[0])(table, np.array([0, index]), np.array([0, 2]), None)


def test_plans_use_compiled_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    indices, offsets = net.integers(-1), net.integers(-1)
    model = net.model(net.op("EmbeddingBagOffsetsSum", net.weights(20, 12), indices, offsets, version="opset3"))
    monkeypatch.setattr(embedding_bags, "sum_rows", None)
    x = [np.array([3, 19, 0, 7]), np.array([0, 1, 1])]
    plain = irload.compile_model(model, 1, optimize=False)(x)[0]
    np.testing.assert_allclose(irload.compile_model(model, 1)(x)[0], plain, rtol=1e-6)
