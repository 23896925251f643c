"""Messages of errors: the file, expected against actual, and a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irload
from irrun.main import FINDINGS, OK, UNREADABLE, UNSUPPORTED, USAGE
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits" / "model.xml"
SEVEN = MODELS / "digits" / "digit_7_0.npy"
CONV = MODELS / "conv_openvino" / "model.xml"

FULL = """
import resource, runpy, sys
sys.dont_write_bytecode = True  # Python would cache truncated files
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
runpy.run_module("irrun", run_name="__main__")
"""


@pytest.mark.one_in(4)
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the size of files")
@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("run", DIGITS, "x.npy", "-o", "o.npy"), "o.npy"),
        (("run", DIGITS, "x.npy", "-o", "o.npz"), "o.npz"),
        (("run", DIGITS, "x.npy", "-o", "o"), "o/probabilities.npy"),
        (("run", DIGITS, "x.npy", "--dump", "d"), "d/scaled.npy"),
        (("save", DIGITS, "m.xml"), "m.bin"),
        (("infer", DIGITS, "--write", "w.xml"), "w.xml"),
        (("report", DIGITS, "-o", "r.html"), "r.html"),
        (("check", DIGITS, "--notes", "--format", "json", "-o", "c.json"), "c.json"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(tmp_path, words, file):
    """A limit of file sizes acts like a full disk: a write to the open file fails, without its name."""
    np.save(tmp_path / "x.npy", np.zeros((100, 1, 8, 8), np.float32))
    done = subprocess.run(
        [sys.executable, "-c", FULL, *words, "--limit", "dump-bytes=1G"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "IRLOAD_MODEL_CACHE": "off"},
        check=False,
    )
    assert done.returncode == UNREADABLE, done.stderr
    assert f"irrun: error: {file}: File too large; raise the limit of file sizes" in done.stderr
    assert not (tmp_path / file).exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_at_stdout():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "irrun", "inspect", str(DIGITS)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == UNREADABLE
    assert done.stderr == (
        "irrun: error: standard output: No space left on device; free some space there, or write elsewhere\n"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hi\n", "it is text; expected a file written by numpy.save or numpy.savez"),
        ("für Bilder".encode()[:2], "it is text;"),
        (b"\x01\x02\xff\xfe", "unknown format; expected a file"),
        (b"\x93NUMPY", "EOF: reading magic string"),
        (b"", "it is empty"),
    ],
)
def test_inputs_that_are_no_arrays(irrun, tmp_path, content, said):
    (tmp_path / "x.txt").write_bytes(content)
    done = irrun(DIGITS, tmp_path / "x.txt")
    assert done.code == UNREADABLE
    assert f"x.txt: is not a .npy array: {said}" in done.err


def test_invalid_images_are_rejected(irrun, tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "x.png").write_text("hi")
    done = irrun("batch", DIGITS, tmp_path / "x.png", "-o", tmp_path / "out")
    assert done.code == FINDINGS
    assert f"{tmp_path / 'x.png'}: cannot be read as an image: its content is in none of the formats PNG," in done.err
    assert "BufferedReader" not in done.err


@pytest.mark.parametrize(
    ("model", "shape", "said"),
    [
        (DIGITS, (8, 8, 1), "takes [?,1,8,8]; array.transpose(2, 0, 1)[None] has a shape that fits"),
        (DIGITS, (5, 8, 8, 1), "array.transpose(0, 3, 1, 2) has a shape"),
        (DIGITS, (1, 8, 8), "array[None] has a shape"),
        (DIGITS, (8, 8), "array.reshape(1, 1, 8, 8) has a shape"),
        (DIGITS, (5, 64), "array.reshape(5, 1, 8, 8) has a shape"),
        (DIGITS, (8, 9), "takes [?,1,8,8]; reshape"),
        (CONV, (1, 1, 9, 9), "takes [1,1,6,6]; reshape the input with --shape 'image[1,1,9,9]'"),
        (CONV, (1, 2, 6, 6), "takes [1,1,6,6]\n"),
        (DIGITS, (7,), "takes [?,1,8,8]\n"),
    ],
)
@pytest.mark.parametrize("command", ["run", "bench", "report"])
def test_shapes_that_do_not_fit(irrun, tmp_path, command, model, shape, said):
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    done = irrun(command, model, tmp_path / "x.npy", *(["-o", tmp_path / "r.html"] if command == "report" else []))
    assert done.code == USAGE
    assert said in done.err
    if "--shape" in said:  # the advice works
        advised = said.split("'")[1]
        assert irrun(model, tmp_path / "x.npy", "--shape", advised).code == OK
    if "array" in said:
        how = said.partition("array")[2].split(" has a")[0]
        np.save(tmp_path / "y.npy", eval(f"np.zeros(shape, np.float32){how}"))
        assert irrun(model, tmp_path / "y.npy").code == OK


@pytest.mark.parametrize(
    ("shape", "how"),
    [((8, 8), ".reshape(1, 1, 8, 8)"), ((8, 8, 1), ".transpose(2, 0, 1)[None]"), ((1, 8, 8), "[None]"), ((7,), "")],
)
def test_python_errors_suggest_a_shape_that_fits(shape, how):
    with pytest.raises(irload.InputInvalid) as caught:
        irload.compile_model(DIGITS)(np.zeros(shape, np.float32))
    advice = f"; array{how} has a shape that fits" if how else ""
    assert str(caught.value).endswith(f"the model takes [?,1,8,8]{advice}")


@pytest.mark.parametrize("shape", ["[1,1,8]", "image[1,3,8,8]"])
@pytest.mark.parametrize("command", ["run", "bench", "batch"])
def test_new_shapes_that_do_not_fit(irrun, tmp_path, command, shape):
    words = [SEVEN, "-o", tmp_path / "out"] if command == "batch" else ["--random", 0]
    done = irrun(command, DIGITS, *words, "--shape", shape)
    assert done.code == USAGE
    named = f"image{shape.removeprefix('image')}"
    assert f"--shape '{named}' does not fit the model (declared [?,1,8,8]): " in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("bench",), ("report", "--profile"), ("run", "--random", 0)])
def test_dynamic_inputs_without_a_size(irrun, tmp_path, words):
    done = irrun(words[0], DIGITS, *words[1:], *(["-o", tmp_path / "r.html"] if words[0] == "report" else []))
    assert done.code == USAGE
    assert "input 'image' [?,1,8,8] has a dynamic shape; give a file, or sizes, for example --shape 'image[" in done.err
    assert "--random" not in done.err.rpartition("error:")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((DIGITS, "image="), "'image=': the file name is empty"),
        ((DIGITS, ""), "'': the file name is empty"),
        (("compare", "openvin", DIGITS, "--random", 0), "no file 'openvin'. Did you mean 'openvino'?"),
        (("help",), "no command and no file 'help'. Did you mean '--help'?"),
        (("version",), "Did you mean '--version'?"),
    ],
)
def test_words_that_are_no_files(irrun, words, said):
    done = irrun(*words)
    assert done.code == USAGE
    assert said in done.err


def test_archives_of_other_names(irrun, tmp_path):
    image = np.load(SEVEN)
    np.savez(tmp_path / "n.npz", imge=image, other=image)
    done = irrun(DIGITS, tmp_path / "n.npz")
    assert done.code == USAGE
    assert "n.npz has an array 'imge', but the model has no such input; it has 'image'" in done.err
    for arrays in ({"image": image}, {"arr_0": image}, {"any": image}):
        np.savez(tmp_path / "n.npz", **arrays)
        assert irrun(DIGITS, tmp_path / "n.npz").code == OK


def test_an_input_of_none_is_rejected():
    compiled = irload.compile_model(CONV)
    said = r"input 'image' is None; the model takes an array f32\[1,1,6,6\]"
    for none in ({"image": None}, [None]):
        with pytest.raises(irload.InputInvalid, match=said):
            compiled(none)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("run", DIGITS, SEVEN, "-o", "out.txt"),
            "unsupported output format .txt; use .npz, .npy or a folder (out.txt",
        ),
        (("report", DIGITS, "-o", "x.pdf"), "the report is an HTML page, and x.pdf does not end in .html"),
        (("run", DIGITS, SEVEN, "--labels", "labels.txt"), "--labels requires --top N"),
        (("compare", DIGITS, "x.npy"), "'x.npy' is an input, but A and B come first: each is a model, plain, fast"),
        (("compare", "x.npy", DIGITS), "'x.npy' is an input, but A and B come first"),
        (("compare", DIGITS, "image=x.npy"), "'image=x.npy' is an input, but A and B come first"),
    ],
)
def test_command_lines_that_would_do_something_else(irrun, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    done = irrun(*words)
    assert done.code == USAGE
    assert said in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("run", DIGITS, SEVEN, "-o", "-"),
        ("run", DIGITS, SEVEN, "--dump", "-"),
        ("batch", DIGITS, SEVEN, "-o", "-"),
        ("check", DIGITS, "-o", "-"),
        ("infer", DIGITS, "--write", "-"),
        ("report", DIGITS, "-o", "-"),
    ],
)
def test_a_dash_is_not_the_name_of_an_output(irrun, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = irrun(*words)
    assert done.code == USAGE
    assert "does not write files to stdout" in done.err
    assert not list(tmp_path.iterdir())


def test_a_folder_may_have_a_suffix(irrun, tmp_path):
    assert irrun(DIGITS, SEVEN, "-o", f"{tmp_path}/v1.5/").code == OK
    assert [f.name for f in (tmp_path / "v1.5").iterdir()] == ["probabilities.npy"]
    assert irrun(DIGITS, SEVEN, "-o", f"{tmp_path}/v1.5", "--force").code == OK  # unchanged


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "beside the model; name the file with --bin FILE"),
        (("--limit", "layers=1"), "to allow more: --limit layers=…"),
    ],
)
def test_remedies_are_options_of_the_command_line(irrun, tmp_path, words, said):
    (tmp_path / "m.xml").write_bytes(DIGITS.read_bytes())
    done = irrun(tmp_path / "m.xml", SEVEN, *words)
    assert done.code == UNREADABLE
    assert said in done.err
    assert "weights=" not in done.err
    assert "(irrun" not in done.err


def test_an_opset_of_the_future_is_not_a_missing_extension(irrun, tmp_path):
    text = DIGITS.read_text(encoding="utf-8").replace(
        'type="ReLU" version="opset1"', 'type="ReLU" version="opset99"', 1
    )
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "m.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    said = "opset99 is newer than opset17, the newest that irload implements"
    ran = irrun(tmp_path / "m.xml", SEVEN)
    assert ran.code == UNSUPPORTED
    assert f"ReLU (opset99). {said}\n" in ran.err
    assert said in " ".join(irrun("check", tmp_path / "m.xml").out.split())


@pytest.mark.parametrize(
    ("types", "said"), [(("Foo",), "1 of its operation types is unknown: Foo"), (("Foo", "Bar"), "2 of")]
)
def test_unknown_operations_are_counted(irrun, tmp_path, types, said):
    text = DIGITS.read_text(encoding="utf-8")
    for name in types:
        text = text.replace('type="ReLU" version="opset1"', f'type="{name}" version="x"', 1)
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "m.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    done = irrun(tmp_path / "m.xml", SEVEN)
    assert said in done.err
    assert "--extension FILE" in done.err
