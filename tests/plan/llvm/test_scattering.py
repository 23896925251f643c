"""Compiled reductions of ScatterElementsUpdate give the bits of `reduce_along`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.core.tensor import Array
from irload.errors import ExecutionError
from irload.ops.movement.scatter import ScatterElementsUpdate12, reduce_along
from irload.plan.backends.llvm.kernels import scattering
from irload.plan.backends.llvm.kernels.scattering import along_reducer
from irload.plan.backends.llvm.target import Target
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS, guarded

SHAPES = [(5,), (1,), (3, 7), (7, 64), (4, 33), (2, 3, 5), (2, 4, 3, 17), (1, 6, 131)]


def _numbers(rng: np.random.Generator, dtype: type[np.number], shape: tuple[int, ...]) -> Array:
    """Random numbers between protected pages; a few of them are NaN or limits of integers."""
    x = guarded(shape, at_end=bool(rng.random() < 0.5)) if dtype is np.float32 else np.empty(shape, dtype)
    x[...] = rng.standard_normal(shape) * 9
    x[rng.random(shape) < 0.1] = np.nan if dtype is np.float32 else np.iinfo(dtype).max  # type: ignore[type-var]
    return x


@pytest.mark.parametrize("reduction", ["sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_reductions(target: Target, dtype: type[np.number], reduction: str) -> None:
    rng = np.random.default_rng(len(reduction))
    for shape in SHAPES:
        axis, count = int(rng.integers(len(shape))), int(rng.choice([1, 4, 40]))
        updated = (*shape[:axis], count, *shape[axis + 1 :])
        indices = rng.integers(-shape[axis], shape[axis], updated).astype(rng.choice([np.int32, np.int64]))
        row = indices[tuple(slice(None) if k == axis else slice(1) for k in range(len(shape)))]
        data, updates = _numbers(rng, dtype, shape), _numbers(rng, dtype, updated)
        for each in (indices, np.broadcast_to(row, updated), np.broadcast_to(row, updated).copy()):
            expected, result = data.copy(), data.copy()
            with np.errstate(all="ignore"):
                reduce_along(expected, each, updates, axis, reduction)
                along_reducer(target)(result, each, updates, axis, reduction)
            np.testing.assert_array_equal(result, expected)


def test_indices_of_a_part_of_the_data() -> None:
    """NumPy reduces at indices with a dim that is shorter than the dim of the data."""
    rng = np.random.default_rng(0)
    updates, indices = rng.standard_normal((3, 2)).astype(np.float32), np.array([[0, 4], [0, 1], [2, 4]])
    expected, result = np.zeros((5, 6), np.float32), np.zeros((5, 6), np.float32)
    reduce_along(expected, indices, updates, 0, "sum")
    along_reducer(TARGETS[0])(result, indices, updates, 0, "sum")
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("index", [4, -5])
@pytest.mark.parametrize("width", [1, 20])
def test_indices_out_of_range_are_reported(width: int, index: int) -> None:
    indices = np.broadcast_to(np.array([[1], [index]]), (2, width))
    with pytest.raises(ExecutionError, match=f"index {index} is out of range for an axis of 4"):
        along_reducer(TARGETS[0])(np.zeros((4, width), np.float32), indices, np.ones((2, width)), 0, "sum")


@pytest.mark.parametrize("reduction", ["sum", "mean", "max"])
@pytest.mark.parametrize("use_init_val", [True, False])
def test_plans_use_compiled_reductions(monkeypatch: pytest.MonkeyPatch, reduction: str, *, use_init_val: bool) -> None:
    """As in a graph network: the rows of the sources of edges are added to the rows of their targets."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    rows, targets = net.input(9, 24), net.integers(9)
    index = net.op("Unsqueeze", targets, net.constant([1]))
    wide = net.op("Broadcast", index, net.constant([9, 24]), version="opset3", mode="bidirectional")
    data, axis = net.weights(6, 24), net.constant(np.array(0))
    known: dict[str, Any] = {"reduction": reduction, "use_init_val": use_init_val}
    model = net.model(net.op("ScatterElementsUpdate", data, wide, rows, axis, version="opset12", **known))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((9, 24)).astype(np.float32), rng.integers(-6, 6, 9)]
    plain = irload.compile_model(model, 1, optimize=False)(inputs)[0]
    for holder in (ScatterElementsUpdate12, scattering):
        monkeypatch.setattr(holder, "reduce_along", None)
    np.testing.assert_array_equal(irload.compile_model(model, 1)(inputs)[0], plain)
