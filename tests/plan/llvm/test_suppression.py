"""Compiled suppression selects the same boxes as `suppress`, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.core.tensor import Array
from irload.ops.detection.boxes import IOU, Iou, Suppressing, suppress
from irload.ops.registry import resolve
from irload.plan.backends.llvm import available
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.kernels import suppression
from irload.plan.backends.llvm.kernels.suppression import cells_of, group_cells, suppressor
from irload.plan.backends.llvm.target import Target
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS, guarded

F = np.float32
ODD = np.array([0, -0.0, 1, 2, 3.5, -1, 1e-30, 3e38, -3e38, np.inf, -np.inf, np.nan], F)


def random_boxes(rng: np.random.Generator, count: int) -> Array:
    kind = rng.integers(5)
    if kind == 0:
        return rng.choice(ODD, (count, 4))
    corners = rng.integers(0, 12, (count, 2, 2)) if kind == 1 else rng.random((count, 2, 2)) * 10
    boxes = np.concatenate([corners.min(1), corners.max(1)], -1).astype(F)
    if kind == 4:  # classes apart, along one axis or both
        boxes += (rng.integers(0, 40, (count, 1)) * rng.choice([0, 1, 12], 4)[[0, 1, 0, 1]]).astype(F)
    return boxes if kind < 3 or kind == 4 else rng.permuted(boxes, axis=1)  # corners in any order


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("seed", range(60))
def test_the_same_boxes_are_selected(seed: int, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    if seed % 3:
        monkeypatch.setattr(suppression, "MANY_BOXES", 100)
    boxes = random_boxes(rng, int(rng.integers(0, 400)))
    memory = guarded(boxes.shape)
    memory[:] = boxes
    threshold = float(rng.choice([0, 0.1, 1 / 3, 0.5, 0.7, 0.95, 1, -0.5, np.nan, 1e300]))
    limit = [None, 0, -1, 1, int(rng.integers(1, 60))][seed % 5]
    how = Iou(float(rng.choice([0, 1])), bridge=bool(rng.integers(2)))
    eta = float(rng.choice([1, 0.9, 0.5]))
    counts = None if seed % 2 else np.bincount(rng.choice(9, len(boxes), p=[0.6, 0, *[0.4 / 7] * 7]), minlength=9)
    with np.errstate(all="ignore"):
        wanted = suppress(boxes, threshold, limit, counts=counts, eta=eta, overlap=how)
        selected = suppressor(target)(memory, threshold, limit, counts=counts, eta=eta, overlap=how)
    assert selected.tolist() == wanted.tolist()
    assert selected.dtype == wanted.dtype


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("axis", [0, 1])
def test_boxes_that_overlap_are_in_neighbouring_cells(axis: int, offset: float) -> None:
    rng = np.random.default_rng(axis)
    corners = rng.integers(0, 5, (600, 2)).astype(F)
    corners[:, axis] += 5 * rng.integers(0, 50, 600)
    boxes = np.concatenate([corners, corners + rng.integers(0, 5, (600, 2))], -1).astype(F)
    cells = cells_of(boxes, offset)
    overlaps = Iou(offset, bridge=True)(boxes[:, None], boxes) > 0
    assert np.abs(cells[:, None] - cells)[overlaps].max() == 1
    assert cells.min() == 1
    assert cells.max() > 40


def test_cells_of_different_groups_are_not_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suppression, "MANY_BOXES", 100)
    corners = np.random.default_rng(0).random((600, 2)).astype(F) * 90
    counts = np.array([0, 200, 3, 250, 0, 147])
    cells = group_cells(np.concatenate([corners, corners + 1], -1), counts, 0, divided=True)
    parts = [set(part.tolist()) for part in np.split(cells, np.cumsum(counts)[:-1])]
    assert [len(part) > 1 for part in parts] == [False, True, False, True, False, True]
    assert min(parts[1]) == 3  # cells 1 and 2: the first group, which is empty, and a cell without boxes
    for before, after in zip(parts[1:4], [parts[2], parts[3], parts[5]], strict=True):
        assert min(after) >= max(before) + 2


@pytest.mark.parametrize("boxes", [np.zeros((300, 4), F), np.full((300, 4), 3e38, F), np.eye(300, 4, dtype=F)])
def test_boxes_without_a_length_and_huge_boxes_are_in_one_cell(boxes: Array) -> None:
    assert (cells_of(boxes, 0) == 1).all()


def test_other_types_and_other_overlaps_are_left_to_numpy() -> None:
    run = suppressor(TARGETS[0])
    boxes = random_boxes(np.random.default_rng(1), 100)
    assert run(boxes.astype(np.float64), 0.3).tolist() == suppress(boxes.astype(np.float64), 0.3).tolist()
    assert run(boxes[::-2], 0.3).tolist() == suppress(boxes[::-2], 0.3).tolist()
    apart = run(boxes, 0.3, overlap=lambda a, b: 0 * IOU(a, b))
    assert apart.tolist() == list(range(100))


def test_the_back_end_gives_operations_that_suppress_compiled_code() -> None:
    backend = LlvmBackend(TARGETS[0])
    op = resolve("NonMaxSuppression", "opset9")[0]()
    own = backend.operation(op)
    assert isinstance(own, Suppressing)
    assert own.suppress is not suppress
    assert op.suppress is suppress
    assert own.attributes == op.attributes
    other = resolve("MatrixNms", "opset8")[0]()
    assert backend.operation(other) is other


def test_a_model_selects_the_same_with_and_without_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: TARGETS[0])
    net = Net()
    boxes, scores = net.input(1, 500, 4), net.input(1, 7, 500)
    numbers = [net.constant(np.array(v)) for v in (np.int64(30), F(0.4), F(0.2))]
    model = net.model(net.op("NonMaxSuppression", boxes, scores, *numbers, version="opset9", outputs=3))
    rng = np.random.default_rng(3)
    corners = rng.random((1, 500, 2)).astype(F) * 9
    inputs = [
        np.concatenate([corners, corners + rng.random((1, 500, 2)).astype(F) * 4], -1),
        rng.random((1, 7, 500), F),
    ]
    plain = irload.compile_model(model, jit=False)(inputs)
    for actual, wanted in zip(irload.compile_model(model, jit=True)(inputs).values(), plain.values(), strict=True):
        assert len(actual) > 1
        np.testing.assert_array_equal(actual, wanted, strict=True)
