"""irrun cache: lists the cached files and removes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from irload.model_cache import models_folder
from irload.plan.backends.llvm.cache import ObjectCache
from irrun.main import OK, USAGE
from tests.cli.conftest import MODELS, irrun_process

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "cache.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def entries(irrun, *words) -> dict[str, tuple[int, int]]:
    done = irrun("cache", *words, "--json")
    assert done.code == OK
    Draft202012Validator(SCHEMA).validate(done.json)
    return {entry["what"]: (entry["count"], entry["bytes"]) for entry in done.json["entries"]}


def test_no_plan_is_cached_before_the_first_run(irrun, folder):
    assert set(entries(irrun).values()) == {(0, 0)}
    assert not folder.exists()


def test_cached_files_are_counted_and_removed(irrun, folder):
    ObjectCache().store("one", b"x" * 100)
    ObjectCache().store("another", b"y" * 1000)
    models_folder().write("a", [b"z" * 10])
    (folder / "tuned.json").write_text("{}", encoding="ascii")
    (folder / "note.txt").write_text("not ours", encoding="ascii")
    usage = entries(irrun)
    assert usage["compiled kernels"] == (2, 1100 + 2 * 32)
    assert usage["compiled models"] == (1, 10)
    assert usage["tuning"] == (1, 2)
    done = irrun("cache", "--clear", "--json")
    assert done.json["cleared"]
    assert done.json["removed_bytes"] == 1100 + 2 * 32 + 10 + 2
    assert set(entries(irrun).values()) == {(0, 0)}
    assert (folder / "note.txt").exists()


def test_the_table_names_the_folder(irrun, folder):
    ObjectCache().store("one", b"x" * 100)
    done = irrun("cache")
    assert done.code == OK
    assert "kernels" in done.out
    assert f"in {folder}\n" in done.out
    assert "removed 132 bytes" in irrun("cache", "--clear").out


def test_there_are_no_arguments(irrun):
    assert irrun("cache", "model.xml").code == USAGE


def test_an_unusable_cache_is_one_line(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    digits, variables = MODELS / "digits", {"IRLOAD_CACHE_DIR": str(tmp_path / "file")}
    done = irrun_process(digits / "model.xml", digits / "digit_7_0.npy", "--tune", **variables)
    assert done.returncode == OK
    assert done.stderr.startswith("irrun: warning: ")
    assert str(tmp_path / "file") in done.stderr.splitlines()[0]
    assert ".py" not in done.stderr, "no source line"
