"""Errors for wrong files and names, as users pass them, contain a remedy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from irrun.main import UNREADABLE, USAGE
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("model.xml", "model.bin", "digit_7_0.npy"):
        shutil.copy(DIGITS / name, tmp_path)
    shutil.copy(DIGITS / "model.xml", tmp_path / "modal.xml")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nrest")
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07\x12\x07pytorch")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("https://example.org/model.xml", "it is a URL: download the file first"),
        ("model.xml https://example.org/x.npy", "it is a URL: download the file first"),
        (".", "a directory, expected a regular file; it holds modal.xml, model.xml"),
        ("sub", "a directory, expected a regular file"),
        ("model.bin", "A .bin holds the weights; the model is model.xml"),
        ("model.bin --no-cache", "A .bin holds the weights; the model is model.xml"),
        ("model.xml digit_7_0.npy --bin modal.xml", "modal.xml are an XML file; name the .bin file with --bin FILE\n"),
        ("m.onnx", "an ONNX model (or another protobuf); convert it with openvino.convert_model"),
        ("a.png", "a PNG image; `irrun batch` runs models on images"),
        ("model.xml a.png", "it is a PNG image; `irrun batch` runs models on images"),
        ("model.xml model.xml", "it is XML; a model comes first, its inputs follow"),
        ("mdel.xml", "is it 'model.xml' or 'modal.xml'?"),
        ("model", "is it 'model.xml'?"),
        ("model.xml digit_7_1.npy", "is it 'digit_7_0.npy'?"),
        ("model.xml digit_7_0.npy --bin modle.bin", "is it 'model.bin'?"),
        ("modal.xml digit_7_0.npy", "no modal.bin beside the model; name the file with --bin FILE"),
        ("modal.xml digit_7_0.npy", "is it 'model.bin'?"),
    ],
)
def test_errors_contain_a_remedy(words: str, said: str, irrun, folder: Path) -> None:
    outcome = irrun(*words.split())
    assert outcome.code == UNREADABLE
    assert said in outcome.err
    assert outcome.err.startswith("irrun: error: ")
    assert len(outcome.err.splitlines()) == 1


def test_no_temporary_name_is_shown(irrun, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(folder / ".out.npz.x1.part"))

    monkeypatch.setattr("tempfile.mkstemp", full)
    outcome = irrun("model.xml", "digit_7_0.npy", "-o", "out.npz")
    assert outcome.code == UNREADABLE
    assert outcome.err.splitlines()[-1] == (
        "irrun: error: out.npz: No space left on device; free some space there, or write elsewhere"
    )


@pytest.mark.parametrize("words", ["check --format x", "nothing", "inspect --layer", "model.xml --nothing"])
def test_errors_begin_alike(words: str, irrun, folder: Path) -> None:
    outcome = irrun(*words.split())
    assert outcome.code in (USAGE, UNREADABLE)
    assert outcome.err.splitlines()[-1].startswith("irrun: error: ")
    assert "\nError: " not in outcome.err
