"""Parquet in and out, images in."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.batch import tables
from irrun.main import FINDINGS
from tests.batch.kill import MODEL, digits
from tests.batch.models import identity, unary

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
PIL = pytest.importorskip("PIL.Image")


def columns(samples):
    """One column of samples in each representation that parquet offers."""
    flat = samples.reshape(len(samples), -1)
    tensor = pa.fixed_shape_tensor(pa.float32(), samples.shape[1:])
    storage = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    return {
        "fixed": storage,
        "list": pa.array(list(flat), pa.list_(pa.float32())),
        "nested": pa.array(samples.tolist(), pa.list_(pa.list_(pa.list_(pa.float32())))),
        "tensor": pa.ExtensionArray.from_storage(tensor, storage),
    }


@pytest.mark.one_in(4)
@pytest.mark.parametrize("form", ["fixed", "list", "nested", "tensor"])
def test_rows_in_rows_out(batch, tmp_path, monkeypatch, form):
    monkeypatch.setattr(tables, "ROWS", 8)  # several blocks
    samples = digits(tmp_path / "npy", 30)
    table = pa.table({"id": pa.array([f"row {k}" for k in range(30)]), "image": columns(samples)[form]})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=11)
    report = batch(tmp_path / "in.parquet", "-o", tmp_path / "out.parquet", "--batch-size", 7, "--workers", 2)
    assert (report["items"], report["done"]) == (30, 30)
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.schema.field("probabilities").type == pa.list_(pa.float32(), 10)
    assert written["id"].to_pylist() == [f"row {k}" for k in range(30)]
    assert written["input"][3].as_py() == f"{tmp_path}/in.parquet#3"
    wanted = irload.compile_model(MODEL)(samples)[0]
    np.testing.assert_allclose(np.array(written["probabilities"].to_pylist()), wanted, atol=1e-6)


def test_bad_rows_are_named(batch, tmp_path):
    samples = list(digits(tmp_path / "npy", 6).reshape(6, 64))
    samples[1], samples[4] = None, samples[4][:60]
    pq.write_table(pa.table({"image": pa.array(samples, pa.list_(pa.float32()))}), tmp_path / "in.parquet")
    report = batch(tmp_path / "in.parquet", "-o", tmp_path / "o.jsonl", code=FINDINGS)
    first, second = report["failures"]
    assert first == {"input": f"{tmp_path}/in.parquet#1", "reason": "column 'image' is null"}
    assert second["input"] == f"{tmp_path}/in.parquet#4"
    assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 4


def test_outputs_keep_their_axes(batch, tmp_path):
    model = identity(tmp_path / "m.xml", a="?,2,3", b="?,?", c="?")
    np.savez(
        tmp_path / "x.npz",
        a=np.arange(12, dtype=np.float32).reshape(2, 2, 3),
        b=np.ones((2, 4), np.float32),
        c=np.array([5, 6], np.float32),
    )
    batch(tmp_path / "x.npz", "-o", tmp_path / "o.parquet", model=model)
    table = pq.read_table(tmp_path / "o.parquet")
    assert table.schema.field("a").type == pa.fixed_shape_tensor(pa.float32(), (2, 3))
    assert table["a"].combine_chunks().to_numpy_ndarray().tolist() == np.arange(12).reshape(2, 2, 3).tolist()
    assert table["b"].to_pylist() == [{"shape": [4], "data": [1.0] * 4}] * 2
    assert table["c"].to_pylist() == [5, 6]
    report = batch(tmp_path / "o.parquet", "-o", tmp_path / "again.parquet", model=model)
    assert report["warnings"] == ["column 'input' is carried over as 'input_1', as there is another of its name"]
    again = pq.read_table(tmp_path / "again.parquet")
    assert again["input_1"].to_pylist() == table["input"].to_pylist()
    assert again.drop_columns(["input", "input_1"]) == table.drop_columns(["input"])


def test_damaged_and_strange_tables(batch, tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no table PAR1")
    assert "cannot be read as parquet" in batch(tmp_path / "x.parquet", "-o", tmp_path / "o", code=3)
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "x.parquet")
    assert "no column for input 'image'; there are 'a', 'b'" in batch(
        tmp_path / "x.parquet", "-o", tmp_path / "o", code=2
    )
    np.save(tmp_path / "y.npy", np.zeros(3))
    assert "or others, not both" in batch(tmp_path, "-o", tmp_path / "o", code=2)


# -- images ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def photo(tmp_path):
    """A picture of 40 × 20 pixels with distinct values, and these values."""
    values = np.random.default_rng(0).integers(0, 256, (20, 40, 3), np.uint8)
    (tmp_path / "in").mkdir()
    PIL.fromarray(values).save(tmp_path / "in" / "photo.png")
    return values


def expected(values, *words):
    """The expected result of the options for the picture, computed here."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    image = PIL.fromarray(values)
    if "--resize" in options:
        size = tuple(map(int, options["--resize"].split("x")))
        image = image.resize(size if len(size) == 2 else (size[0] * 2, size[0]), PIL.Resampling.BILINEAR)
    pixels = np.asarray(image).astype(np.float32)
    if "--crop" in options:
        width, height = map(int, options["--crop"].split("x"))
        top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
        pixels = pixels[top : top + height, left : left + width]
    if options.get("--channels") == "bgr":
        pixels = pixels[:, :, ::-1]
    if "--mean" in options:
        pixels = pixels - np.array(list(map(float, options["--mean"].split(","))), np.float32)
    if "--scale" in options:
        pixels = pixels / np.array(list(map(float, options["--scale"].split(","))), np.float32)
    return pixels if options.get("--layout") == "NHWC" else pixels.transpose(2, 0, 1)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("?,3,20,40", ()),
        ("1,3,20,40", ("--channels", "bgr")),
        ("?,20,40,3", ("--layout", "NHWC")),
        ("?,3,8,6", ("--resize", "6x8")),
        ("?,3,10,10", ("--resize", "10", "--crop", "10x10", "--mean", "1,2,3", "--scale", "58.5,57,60")),
        ("?,3,4,5", ("--crop", "5x4", "--scale", "255")),
    ],
)
def test_pixels(batch, photo, tmp_path, shape, words):
    model = identity(tmp_path / "m.xml", x=shape)
    batch(tmp_path / "in", "-o", tmp_path / "out", "--format", "npy", *words, model=model)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "photo.npy"), expected(photo, *words), rtol=1e-6)


def test_the_layout_is_guessed_and_grey_is_computed(batch, photo, tmp_path):
    batch(tmp_path / "in", "-o", tmp_path / "a", "--format", "npy", model=identity(tmp_path / "m.xml", x="?,20,40,3"))
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "photo.npy"), photo)
    grey = np.asarray(PIL.fromarray(photo).convert("L"))
    batch(tmp_path / "in", "-o", tmp_path / "b", "--format", "npy", model=identity(tmp_path / "m.xml", x="?,1,20,40"))
    np.testing.assert_array_equal(np.load(tmp_path / "b" / "photo.npy")[0], grey)


def test_bad_images(batch, photo, tmp_path):
    (tmp_path / "in" / "torn.png").write_bytes((tmp_path / "in" / "photo.png").read_bytes()[:200])
    (tmp_path / "in" / "text.jpg").write_text("no image")
    PIL.new("RGB", (3, 3)).save(tmp_path / "in" / "small.png")
    model = identity(tmp_path / "m.xml", x="?,3,8,8")
    report = batch(tmp_path / "in", "-o", tmp_path / "o", "--crop", "8x8", model=model, code=FINDINGS)
    assert report["done"] == 1
    reasons = {f["input"].rpartition("/")[2]: f["reason"] for f in report["failures"]}
    assert "cannot be read as an image" in reasons["torn.png"]
    assert "cannot be read as an image" in reasons["text.jpg"]
    assert "is 3x3, too small to crop 8x8 from it" in reasons["small.png"]
    flat = unary(tmp_path / "flat.xml", "?,4", "ReLU")
    report = batch(tmp_path / "in" / "photo.png", "-o", tmp_path / "p", model=flat, code=FINDINGS)
    assert "images require four axes" in report["failures"][0]["reason"]
