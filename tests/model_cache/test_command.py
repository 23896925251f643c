"""irrun run: uses the plan cached by the last run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from irload.model_cache import models_folder
from irrun.main import FINDINGS, OK, USAGE
from tests.cli.conftest import irrun  # noqa: F401
from tests.model_cache.conftest import image, write

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "run.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def fed(tmp_path):
    np.save(tmp_path / "x.npy", image())
    return tmp_path / "x.npy"


def test_the_second_run_uses_the_cached_plan(irrun, model, fed):  # noqa: F811
    documents = [irrun("run", model, fed, "--json").json for _ in range(2)]
    for document in documents:
        Draft202012Validator(SCHEMA).validate(document)
    assert [document["cached"] for document in documents] == [False, True]
    times = ("cached", "planning_seconds", "seconds")
    first, second = ({k: v for k, v in document.items() if k not in times} for document in documents)
    assert first == second
    assert "loaded the plan from the cache in" in irrun(model, fed).err
    assert irrun("cache", "--json").json["entries"][1]["count"] == 1


def test_another_shape_is_planned(irrun, tmp_path, fed):  # noqa: F811
    """A model with a dynamic batch has a cached plan for the first one only."""
    path = write(tmp_path / "open", batch=-1)
    np.save(tmp_path / "one.npy", image(batch=1))
    runs = [irrun("run", path, tmp_path / name) for name in ("x.npy", "x.npy", "one.npy")]
    assert ["loaded the plan from the cache in" in run.err for run in runs] == [False, True, False]


@pytest.mark.parametrize(
    "words", [["--no-cache"], ["--shape", "x[2,3,9,9]"], ["--profile"], ["--explain"], ["--check-finite"], ["--no-jit"]]
)
def test_other_options_do_not_use_the_cache(irrun, model, fed, words):  # noqa: F811
    for _ in range(2):
        done = irrun("run", model, fed, *words)
        assert done.code == OK
        assert "planned in" in done.err
    assert models_folder().contents().count == 0


def test_outputs_and_labels(irrun, model, fed, tmp_path):  # noqa: F811
    for name in ("a.npy", "b.npy"):
        assert irrun("run", model, fed, "-o", tmp_path / name, "--top", 2).code == OK
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_errors_are_the_same(irrun, model, fed, tmp_path):  # noqa: F811
    np.save(tmp_path / "wrong.npy", image(batch=1))
    irrun("run", model, fed)
    for words in (["wrong.npy"], [], ["z=x.npy"]):
        outcomes = [
            irrun("run", model, *(tmp_path / w if "=" not in w else w for w in words), *more)
            for more in ([], ["--no-cache"])
        ]
        assert outcomes[0].code == outcomes[1].code == USAGE
        assert outcomes[0].err == outcomes[1].err


def test_warnings_are_the_same(irrun, fed, tmp_path):  # noqa: F811
    path = write(tmp_path / "untrue", channels=4)
    first, second = (irrun("run", path, fed) for _ in range(2))
    assert first.err.split("planned")[0] == second.err.split("loaded")[0] != ""
    assert irrun("run", path, fed, "--strict").code == FINDINGS
