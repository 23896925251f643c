"""Results stay inside the output, and each is stored under its item, for all names and changes of inputs."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from irload.batch.items import Item
from irload.batch.manifest import Manifest
from irload.batch.names import inner, shown
from irload.batch.sinks import FolderSink
from irload.errors import InputInvalid
from irrun.main import FINDINGS, USAGE
from tests.batch.kill import MODEL, digits
from tests.batch.models import identity

ONE = np.ones((1, 4), np.float32)


@pytest.fixture
def model(tmp_path):
    return identity(tmp_path / "m.xml", x="?,4")


def everything(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def write_table(path, count=4, **columns):
    table = {"x": pa.array([[float(k)] * 4 for k in range(count)], pa.list_(pa.float32())), **columns}
    pq.write_table(pa.table(table), path)


# -- outside -----------------------------------------------------------------------------------------------------------


def test_rows_of_a_table_stay_in_the_folder(batch, model, tmp_path):
    (tmp_path / "data").mkdir()
    write_table(tmp_path / "data" / "rows.parquet")
    batch(tmp_path / "data" / "rows.parquet", "-o", tmp_path / "out", model=model)
    assert everything(tmp_path / "data") == ["rows.parquet"]
    assert [f for f in everything(tmp_path / "out") if f.endswith("npz")] == [f"rows/row_{k}.npz" for k in range(4)]


@pytest.mark.parametrize("key", ["/etc/x", "../x", "a/../../x", "", ".batch/manifest", "..", "a/\0"])
def test_keys_that_lead_out_are_rejected(tmp_path, key):
    with pytest.raises(InputInvalid):
        inner(key)
    sink = FolderSink(tmp_path / "out", tmp_path, "npz", ("y",))
    (record,) = sink.store([(Item(0, "x", key), (ONE,), False)])
    assert record.reason
    assert everything(tmp_path) == []


def test_links_do_not_lead_out(batch, model, tmp_path):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    np.save(tmp_path / "in" / "sub" / "a.npy", ONE)
    np.save(tmp_path / "in" / "b.npy", ONE)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub").symlink_to(tmp_path / "elsewhere")
    report = batch(tmp_path / "in", "-o", tmp_path / "out", model=model, code=FINDINGS)
    assert "leads out of the output folder" in report["failures"][0]["reason"]
    assert (report["done"], everything(tmp_path / "elsewhere")) == (1, [])
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".batch").symlink_to(tmp_path / "elsewhere")
    assert "is a link" in batch(tmp_path / "in", "-o", tmp_path / "p", "--force", model=model, code=USAGE)
    assert everything(tmp_path / "elsewhere") == []


def test_the_output_is_no_input(batch, model, tmp_path):
    (tmp_path / "in").mkdir()
    write_table(tmp_path / "in" / "rows.parquet")
    content = (tmp_path / "in" / "rows.parquet").read_bytes()
    for words in ((tmp_path / "in" / "rows.parquet",), (tmp_path / "in",)):
        said = batch(*words, "-o", tmp_path / "in" / "rows.parquet", "--force", model=model, code=USAGE)
        assert "is the output of this job" in said or "no supported files" in said
    assert (tmp_path / "in" / "rows.parquet").read_bytes() == content
    assert "is the output of this job" in batch(
        tmp_path / "in", "-o", tmp_path / "in", "--force", model=model, code=USAGE
    )
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert "of this job" in batch(tmp_path / "link", "-o", tmp_path / "in", "--force", model=model, code=USAGE)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("form", ["out/", "out.parquet"])
@pytest.mark.parametrize("pattern", ["", "**/*.n*"])
def test_an_output_among_the_inputs_is_excluded(batch, model, tmp_path, form, pattern):
    folder = tmp_path / "in"
    folder.mkdir()
    for k in range(3):
        np.save(folder / f"{k}.npy", ONE)
    words = (f"{folder}/{pattern}" if pattern else folder, "-o", f"{folder}/{form}", "--format", "npy")
    words = words if form == "out/" else words[:3]
    assert batch(*words, model=model)["items"] == 3
    again = batch(*words, "--resume", model=model)
    assert (again["items"], again["before"]) == (3, 3)


def test_a_file_instead_of_a_folder(batch, model, tmp_path):
    (tmp_path / "in" / "a.npz").mkdir(parents=True)
    np.save(tmp_path / "in" / "a.npy", ONE)
    np.save(tmp_path / "in" / "a.npz" / "b.npy", ONE)
    np.save(tmp_path / "in" / "c.npy", ONE)
    report = batch(tmp_path / "in", "-o", tmp_path / "out", model=model, code=FINDINGS)
    assert (report["done"], report["failed"]) == (2, 1)
    assert "cannot be stored as" in report["failures"][0]["reason"]


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(4)
@pytest.mark.skipif(os.name == "nt", reason="names of files are text on this system")
@pytest.mark.parametrize("form", ["out/", "o.jsonl", "o.parquet", "o.csv"])
def test_names_that_are_no_utf8(batch, model, tmp_path, form):
    (tmp_path / "in").mkdir()
    for name in (b"caf\xe9.npy", b"caf\xc3\xa9.npy", b"bad\xff.npy"):
        with open(os.path.join(os.fsencode(tmp_path / "in"), name), "wb") as stream:
            np.save(stream, ONE if name[:3] == b"caf" else np.ones(3, "S1"))
    words = (tmp_path / "in", "-o", f"{tmp_path}/{form}")
    report = batch(*words, model=model, code=FINDINGS)
    assert (report["done"], report["failed"]) == (2, 1)
    assert report["failures"][0]["input"].endswith("bad\\xff.npy")
    again = batch(*words, "--resume", model=model, code=FINDINGS)
    assert (again["before"], again["failed"]) == (2, 1)
    if form == "out/":
        names = os.listdir(os.fsencode(tmp_path / "out"))
        assert sorted(n for n in names if n.endswith(b".npz")) == [b"caf\xc3\xa9.npz", b"caf\xe9.npz"]
    else:
        assert "caf\\xe9.npy" in (tmp_path / form).read_bytes().decode("utf-8", "ignore").replace("\\\\", "\\")
    assert shown(os.fsdecode(b"a\xff/\xc3\xa9")) == "a\\xff/é"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_copied_columns_have_their_values_next_to_outputs(batch, model, tmp_path, form):
    write_table(tmp_path / "t.parquet", 2, y=pa.array(["mine", "too"]), input=pa.array([7, 8]))
    model = identity(tmp_path / "y.xml", x="?,4")
    model.write_text(model.read_text().replace('names="x"', 'names="x,y"'))
    report = batch(tmp_path / "t.parquet", "-o", tmp_path / f"o.{form}", "--column", "x=x", model=model)
    name = next(w for w in report["warnings"] if "'input'" in w)
    assert "'input_1'" in name
    rows = {"parquet": of_parquet, "jsonl": of_lines, "csv": of_csv}[form](tmp_path / f"o.{form}")
    assert [str(row["input_1"]) for row in rows] == ["7", "8"]


def of_parquet(file):
    return pq.read_table(file).to_pylist()


def of_lines(file):
    return [json.loads(line, parse_constant=fail) for line in file.read_text(encoding="utf-8").splitlines()]


def fail(text):
    raise AssertionError(f"{text} is not JSON")


def of_csv(file):
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_lines_are_json(batch, model, tmp_path):
    carried = pa.array([float("nan"), float("inf"), None, 1.5])
    write_table(tmp_path / "t.parquet", score=carried, deep=pa.array([{"a": [float("nan")]}] * 4))
    batch(tmp_path / "t.parquet", "-o", tmp_path / "o.jsonl", model=model)
    lines = of_lines(tmp_path / "o.jsonl")
    assert [line["score"] for line in lines] == [None, None, None, 1.5]
    assert lines[0]["deep"] == {"a": [None]}


# -- resumed -----------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_repaired_items_return_to_their_position(batch, model, tmp_path, form):
    (tmp_path / "in").mkdir()
    for k in range(40):
        np.save(tmp_path / "in" / f"{k:02}.npy", np.full((1 + k % 3, 4), k, np.float32))
    for k in (3, 4, 17, 39):
        (tmp_path / "in" / f"{k:02}.npy").write_text("no array")
    words = (tmp_path / "in", "-o", tmp_path / f"o.{form}", "--batch-size", 8)
    assert batch(*words, model=model, code=FINDINGS)["done"] == 36
    for k in (3, 17, 4, 39):
        np.save(tmp_path / "in" / f"{k:02}.npy", np.full((1 + k % 3, 4), k, np.float32))
    assert batch(*words, "--resume", model=model)["before"] == 36
    wanted = [k for k in range(40) for _ in range(1 + k % 3)]
    rows = {"parquet": of_parquet, "jsonl": of_lines, "csv": of_csv}[form](tmp_path / f"o.{form}")
    assert [int(row["input"].rpartition("/")[2][:2]) for row in rows] == wanted
    first = {"parquet": lambda r: r["x"][0], "jsonl": lambda r: r["x"][0]["value"], "csv": lambda r: float(r["x[0]"])}
    assert [first[form](row) for row in rows] == wanted


@pytest.mark.one_in(4)
@pytest.mark.parametrize("verify", [(), ("--verify-inputs",)])
@pytest.mark.parametrize("form", ["out/", "o.parquet"])
def test_changed_added_and_removed_inputs(batch, model, tmp_path, form, verify):
    (tmp_path / "in").mkdir()
    for k in range(6):
        np.save(tmp_path / "in" / f"{k}.npy", ONE * k)
    (tmp_path / "in" / "5.npy").write_text("no array")
    words = (tmp_path / "in", "-o", f"{tmp_path}/{form}", "--batch-size", 2, *verify)
    assert batch(*words, model=model, code=FINDINGS)["done"] == 5
    before = os.stat(tmp_path / "in" / "2.npy")
    np.save(tmp_path / "in" / "2.npy", ONE * 20)
    if verify:  # same size and modification time as before
        os.utime(tmp_path / "in" / "2.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    np.save(tmp_path / "in" / "00.npy", ONE * 30)
    (tmp_path / "in" / "3.npy").unlink()
    np.save(tmp_path / "in" / "5.npy", ONE * 5)
    report = batch(*words, "--resume", model=model)
    assert (report["before"], report["done"], report["changed"], report["removed"]) == (3, 3, 1, 1)
    if form == "o.parquet":
        rows = of_parquet(tmp_path / form)
        assert [row["x"][0] for row in rows] == [0, 30, 1, 20, 4, 5]
        np.save(tmp_path / "in" / "1.npy", ONE * 2)
        os.utime(tmp_path / "in" / "1.npy", ns=(1, 1))
        assert "is new or was changed since" in batch(*words, "--resume", model=model, code=USAGE)
    else:
        assert np.load(tmp_path / "out" / "2.npz")["x"][0, 0] == 20


def test_a_table_that_changed_is_done_again(batch, model, tmp_path):
    write_table(tmp_path / "t.parquet", 3)
    words = (tmp_path / "t.parquet", "-o", f"{tmp_path}/out/")
    batch(*words, model=model)
    write_table(tmp_path / "t.parquet", 5)
    report = batch(*words, "--resume", model=model)
    assert (report["changed"], report["done"]) == (3, 5)


def test_removed_inputs_of_a_finished_job(batch, model, tmp_path):
    (tmp_path / "in").mkdir()
    for k in range(3):
        np.save(tmp_path / "in" / f"{k}.npy", ONE)
    batch(tmp_path / "in", "-o", tmp_path / "o.csv", model=model)
    batch(tmp_path / "in", "-o", tmp_path / "out", model=model)
    (tmp_path / "in" / "0.npy").unlink()
    assert "inputs were removed since" in batch(
        tmp_path / "in", "-o", tmp_path / "o.csv", "--resume", model=model, code=USAGE
    )
    report = batch(tmp_path / "in", "-o", tmp_path / "out", "--resume", model=model)
    assert (report["before"], report["removed"]) == (2, 1)


def test_a_deleted_output_is_not_resumed(batch, model, tmp_path):
    write_table(tmp_path / "t.parquet")
    words = (tmp_path / "t.parquet", "-o", tmp_path / "o.jsonl")
    batch(*words, model=model)
    (tmp_path / "o.jsonl").unlink()
    assert "is missing; --force restarts it" in batch(*words, "--resume", model=model, code=USAGE)
    assert batch(*words, "--force", model=model)["done"] == 4


# -- another job -------------------------------------------------------------------------------------------------------


def test_force_waits_for_no_other_job(batch, model, tmp_path):
    digits(tmp_path / "in", 3)
    batch(tmp_path / "in", "-o", tmp_path / "out")
    script = "import sys, pathlib; from irload.batch.manifest import Manifest; m = Manifest(pathlib.Path(sys.argv[1]));"
    script += " print('open', flush=True); input(); print(m.count('done'))"
    manifest = tmp_path / "out" / ".batch" / "manifest.sqlite"
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(manifest)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "open\n"
        for word in ("--force", "--resume"):
            assert "another job is writing to this output" in batch(
                tmp_path / "in", "-o", tmp_path / "out", word, code=USAGE
            )
    finally:
        out, _ = other.communicate("\n", timeout=1800)
    assert out == "3\n"
    batch(tmp_path / "in", "-o", tmp_path / "out", "--force")


def test_force_replaces_an_invalid_manifest(batch, tmp_path):
    digits(tmp_path / "in", 2)
    (tmp_path / "out" / ".batch").mkdir(parents=True)
    (tmp_path / "out" / ".batch" / "manifest.sqlite").write_text("nothing of the kind, and rather long" * 99)
    words = (tmp_path / "in", "-o", tmp_path / "out")
    assert "is not a manifest" in batch(*words, "--resume", code=USAGE)
    assert batch(*words, "--force")["done"] == 2


def test_manifests_of_another_version_are_rejected(tmp_path):
    with closing(sqlite3.connect(tmp_path / "m.sqlite")) as db:
        db.execute("CREATE TABLE items(input TEXT PRIMARY KEY)")
    with pytest.raises(InputInvalid, match="version 0, expected 2"):
        Manifest(tmp_path / "m.sqlite")
    assert MODEL.exists()
