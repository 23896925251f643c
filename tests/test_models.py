"""The shipped models give the expected results: through the API, through irrun, and through OpenVINO if supported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import irload
from irrun.main import OK, main

MODELS = Path(__file__).parents[1] / "models"
NAMES = sorted(f.parent.name for f in MODELS.glob("*/model.xml"))
UNKNOWN_TO_OPENVINO = ("pad_ngraph", "conv_onednn")


def example(name: str, kind: str) -> list[np.ndarray]:
    return [np.load(f) for f in sorted((MODELS / name).glob(f"{kind}_[0-9].npy"))]


def test_every_model_is_here():
    assert NAMES == [
        "conv_onednn",
        "conv_openvino",
        "digits",
        "dynamic",
        "loop",
        "pad_ngraph",
        "pad_openvino",
        "state",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_through_the_api(name):
    expected = example(name, "expected")
    result = irload.compile_model(MODELS / name / "model.xml")(example(name, "input"))
    assert len(result) == len(expected) > 0
    for actual, want in zip(result.values(), expected, strict=True):
        np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_through_irrun(name, tmp_path, capsys):
    inputs = sorted((MODELS / name).glob("input_*.npy"))
    assert main(["run", *map(str, (MODELS / name / "model.xml", *inputs)), "-o", str(tmp_path / "out.npz")]) == OK
    with np.load(tmp_path / "out.npz") as saved:
        for actual, want in zip(saved.values(), example(name, "expected"), strict=True):
            np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in UNKNOWN_TO_OPENVINO])
def test_through_openvino(name):
    compiled = ov.Core().compile_model(MODELS / name / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    result = compiled(example(name, "input"))
    for actual, want in zip(result.values(), example(name, "expected"), strict=True):
        np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_layers_are_declared_as_inferred(name, capsys):
    assert main(["infer", str(MODELS / name / "model.xml")]) == OK
    assert "all as declared" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_models_are_small(name):
    assert sum(f.stat().st_size for f in (MODELS / name).iterdir()) < 200_000


@pytest.mark.nightly
def test_the_digits_that_no_training_saw(capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(MODELS)
        _, (images, digits) = importlib.import_module("make_digits").data()
    answers = irload.compile_model(MODELS / "digits" / "model.xml")(images)[0].argmax(1)
    assert (answers == digits).mean() >= 0.97
    for file in (MODELS / "digits").glob("digit_*_*.npy"):
        image, digit = np.load(file), int(file.stem.split("_")[1])
        assert digit in digits[(images == image).all((1, 2, 3))]


def test_state_lasts_until_it_is_reset():
    request = irload.compile_model(MODELS / "state" / "model.xml").create_infer_request()
    (step,) = example("state", "input")
    for k in (1, 2, 3):
        np.testing.assert_array_equal(request.infer(step)[0], k * step)
    request.reset_state()
    np.testing.assert_array_equal(request.infer(step)[0], step)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_the_loop_runs_its_trip_count(count):
    x = np.array([[1, 3]], np.float32)
    result = irload.compile_model(MODELS / "loop" / "model.xml")([np.int64(count), x])
    np.testing.assert_array_equal(result["last"], x * 2**count)
    np.testing.assert_array_equal(
        result["every"], np.concatenate([np.zeros((0, 2)), *(x * 2**k for k in range(1, count + 1))])
    )


@pytest.mark.parametrize("script", ["make_seeds", "make_small"])
def test_the_scripts_make_these_very_files(script, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(MODELS)
    monkeypatch.delitem(sys.modules, script, raising=False)
    module = importlib.import_module(script)
    monkeypatch.setattr(module, "HERE", tmp_path)
    for name in {"make_seeds": ("pad_openvino", "pad_ngraph", "conv_openvino", "conv_onednn")}.get(
        script, ("dynamic", "state", "loop")
    ):
        getattr(module, name)()
        files = {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()}
        assert files == {f.name: f.read_bytes() for f in (MODELS / name).iterdir()}
