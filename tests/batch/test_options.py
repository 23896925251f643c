"""irrun batch: early ends of a job, forms of results, lists of inputs, options without effect."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from irrun.main import FINDINGS, OK, UNREADABLE, USAGE
from tests.batch.kill import MODEL, digits
from tests.batch.models import identity

LABELS = MODEL.parent / "labels.txt"


def photos(folder, sizes):
    folder.mkdir()
    for k, size in enumerate(sizes):
        Image.new("RGB", size).save(folder / f"{k:03}.png")


# -- early -------------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_whose_first_items_all_fail_stops_with_the_remedy(batch, irrun, tmp_path, workers):
    photos(tmp_path / "in", [(20 + k, 30) for k in range(200)])
    model = identity(tmp_path / "m.xml", x="?,3,8,10")
    words = (tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 8, "--workers", workers)
    report = batch(*words, model=model, code=FINDINGS)
    assert report["finished"] is False
    assert "takes 10x8 (--resize 10x8)" in report["stopped"]
    assert 8 <= report["failed"] < 100
    shown = irrun("batch", model, *words, "--force").err
    assert "stopped: the first" in shown
    assert "--keep-going runs the others" in shown
    report = batch(*words, "--force", "--keep-going", model=model, code=FINDINGS)
    assert (report["failed"], report["stopped"], report["finished"]) == (200, None, True)
    assert batch(*words, "--resume", "--resize", "10x8", "--force", model=model, code=USAGE)  # other options
    assert batch(*words, "--resize", "10x8", "--force", model=model)["done"] == 200


def test_a_job_continues_when_items_fail_for_different_reasons(batch, tmp_path):
    digits(tmp_path / "in", 30)
    for k in range(20):
        (tmp_path / "in" / f"{k:06}.npy").write_text("no array" if k % 2 else "")
    np.save(tmp_path / "in" / "000003.npy", np.zeros((1, 1, 8, 9), np.float32))
    report = batch(tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 4, code=FINDINGS)
    assert (report["done"], report["failed"], report["stopped"]) == (10, 20, None)


def test_few_items_are_all_tried(batch, tmp_path):
    photos(tmp_path / "in", [(20, 30)] * 8)
    model = identity(tmp_path / "m.xml", x="?,3,8,10")
    report = batch(tmp_path / "in", "-o", tmp_path / "out", model=model, code=FINDINGS)
    assert (report["failed"], report["stopped"], report["finished"]) == (8, None, True)


# -- outputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["r.json", "r.txt", "r.v2", "R.JSONLINES"])
def test_an_unknown_suffix_is_a_usage_error(irrun, tmp_path, name):
    digits(tmp_path / "in", 1)
    outcome = irrun("batch", MODEL, tmp_path / "in", "-o", tmp_path / name)
    assert outcome.code == USAGE
    assert "is not a supported output format" in " ".join(outcome.err.split())
    assert not (tmp_path / name).exists()
    assert irrun("batch", MODEL, tmp_path / "in", "-o", f"{tmp_path / name}/").code == OK
    assert (tmp_path / name / "000000.npz").exists()


def test_csv(batch, tmp_path):
    samples = digits(tmp_path / "in", 3)
    batch(tmp_path / "in", "-o", tmp_path / "o.csv", "--labels", LABELS)
    with open(tmp_path / "o.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = LABELS.read_text().splitlines()
    assert list(rows[0]) == ["input", *(f"probabilities[{n}]" for n in names)]
    batch(tmp_path / "in", "-o", tmp_path / "out", "--format", "npy")
    for k in range(len(samples)):
        wanted = np.load(tmp_path / "out" / f"{k:06}.npy")[0]
        array = np.array([float(v) for v in list(rows[k].values())[1:]], np.float32)
        np.testing.assert_array_equal(array, wanted)


def test_csv_of_odd_values_and_shapes(batch, tmp_path):
    model = identity(tmp_path / "m.xml", a="?", b="?,2,2", c="?,?")
    names = pa.array(['say "a, b"\nand c', None])
    table = {"a": [1.5, float("nan")], "b": [[1.0, 2, 3, 4]] * 2, "c": [[1.0], [2.0, float("inf")]], "n": names}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    batch(tmp_path / "t.parquet", "-o", tmp_path / "o.csv", model=model)
    with open(tmp_path / "o.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["input", "n", "a", "b[0,0]", "b[0,1]", "b[1,0]", "b[1,1]", "c"]
    assert [row[1:4] for row in rows[1:]] == [['say "a, b"\nand c', "1.5", "1.0"], ["", "", "1.0"]]
    assert [json.loads(row[-1]) if k else float(row[-1]) for k, row in enumerate(rows[1:])] == [1.0, [2.0, None]]


# -- lists -------------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(6)
@pytest.mark.parametrize("between", ["\n", "\r\n", "\0"])
@pytest.mark.parametrize("word", ["-", "@list.txt", "image=@list.txt", "image=-"])
def test_lists_of_inputs(batch, tmp_path, monkeypatch, between, word):
    monkeypatch.chdir(tmp_path)
    digits(tmp_path / "in", 3)
    (tmp_path / "in" / "000001.npy").rename(tmp_path / "in" / "with space.npy")
    content = between.join(["in/with space.npy", str(tmp_path / "in" / "000002.npy"), ""]).encode()
    (tmp_path / "list.txt").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert batch(word, "-o", "out")["items"] == 2
    assert sorted(f.name for f in (tmp_path / "out").glob("*.npz")) == ["000002.npz", "with space.npz"]


def test_empty_lists_are_rejected(batch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("\n\n")
    assert "the list of inputs is empty" in batch("@list.txt", "-o", "out", code=USAGE)
    assert "ghost.txt: cannot open the list" in batch("@ghost.txt", "-o", "out", code=UNREADABLE)
    (tmp_path / "list.txt").write_text("ghost.npy\n")
    assert "ghost.npy: no such file or folder" in batch("@list.txt", "-o", "out", code=UNREADABLE)


def test_images_of_one_name_in_two_formats(batch, tmp_path):
    photos(tmp_path / "in", [(10, 8)])
    Image.new("RGB", (10, 8)).save(tmp_path / "in" / "000.jpg")
    model = identity(tmp_path / "m.xml", x="?,3,8,10")
    assert batch(tmp_path / "in", "-o", tmp_path / "out", model=model)["done"] == 2
    assert sorted(f.name for f in (tmp_path / "out").glob("*.npz")) == ["000.jpg.npz", "000.png.npz"]


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "o.jsonl", "--labels", "few.txt"), "9 names, but output 'probabilities' has 10 values"),
        (("-o", "o.csv", "--labels", "few.txt"), "9 names, but output 'probabilities' has 10 values"),
        (("-o", "o.csv", "--labels", "many.txt"), "11 names, but output 'probabilities' has 10 values"),
        (("-o", "o.csv", "--labels", "empty.txt"), "empty.txt is empty; --labels takes one name per line"),
        (("-o", "o.parquet", "--labels", str(LABELS)), "--labels requires a .jsonl or .csv"),
        (("-o", "out", "--labels", str(LABELS)), "--labels requires a .jsonl or .csv"),
        (("-o", "out", "--top", "3"), "--top requires a .jsonl"),
        (("-o", "o.csv", "--top", "3"), "--top requires a .jsonl"),
        (("-o", "out", "--address", "x:1"), "--address requires --engine ray"),
        (("-o", "out", "--resize", "8x8"), "none of the inputs is an image"),
        (("-o", "out", "--channels", "bgr"), "none of the inputs is an image"),
        (("-o", "out", "--column", "image=x"), "--column requires .parquet files"),
    ],
)
def test_options_that_would_make_no_difference(irrun, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    digits(tmp_path / "in", 1)
    (tmp_path / "few.txt").write_text("".join(LABELS.read_text().splitlines(keepends=True)[:9]))
    (tmp_path / "many.txt").write_text(LABELS.read_text() + "ten\n")
    (tmp_path / "empty.txt").write_text("\n")
    outcome = irrun("batch", MODEL, "in", *words)
    assert outcome.code == USAGE
    assert said in " ".join(outcome.err.split())


@pytest.mark.parametrize("output", ["o.jsonl", "o.csv"])
def test_labels_name_only_the_outputs_of_their_number(batch, tmp_path, output):
    np.savez(tmp_path / "in.npz", boxes=np.arange(2, dtype=np.float32), scores=np.arange(3, dtype=np.float32))
    model = identity(tmp_path / "m.xml", boxes="?,2", scores="?,3")
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\n\n")
    batch(tmp_path / "in.npz", "-o", tmp_path / output, "--labels", tmp_path / "names.txt", model=model)
    text = (tmp_path / output).read_text()
    if output == "o.csv":
        assert text.splitlines()[0] == "input,boxes[0],boxes[1],scores[cat],scores[dog],scores[fox]"
    else:
        line = json.loads(text)
        assert [entry.get("label") for entry in line["scores"]] == ["fox", "dog", "cat"]
        assert [entry.get("label") for entry in line["boxes"]] == [None, None]
    (tmp_path / "names.txt").write_text("cat\n")
    words = ("-o", tmp_path / f"two.{output}", "--labels", tmp_path / "names.txt")
    said = " ".join(batch(tmp_path / "in.npz", *words, model=model, code=USAGE).split())
    assert "1 name, but the last axes differ: 'boxes' has 2, 'scores' has 3" in said


@pytest.mark.parametrize("output", ["o.jsonl", "o.csv"])
def test_labels_ignore_axes_of_size_1_at_the_end(batch, tmp_path, output):
    np.save(tmp_path / "in.npy", np.array([[3, 9, 5]], np.float32).reshape(1, 3, 1, 1))
    model = identity(tmp_path / "m.xml", scores="?,3,1,1")
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\n")
    batch(tmp_path / "in.npy", "-o", tmp_path / output, "--labels", tmp_path / "names.txt", model=model)
    text = (tmp_path / output).read_text()
    if output == "o.csv":
        assert text.splitlines()[0] == "input,scores[cat],scores[dog],scores[fox]"
    else:
        assert [entry["label"] for entry in json.loads(text)["scores"]] == ["dog", "fox", "cat"]


def test_labels_of_single_numbers(batch, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2,), np.float32))
    model = identity(tmp_path / "m.xml", a="?")
    said = batch(tmp_path / "a.npy", "-o", tmp_path / "o.jsonl", "--labels", LABELS, model=model, code=USAGE)
    assert "every output of this model is one number" in said
