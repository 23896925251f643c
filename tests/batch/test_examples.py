"""The scripts of examples/ run as documented. (The one on Ray: tests/ray.)"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import irload
from tests.batch.kill import MODEL

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *words):
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_batch_in_ten_lines():
    lines = run("batch.py").splitlines()
    assert len(lines) == 20
    assert all(line.split()[0].split("_")[1] == line.split()[1] for line in lines)
    assert len((EXAMPLES / "batch.py").read_text().splitlines()) <= 10


def test_images_are_classified(tmp_path):
    model = irload.compile_model(MODEL)
    run("classify_images.py", tmp_path / "top.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "top.jsonl").read_text().splitlines()]
    assert len(lines) == 20
    for line in lines:
        assert line["probabilities"][0]["index"] == int(Path(line["input"]).stem.split("_")[1])
        assert "label" in line["probabilities"][2]
        (wanted,) = model(np.load(MODEL.with_name(f"{Path(line['input']).stem}.npy")))[0]
        assert line["probabilities"][0]["value"] == pytest.approx(wanted.max(), abs=0.01)  # pixels of 8 bits


def test_embeddings_in_parquet(tmp_path):
    assert "20 embeddings" in run("embed_to_parquet.py", tmp_path / "e.parquet")
    rows = pq.read_table(tmp_path / "e.parquet").to_pylist()
    assert all(np.argmax(row["embedding"]) == int(row["file"].split("_")[1]) for row in rows)


def test_the_backbone_is_cut_off(tmp_path):
    shown = run("cut_backbone.py", tmp_path / "backbone.xml")
    assert shown.splitlines()[0] == "pool1: float32[1, 32, 2, 2]"
    assert [p.any_name for p in irload.read_model(tmp_path / "backbone.xml").outputs] == ["pool1"]


def test_photos_are_classified(tmp_path):
    shown = run("photo_classifier.py", tmp_path / "photos.xml")
    assert "a photo of three: three" in shown
    assert "a photo of seven: seven" in shown
    assert str(irload.read_model(tmp_path / "photos.xml").inputs[0]) == "<photo u8[?,?,?,1]>"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.name)
def test_the_arguments_of_a_script_are_documented(file):
    """Without arguments, a script that needs some prints its usage, the same as in examples/README.md."""
    if "sys.argv" not in file.read_text():
        return
    if "import ray" in file.read_text():
        pytest.importorskip("ray")
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    usage = ran.stderr.strip().removeprefix(f"usage: {file.parent}{os.sep}")
    assert usage.startswith(f"{file.name} ")
    assert f"| `{usage}` |" in (EXAMPLES / "README.md").read_text()
    assert f"python examples/{usage}\n" in file.read_text()


def test_every_example_is_executed():
    tests = Path(__file__).read_text() + (Path(__file__).parents[1] / "ray" / "test_ray_engine.py").read_text()
    assert [f.name for f in EXAMPLES.glob("*.py") if f'"{f.name}"' not in tests] == []
