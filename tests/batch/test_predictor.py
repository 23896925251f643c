"""Predictor and predict: how samples share inferences, and that sharing does not change results."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import irload
from irload.batch import Predictor, predict
from irload.batch.items import Item, Task, WorkerOptions
from irload.batch.pool import WorkerPool
from irload.errors import InputInvalid
from tests.batch.kill import MODEL, digits
from tests.batch.models import fixed, identity, unary

MODELS = MODEL.parents[1]


@pytest.mark.parametrize(
    ("shape", "type", "attributes", "wanted"),
    [
        ("?,4", "SoftMax", 'axis="1"', "up to 16 at a time"),
        ("1,4", "SoftMax", 'axis="1"', "up to 16 at a time"),  # reshaped
        ("2..8,4", "SoftMax", 'axis="1"', "up to 8 at a time"),
        ("?,4", "SoftMax", 'axis="0"', "one at a time: its samples influence each other"),
        ("1,4", "SoftMax", 'axis="0"', "one at a time: its samples influence each other"),
    ],
)
def test_stacking_follows_the_model(tmp_path, shape, type, attributes, wanted):
    model = unary(tmp_path / "m.xml", shape, type, attributes)
    predictor = Predictor(model, batch_size=16)
    x = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    if shape.startswith("2"):
        alone = np.concatenate([irload.compile_model(model)(np.repeat(x[k : k + 1], 2, 0))[0][:1] for k in range(20)])
    else:
        alone = np.concatenate([irload.compile_model(model)(x[k : k + 1])[0] for k in range(20)])
    np.testing.assert_allclose(predictor({"x": x})["y"], alone, atol=1e-6)
    assert str(predictor.stacking) == wanted


def test_a_fixed_batch_is_padded_and_cut(tmp_path):
    predictor = Predictor(fixed(tmp_path / "m.xml", 8), batch_size=3)
    assert str(predictor.stacking) == "8 at a time"
    x = np.arange(44, dtype=np.float32).reshape(11, 4)
    np.testing.assert_array_equal(predictor({"x": x})["y"], x)
    alone = Predictor(fixed(tmp_path / "n.xml", 1), batch_size=3)
    np.testing.assert_array_equal(alone({"x": x})["y"], x)
    assert str(alone.stacking) == "one at a time: its shapes allow only one sample"


def test_models_without_an_axis_of_samples_run_one_by_one():
    predictor = Predictor(MODELS / "pad_ngraph" / "model.xml")
    assert str(predictor.stacking).startswith("one at a time: input 'arg_pad_value' of shape [] has no axis of samples")
    pairs = [np.load(MODELS / "pad_ngraph" / f"input_{k}.npy") for k in range(2)]
    (output,) = predict(MODELS / "pad_ngraph" / "model.xml", [dict(zip(("arg", "arg_pad_value"), pairs, strict=True))])
    np.testing.assert_array_equal(
        next(iter(output.outputs.values())), np.load(MODELS / "pad_ngraph" / "expected_0.npy")
    )


def test_state_does_not_pass_from_item_to_item():
    step = np.array([[1, 2, 3]], np.float32)
    predictions = list(predict(MODELS / "state" / "model.xml", [step, step]))
    assert [f.outputs["total"].tolist() for f in predictions] == [[[1, 2, 3]], [[1, 2, 3]]]


def test_other_columns_pass_through(tmp_path):
    predictor = Predictor(MODEL)
    images = digits(tmp_path, 5)
    predictions = predictor({"image": images, "id": np.arange(5)})
    assert sorted(predictions) == ["id", "probabilities"]
    np.testing.assert_allclose(predictions["probabilities"], irload.compile_model(MODEL)(images)[0], atol=1e-6)
    assert predictor({"anything": images})["probabilities"].shape == (5, 10)
    with pytest.raises(InputInvalid, match="no column for input 'image'; the batch has 'a', 'b'"):
        predictor({"a": images, "b": images})
    with pytest.raises(InputInvalid, match=r"has shape \[1,1,8,7\]"):
        predictor({"image": images[..., 1:]})
    with pytest.raises(InputInvalid, match="batch_size must be at least 1"):
        Predictor(MODEL, batch_size=0)


def test_samples_of_one_shape_share_inferences(tmp_path):
    model = unary(tmp_path / "m.xml", "?,?", "SoftMax", 'axis="1"')
    samples = [np.arange(n, dtype=np.float32) for n in (3, 5, 3, 2, 5)]
    for sample, predictions in zip(samples, predict(model, samples), strict=True):
        wanted = np.exp(sample - sample.max())
        np.testing.assert_allclose(predictions.outputs["y"], wanted / wanted.sum(), atol=1e-6)


def test_uniform_results_do_not_depend_on_other_samples(tmp_path):
    images = digits(tmp_path, 50)
    predictor = Predictor(MODEL, batch_size=16, uniform=True)
    together = predictor({"image": images})["probabilities"]
    for begin, end in ((0, 1), (3, 8), (16, 50), (49, 50)):
        np.testing.assert_array_equal(predictor({"image": images[begin:end]})["probabilities"], together[begin:end])


@pytest.mark.parametrize("workers", [0, 2])
def test_predictions_include_errors(tmp_path, workers):
    images = [*digits(tmp_path / "x", 6)]
    images[2] = images[2][:, :4]
    predictions = {p.input: p for p in predict(MODEL, images, workers=workers, batch_size=4)}
    assert sorted(predictions) == list("012345")
    assert "has shape [1,1,4,8]; the model takes [?,1,8,8]" in (predictions["2"].error or "")
    assert predictions["2"].outputs == {}
    wanted = irload.compile_model(MODEL)(images[5][None])[0][0]
    np.testing.assert_allclose(predictions["5"].outputs["probabilities"], wanted, atol=1e-6)


def test_the_source_is_consumed_as_needed():
    consumed = []

    def endless():
        while True:
            consumed.append(1)
            yield np.zeros((1, 8, 8), np.float32)

    results = predict(MODEL, endless(), batch_size=4)
    for _ in range(8):
        next(results)
    assert len(consumed) <= 12


def test_files_as_source(tmp_path):
    images = digits(tmp_path, 3)
    predictions = list(predict(irload.read_model(MODEL), tmp_path))
    assert [f.input for f in predictions] == [str(tmp_path / f"{k:06}.npy") for k in range(3)]
    np.testing.assert_allclose(
        predictions[1].outputs["probabilities"], irload.compile_model(MODEL)(images[1:2])[0], atol=1e-6
    )
    with pytest.raises(InputInvalid, match="neither files nor an iterable"):
        predict(MODEL, 5)
    with pytest.raises(InputInvalid, match="give its path, or workers=0"):
        predict(irload.read_model(MODEL), images, workers=1)


def test_several_inputs_by_name_and_by_archive(tmp_path, batch):
    model = identity(tmp_path / "m.xml", a="?,2", b="?,3")
    for k in range(4):
        pair = {"a": np.full((1, 2), k, np.float32), "b": np.full((1, 3), -k, np.float32)}
        np.savez(tmp_path / f"pair{k}.npz", **pair)
        for name, value in pair.items():
            (tmp_path / name).mkdir(exist_ok=True)
            np.save(tmp_path / name / f"{k}.npy", value)
    batch(tmp_path / "*.npz", "-o", tmp_path / "o1", model=model)
    batch(f"a={tmp_path}/a/*.npy", f"b={tmp_path / 'b'}", "-o", tmp_path / "o2", model=model)
    for k in range(4):
        for file in (tmp_path / "o1" / f"pair{k}.npz", tmp_path / "o2" / f"{k}.npz"):
            array = np.load(file)
            assert (array["a"] == k).all()
            assert (array["b"] == -k).all()
    (tmp_path / "b" / "2.npy").unlink()
    report = batch(f"a={tmp_path / 'a'}", f"b={tmp_path / 'b'}", "-o", tmp_path / "o3", model=model, code=1)
    assert [f["reason"] for f in report["failures"]] == ["there is no file for input 'b'"]


def test_new_shapes_and_weights(tmp_path, batch):
    model = unary(tmp_path / "m.xml", "1,4", "SoftMax", 'axis="1"')
    np.save(tmp_path / "x.npy", np.zeros((1, 6), np.float32))
    batch(tmp_path / "x.npy", "-o", tmp_path / "o", "--shape", "x[1,6]", model=model)
    assert np.load(tmp_path / "o" / "x.npz")["y"].shape == (1, 6)
    moved = tmp_path / "moved.xml"
    moved.write_bytes(MODEL.read_bytes())
    digits(tmp_path / "in", 2)
    batch(tmp_path / "in", "-o", tmp_path / "p", "--weights", MODEL.with_suffix(".bin"), model=moved)
    assert np.load(tmp_path / "p" / "000001.npz")["probabilities"].shape == (1, 10)


def test_an_item_that_kills_its_workers_is_abandoned(tmp_path):
    files = [str(tmp_path / f"{k:06}.npy") for k in range(6)]
    digits(tmp_path, 6)
    options = WorkerOptions(str(MODEL), batch_size=3, threads=1)
    items = [Item(k, f, str(k), {"": f}) for k, f in enumerate(files)]
    items[4] = Item(4, "deadly", "4", row=Deadly())
    records = [r for d in WorkerPool(options, 2).run(iter([Task(items[:3]), Task(items[3:])])) for r in d.records]
    assert sorted(r.name for r in records if not r.reason) == sorted(f for k, f in enumerate(files) if k != 4)
    (failed,) = [r for r in records if r.reason]
    assert failed.name == "deadly"
    assert failed.reason.startswith(
        "3 workers died while running it, the last by signal 9, as when the system is out of memory"
    )
    assert failed.is_out_of_memory


def test_items_are_unpickled_where_they_are_run():
    """Unpickling may import extension modules, which another thread must not do while libraries are listed."""
    options = WorkerOptions(str(MODEL), batch_size=1, threads=1)
    items = [Item(0, "a", "0", row=Placed(image=np.zeros((1, 8, 8), np.float32)))]
    (done,) = WorkerPool(options, 1).run(iter([Task(items)]))
    assert [r.reason for r in done.records] == [""]


class Placed(dict):
    """Ends the process if a thread other than the main one unpickles it."""

    def __reduce__(self):
        return placed, (dict(self),)


def placed(row):
    if threading.current_thread() is not threading.main_thread():
        os._exit(1)
    return Placed(row)


class Deadly(dict):
    """Kills any process that reads it."""

    def __contains__(self, key):
        os.kill(os.getpid(), signal.SIGKILL)
