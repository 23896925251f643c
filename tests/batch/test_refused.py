"""irrun batch: an invalid job is rejected before anything is written, with the remedy."""

from __future__ import annotations

import io
import os
import sys
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from irload.plan.backends.llvm import available
from irrun.main import UNREADABLE, UNSUPPORTED, USAGE
from tests.batch.kill import digits
from tests.batch.models import identity
from tests.cli.conftest import MODELS


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with inputs, in which commands run."""
    monkeypatch.chdir(tmp_path)
    digits(tmp_path / "in", 2)
    (tmp_path / "photos").mkdir()
    Image.new("L", (8, 8)).save("photos/a.png")
    stream = io.BytesIO()
    Image.new("L", (8, 8)).save(stream, "png")
    pq.write_table(pa.table({"image": [stream.getvalue()]}), "photos.parquet")
    numbers = pa.array([[1.0] * 64], pa.list_(pa.float32()))
    pq.write_table(pa.table([numbers, pa.array([1]), pa.array([2])], ["image", "n", "n"]), "twins.parquet")
    return tmp_path


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


def refused(batch, place, *words, code=USAGE, **options):
    """The output of the command, after the check that it changes no file."""
    before = files(place)
    said = " ".join(batch(*words, code=code, **options).split())
    assert files(place) == before
    return said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--jit",), "IRLOAD_JIT=off disables; unset IRLOAD_JIT or omit --jit"),
        (("--precision", "bf16"), "IRLOAD_JIT=off disables; unset IRLOAD_JIT or use f32 or auto"),
        (("--precision", "bf16", "--no-jit"), "--no-jit disables"),
        (("--threads", "1000000"), "below 1,000,000"),
        (("--scale", "0"), "--scale 0: each divisor must be a nonzero finite number"),
        (("--scale", "1,nan,2"), "--scale 1,nan,2: each divisor must be"),
        (("--mean", "inf"), "--mean inf: each value must be a finite number"),
        (("--threads", "0"), "0 is not in the range"),
        (("--batch-size", "0"), "0 is not in the range"),
        (("--shape", "ghost[1,1,8,8]"), "no input named 'ghost'"),
        (("--limit", "ghost=1"), "is not a limit"),
        (("--engine", "ray"), "--engine ray requires a .parquet"),
        (("--fail-fast", "--keep-going"), "--fail-fast cannot be combined with --keep-going"),
    ],
)
def test_options_that_cannot_be_met(batch, place, monkeypatch, words, said):
    monkeypatch.setenv("IRLOAD_JIT", "off")
    assert said in refused(batch, place, "in", "-o", "out", *words)


@pytest.mark.parametrize("output", ["out", "deep/er/out.csv"])
def test_without_llvmlite(batch, place, monkeypatch, output):
    monkeypatch.delenv("IRLOAD_JIT", raising=False)
    monkeypatch.setattr(available, "host_target", lambda: available.AVX512)
    monkeypatch.setattr(available, "is_installed", lambda: False)
    available._missing.cache_clear()
    try:
        said = refused(batch, place, "in", "-o", output, "--jit", code=UNSUPPORTED)
    finally:
        available._missing.cache_clear()
    assert "pip install 'irload[jit]'" in said


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("IRLOAD_JIT", "fast", "IRLOAD_JIT must be off, auto"),
        ("IRLOAD_NUM_THREADS", "many", "IRLOAD_NUM_THREADS must be a positive integer below 1,000,000, found 'many'"),
    ],
)
def test_variables_that_cannot_be_met(batch, place, monkeypatch, variable, value, said):
    monkeypatch.setenv(variable, value)
    assert said in refused(batch, place, "in", "-o", "out")


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("PIL", ("photos", "-o", "out"), "images"),
        ("PIL", ("photos.parquet", "-o", "out"), "images"),
        ("PIL", ("photos.parquet", "-o", "out.csv", "--fail-fast"), "images"),
        ("pyarrow", ("in", "-o", "out.parquet"), "parquet"),
        ("pyarrow", ("twins.parquet", "-o", "out"), "parquet"),
        ("ray", ("in", "-o", "out.parquet", "--engine", "ray"), "ray"),
        ("ray", ("in", "-o", "out.parquet", "--engine", "ray", "--force"), "ray"),
    ],
)
def test_packages_that_are_missing(batch, place, monkeypatch, package, words, extra):
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    said = refused(batch, place, *words, code=UNSUPPORTED)
    needs = {"PIL": "images require Pillow", "pyarrow": ".parquet files require pyarrow", "ray": "requires Ray"}[
        package
    ]
    assert f"{needs}, which is not installed; pip install 'irload[{extra}]'" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mean", "1,2,3"), "--mean has 3 values, but input 'image' [?,1,8,8] has 1 channel"),
        (("--resize", "8x8", "--crop", "9x4"), "--crop 9x4 is larger than --resize 8x8"),
        (("--resize", "20", "--crop", "9x9"), "--crop 9x9 does not fit input 'image' [?,1,8,8], which takes 8x8"),
        (("--resize", "8x9"), "--resize 8x9 does not fit input 'image' [?,1,8,8], which takes 8x8"),
        (("--layout", "nhwc"), "--layout nhwc: input 'image' [?,1,8,8] would have 8 channels; images have 1 or 3"),
    ],
)
def test_options_of_images_that_no_image_satisfies(batch, place, words, said):
    assert said in refused(batch, place, "photos", "-o", "out", *words)


def test_a_file_for_one_of_several_inputs(batch, place):
    loop = MODELS / "loop" / "model.xml"
    said = refused(batch, place, "in", "-o", "out.jsonl", model=loop)
    assert "assign them with name=pattern" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("in", "-o", "out.parquet", "--resume"), "neither --resume"),
        (("in", "-o", "out.parquet", "--fail-fast"), "nor --fail-fast"),
        (("in", "-o", "out.csv"), "--engine ray requires a .parquet"),
        (("image=in", "-o", "out.parquet"), "Ray reads the files of a single input"),
        (("twins.parquet", "-o", "out.parquet"), "two columns with the same name"),
    ],
)
def test_options_unsupported_by_ray(batch, place, words, said):
    assert said in refused(batch, place, *words, "--engine", "ray")


def test_ray_reads_no_names_that_are_not_utf8(batch, place):
    if sys.platform == "darwin":
        pytest.skip("names of files are UTF-8 on this system")
    os.rename(b"in/000000.npy", b"in/\xff.npy")
    assert "whose names are UTF-8" in refused(batch, place, "in", "-o", "out.parquet", "--engine", "ray")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1: "),
        ("ray://127.0.0.1:1", "no Ray cluster answers at ray://127.0.0.1:1: "),
        ("[::1]:1", "no Ray cluster answers at [::1]:1: "),
        ("127.0.0.1:port", "is not a valid address of a Ray cluster"),
    ],
)
def test_a_cluster_that_does_not_answer(batch, place, monkeypatch, address, said):
    for name in ("ray", "ray.data"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert said in refused(batch, place, "in", "-o", "out.parquet", "--engine", "ray", "--address", address)


def test_force_removes_nothing_before_the_job_is_valid(batch, place, monkeypatch):
    batch("in", "-o", "out")
    monkeypatch.setenv("IRLOAD_JIT", "off")
    assert "IRLOAD_JIT" in refused(batch, place, "in", "-o", "out", "--force", "--jit")


def test_models_and_files_that_cannot_be_read(batch, place):
    words = ("in", "-o", "out")
    assert "ghost.bin" in refused(batch, place, *words, "--weights", "ghost.bin", code=UNREADABLE)
    assert "ghost.py" in refused(batch, place, *words, "--extension", "ghost.py", code=UNREADABLE)
    assert "ghost.txt" in refused(batch, place, "in", "-o", "o.csv", "--labels", "ghost.txt", code=UNREADABLE)
    assert "ghost.xml" in refused(batch, place, *words, model="ghost.xml", code=UNREADABLE)
    two = identity(place / "m.xml", a="?,4", b="?,4")
    assert "the model has no input 'c'" in refused(batch, place, "c=in", "-o", "out", model=two)
    assert "2 outputs; use --format npz" in refused(batch, place, *words, "--format", "npy", model=two)
    said = refused(batch, place, *words, "--shape", "[1,3,8,8]", code=USAGE)
    assert "data has 3 channels" in said
