"""The number of samples per inference: no padding of unusual shapes, sizes chosen by time."""

from __future__ import annotations

import numpy as np
import pytest

from irload.batch import Predictor, predict
from irload.batch.sizing import Sizing
from irload.runtime.compiled_model import InferRequest
from tests.batch.kill import MODEL, digits
from tests.batch.models import unary


@pytest.fixture
def inferences(monkeypatch):
    """The shapes of the first input of every inference."""
    shapes: list[tuple[int, ...]] = []
    infer = InferRequest.infer

    def recorded(self, inputs=None):
        shapes.append(inputs[0].shape)
        return infer(self, inputs)

    monkeypatch.setattr(InferRequest, "infer", recorded)
    return shapes


@pytest.mark.parametrize("size", [None, 64])
def test_samples_of_odd_shapes_are_not_padded(tmp_path, inferences, size):
    predictor = Predictor(
        unary(tmp_path / "m.xml", "?,?", "ReLU"), uniform=True, **({"batch_size": size} if size else {})
    )
    column = np.empty(16, object)
    column[:] = [np.ones(k, np.float32) for k in range(1, 17)]
    predictor({"x": column})
    assert sorted(inferences) == [(1, k) for k in range(1, 17)]


def test_the_last_batch_is_hardly_padded(batch, tmp_path):
    digits(tmp_path / "in", 65)
    report = batch(tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 64)
    assert (report["done"], report["batching"]) == (65, "up to 33 at a time")


def run(sizing, seconds, groups):
    """Feed groups of samples, (shape, count) each, with simulated times per inference. Returns the sizes."""
    sizes = []
    planned = set()
    for shape, count in groups:
        while count > 0:
            size = sizing.choose(shape, count)
            plan = 0.0 if (shape, size) in planned else 0.01
            planned.add((shape, size))
            sizing.record(shape, size, plan + seconds(size), min(size, count))
            sizes.append(size)
            count -= size
    return sizes


def test_sizes_grow_while_that_pays():
    sizing = Sizing(1, 64)
    sizes = run(sizing, lambda n: 0.1 + 0.01 * n, [("a", 1000)])
    assert max(sizes) == sizing.size == 64
    sizing = Sizing(1, 64)
    sizes = run(sizing, lambda n: 0.1 * n if n <= 4 else 0.2 * n, [("a", 1000)])
    assert sizing.settled
    assert sizing.size == 1
    sizing = Sizing(1, 64)
    run(sizing, lambda n: max(0.4, 0.1 * n), [("a", 1000)])
    assert sizing.size == 4
    sizing = Sizing(1, 10)
    run(sizing, lambda n: 0.1 if n < 10 else 10.0, [("a", 1000)])
    assert (sizing.size, sizing.settled) == (4, True)


def test_no_size_is_tried_without_a_possible_gain():
    assert set(run(Sizing(1, 64, remaining=6), lambda n: 0.1 + 0.01 * n, [("a", 6)])) == {1}
    assert run(Sizing(1, 64), lambda n: 0.1 + 0.01 * n, [(k, 1) for k in range(30)]) == [1] * 30


def test_a_group_is_padded_only_where_that_is_faster():
    sizing = Sizing(1, 64)
    run(sizing, lambda n: 0.1 + 0.0001 * n, [("a", 1000)])
    assert sizing.choose("a", 1) == 1
    assert sizing.choose("a", 60) == 64
    assert sizing.choose("b", 5) == 5
    assert sizing.choose("b", 500) == 64


def test_sizes_that_fail_are_not_tried_again():
    sizing = Sizing(1, 64)
    run(sizing, lambda n: 0.1 + 0.01 * n, [("a", 1000)])
    sizing.refuse(64)
    assert sizing.choose("a", 1000) == 16


@pytest.mark.parametrize("count", [1, 2, 63, 200])
def test_measured_sizes_give_the_results_of_each_alone(tmp_path, count):
    images = digits(tmp_path, count)
    alone = [p.outputs["probabilities"] for p in predict(MODEL, images, batch_size=1)]
    predictions = [p.outputs["probabilities"] for p in predict(MODEL, images)]
    np.testing.assert_allclose(predictions, alone, atol=1e-6)


def test_interaction_of_samples_is_detected_at_any_size(tmp_path):
    model = unary(tmp_path / "m.xml", "?,4", "SoftMax", 'axis="0"')
    predictor = Predictor(model)
    x = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.testing.assert_array_equal(predictor({"x": x})["y"], np.ones((40, 4), np.float32))
    assert predictor.batching == "one at a time: its samples influence each other"
