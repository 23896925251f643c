"""`make models`: its table for correct and wrong models, and for models that OpenVINO cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from tests.agreement import feeding, judging
from tests.agreement.__main__ import find, main

MODELS = Path(__file__).parent.parent / "models"


def judged(*words: object) -> tuple[int, str]:
    """Return exit code and output of `make models`. Runs in a new process: it forks, and this one has threads."""
    command = [sys.executable, "-m", "tests.agreement", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_the_models_of_the_project_are_clean():
    code, shown = judged(MODELS / "state", MODELS / "digits")
    assert (code, shown.splitlines()[-1].split(", ")[:2]) == (0, ["2 models", "2 clean"])


def test_a_damaged_model_is_named_and_fails(tmp_path: Path):
    text = (MODELS / "state" / "model.xml").read_text().replace('type="Add"', 'type="Odd"')
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes((MODELS / "state" / "model.bin").read_bytes())
    (tmp_path / "other.xml").write_text("<annotation/>")
    code, shown = judged(tmp_path, "--json")
    assert code == 1
    document = json.loads(shown)
    assert [m["model"] for m in document["models"]] == [tmp_path.name]
    assert document["failed"] == 1
    assert "Odd" in document["models"][0]["load"]


def test_a_folder_without_models_is_a_usage_error(tmp_path: Path):
    assert main([str(tmp_path)]) == 2
    assert find([str(MODELS / "state" / "model.xml")]) != []


def test_differences_are_in_standard_deviations():
    a = np.array([0.0, 2.0, 4.0])
    assert judging.deviation(np.array([0.0, 2.0, 5.0]), a) == pytest.approx(1 / np.std(a))
    assert judging.deviation(a[:2], a) == float("inf")
    assert judging.deviation(np.array([np.nan, 1.0]), np.array([1.0, 1.0])) == float("inf")
    assert judging.deviation(np.array([np.inf, 1.0]), np.array([np.inf, 1.0])) == 0
    assert judging.deviation(np.array([3.0]), np.array([2.0])) == 0.5


def test_a_row_fails_by_its_numbers():
    row = judging.Row("m", "f32", plan={"1": 1e-6, "2": 1e-3}, runtime=1e-5)
    assert row.faults == ["plan at 2 threads against plain: 1.0e-03"]
    assert judging.Row("m", "f16", plan={"1": 1e-3}, runtime=float("nan")).faults == ["against OpenVINO: nan"]
    row = judging.Row("m", "f16", plan={"1": 3e-2}, judge="OpenVINO", runtime=0.1)
    assert row.faults == ["plan at 1 threads against OpenVINO: 3.0e-02"]


def test_inputs_of_unknown_size_are_offered_in_several():
    wanted = [feeding.Wanted(et.f32, Shape.parse("?,3,16..32,?")), feeding.Wanted(et.i64, Shape.parse("?,5"), 3)]
    offered = list(feeding.candidates(wanted))
    assert len(offered) == 16
    for picture, indices in offered:
        assert picture.shape[0] == indices.shape[0]
        assert 16 <= picture.shape[2] <= 32
        assert 0 <= indices.min() <= indices.max() < 3


def test_a_quantized_model_may_be_as_far_as_a_rounding_carries():
    row = judging.Row("m", "f32", plan={"1": 0.3}, runtime=0.3, sensitivity=0.1)
    assert len(row.faults) == 1
    row.quantized = True
    assert row.faults == []
    row.sensitivity = 0.01
    assert len(row.faults) == 2
