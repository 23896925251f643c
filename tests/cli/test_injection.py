"""Names in files are untrusted: they must not forge lines of a log or send escape sequences to a terminal."""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import irload
from tests.cli.conftest import MODELS

HOSTILE = "a\n::error file=x::forged\r\x9b31m\u202egnp\u2028\u2066[red]"
ENCODED = "".join(f"&#{ord(c)};" for c in HOSTILE)
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def hostile(source: Path, folder: Path) -> Path:
    """Write the model with hostile names of all layers, tensors, variables and of the net."""
    file = folder / "model.xml"
    text = source.read_text("utf-8")
    text = re.sub(r'\b(name|names|variable_id)="([^"]*)"', rf'\1="{ENCODED}\2"', text)
    file.write_text(text, encoding="utf-8")
    if source.with_suffix(".bin").exists():
        shutil.copy(source.with_suffix(".bin"), file.with_suffix(".bin"))
    return file


def assert_harmless(text: str) -> None:
    assert not FORBIDDEN.search(text), FORBIDDEN.findall(text)
    assert not re.search(r"(?m)^\s*::error file=x", text)


COMMANDS = (
    ("run", "{}", "--random", "0", "--shape", "[1,1,8,8]"),
    ("run", "{}", "--random", "0", "--shape", "[1,1,8,8]", "--explain", "--profile", "--top", "3"),
    ("run", "{}", "--random", "0", "--shape", "[1,1,8,8]", "--json"),
    ("run", "{}"),
    ("run", "{}", "--random", "0"),
    ("run", "{}", HOSTILE + "=x.npy"),
    ("run", HOSTILE),
    ("run", "{}", "--" + HOSTILE),
    ("run", "{}", "--shape", HOSTILE),
    ("run", "{}", "--shape", HOSTILE + "[1]"),
    ("run", "{}", "--limit", HOSTILE),
    ("run", "{}", "--threads", HOSTILE),
    (HOSTILE,),
    ("inspect", "{}"),
    ("inspect", "{}", "--constants"),
    ("inspect", "{}", "--tree"),
    ("inspect", "{}", "--macs"),
    ("inspect", "{}", "--memory"),
    ("inspect", "{}", "--layer", "0"),
    ("inspect", "{}", "--layer", HOSTILE),
    ("inspect", "{}", "--json"),
    ("infer", "{}"),
    ("infer", "{}", "--json"),
    ("check", "{}", "--notes"),
    ("check", "{}", "--notes", "--format", "json"),
    ("check", "{}", "--notes", "--format", "sarif"),
    ("check", "{}", "--notes", "--format", "github"),
    ("check", "{}", "--notes", "--format", "junit"),
    ("check", "{}", "--select", HOSTILE),
    ("check", HOSTILE),
    ("batch", "{}", HOSTILE, "-o", "out"),
    ("batch", "{}", HOSTILE + "=x.npy", "-o", "out"),
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", ["digits", "state", "loop", "unknown"])
def test_names_are_escaped(model: str, irrun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = MODELS / ("digits" if model == "unknown" else model) / "model.xml"
    file = hostile(source, tmp_path)
    if model == "unknown":  # the unknown model also has invalid types, versions and shapes
        text = file.read_text("utf-8")
        text = text.replace('type="ReLU"', f'type="{ENCODED}"').replace("<dim>8</dim>", "<dim>9</dim>")
        file.write_text(text.replace('version="opset1"', f'version="{ENCODED}"', 2), encoding="utf-8")
    for words in COMMANDS:
        outcome = irrun(*(w.format(file) if w == "{}" else w for w in words))
        assert outcome.code != 70, outcome.err
        assert_harmless(outcome.out + outcome.err)


def test_batches(irrun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of input files and messages of failed items are escaped, too."""
    monkeypatch.chdir(tmp_path)
    file = hostile(MODELS / "digits" / "model.xml", tmp_path)
    (tmp_path / "in").mkdir()
    name = HOSTILE.replace("/", "")
    np.save(tmp_path / "in" / f"{name}good.npy", np.zeros((1, 8, 8), np.float32))
    np.save(tmp_path / "in" / f"{name}bad.npy", np.zeros((1, 7, 8), np.float32))
    for more in ((), ("--json",), ("--resume",)):
        outcome = irrun("batch", file, "in", "-o", "out.jsonl", "--force", *more)
        assert_harmless(outcome.out + outcome.err)


def test_the_api(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = hostile(MODELS / "digits" / "model.xml", tmp_path)
    compiled = irload.compile_model(file)
    with pytest.raises(irload.InputInvalid) as raised:
        compiled({HOSTILE: np.zeros(1)})
    logging.getLogger("any").error("%s", raised.value)
    assert_harmless(caplog.text.rstrip("\n"))
    assert_harmless(str(raised.value))
    result = compiled(np.zeros((1, 1, 8, 8), np.float32))
    for shown in (compiled.model, compiled, compiled.create_infer_request(), result, *compiled.inputs):
        assert_harmless(repr(shown))
