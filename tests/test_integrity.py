"""Pinning a model: the content of the digests, the format of a pin, and that the hashed bytes are executed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.batch import Predictor
from irload.errors import InputInvalid, ReadError
from irload.read import read_graph
from irload.safety import files
from irload.safety.integrity import Digests, pins_of
from irload.write.atomic import write_atomically
from irrun.main import main
from tests.read.texts import BASE, const_net

FLOATS = np.arange(6, dtype=np.float32).tobytes()
CONST = const_net('element_type="f32" shape="6" offset="0" size="24"').encode()
A, B = hashlib.sha256(CONST), hashlib.sha256(FLOATS)
BOTH = hashlib.sha256(A.digest() + B.digest()).hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.xml").write_bytes(CONST)
    (tmp_path / "model.bin").write_bytes(FLOATS)
    return tmp_path / "model.xml"


@pytest.mark.parametrize(
    "pin",
    [
        BOTH,
        BOTH.upper(),
        {"model": BOTH},
        {"xml": A.hexdigest()},
        {"bin": B.hexdigest()},
        {"xml": A.hexdigest(), "bin": B.hexdigest(), "model": BOTH},
    ],
)
def test_pinned_files_are_read(model: Path, pin: Any) -> None:
    for source, weights in ((model, None), (model, model.with_suffix(".bin")), (CONST, FLOATS)):
        loaded = irload.read_model(source, weights, sha256=pin)
        assert loaded.digests == Digests(A.hexdigest(), B.hexdigest())
        assert irload.compile_model(loaded)()[0].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("0" * 64, f"the model has SHA-256 {BOTH}, expected {'0' * 64}$"),
        (A.hexdigest(), "The pin is the SHA-256 of the XML; write xml=…"),
        ({"bin": A.hexdigest()}, "the .bin file has SHA-256 .* The pin is the SHA-256 of the XML"),
        ({"xml": A.hexdigest(), "bin": "1" * 64}, "the .bin file has SHA-256"),
    ],
)
def test_files_other_than_the_pinned_ones_are_rejected(model: Path, pin: Any, said: str) -> None:
    with pytest.raises(ReadError, match=said):
        irload.read_model(model, sha256=pin)


def test_the_pin_is_checked_before_the_file_is_parsed(model: Path) -> None:
    model.write_text("<net")
    with pytest.raises(ReadError, match="does not match the pin"):
        irload.read_model(model, sha256=BOTH)


def test_without_weights_the_digest_covers_only_the_xml() -> None:
    xml = hashlib.sha256(BASE.encode())
    pin = hashlib.sha256(xml.digest()).hexdigest()
    loaded = irload.read_model(BASE.encode(), sha256=pin)
    assert loaded.digests == Digests(xml.hexdigest(), None)
    with pytest.raises(ReadError, match=r"there is no \.bin file"):
        irload.read_model(BASE.encode(), sha256={"bin": pin})


@pytest.mark.parametrize(
    "pin", ["", "abc", "g" * 64, "0" * 63, {}, {"json": "0" * 64}, ["xml=" + "0" * 64, "xml=" + "0" * 64], []]
)
def test_invalid_pins_are_rejected(pin: Any) -> None:
    with pytest.raises(InputInvalid):
        pins_of(pin)


def test_a_map_cannot_be_pinned(model: Path) -> None:
    with pytest.raises(InputInvalid, match="may change after it was hashed"):
        irload.read_model(model, sha256=BOTH, mmap=True)


# -- the hashed bytes are executed -------------------------------------------------------------------------------------


def test_weights_that_change_afterwards_make_no_difference(model: Path) -> None:
    loaded = irload.read_model(model, sha256=BOTH)
    with model.with_suffix(".bin").open("r+b") as stream:
        stream.write(bytes(24))
    assert irload.compile_model(loaded)()[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_an_xml_that_changes_after_it_was_hashed_is_not_read_again(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.read_limited

    def exchanging(path: Any, what: str, limit: int) -> bytes:
        content = real(path, what, limit)
        write_atomically(model, lambda stream: stream.write(BASE.encode()))
        return content

    monkeypatch.setattr("irload.read.read_limited", exchanging)
    loaded = irload.read_model(model, sha256=BOTH)
    assert model.read_text() == BASE
    assert [n.type for n in loaded.nodes] == ["Const", "Result"]


def test_hashing_holds_no_weights_in_memory(model: Path) -> None:
    loaded = read_graph(model, hashed=True)
    assert loaded.digests == Digests(A.hexdigest(), B.hexdigest())
    with model.with_suffix(".bin").open("r+b") as stream:
        stream.truncate(0)
    with pytest.raises(ReadError, match="has changed"):
        irload.compile_model(irload.infer(loaded, lambda *_: None))()


# -- the command line --------------------------------------------------------------------------------------------------


def test_inspect_shows_them_as_a_table_and_as_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model), "--sha256"]) == 0
    shown = capsys.readouterr().out
    wanted = {"both together": BOTH, str(model): A.hexdigest(), str(model.with_suffix(".bin")): B.hexdigest()}
    assert [line for line in shown.splitlines() if line[64:66] == "  "] == [
        f"{digest}  {file}" for file, digest in wanted.items()
    ]
    assert main(["inspect", str(model), "--sha256", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["sha256"]
    assert document == {"model": BOTH, "xml": A.hexdigest(), "bin": B.hexdigest()}
    assert main(["inspect", str(model), "--json"]) == 0
    assert "sha256" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", ["run", "infer"])
def test_commands_take_a_pin(model: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    fine = 0 if command == "run" else 1  # its port declares no dims, which only inference computes
    assert main([command, str(model), "--sha256", BOTH]) == fine
    assert main([command, str(model), "--sha256", f"xml={A.hexdigest()}", "--sha256", f"bin={B.hexdigest()}"]) == fine
    capsys.readouterr()
    assert main([command, str(model), "--sha256", B.hexdigest()]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "does not match the pin" in shown.err
    assert main([command, str(model), "--sha256", "abc"]) == 2


def test_a_batch_takes_a_pin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xml, blob = BASE.encode(), b""
    (tmp_path / "m.xml").write_bytes(xml)
    (tmp_path / "m.bin").write_bytes(blob)
    both = hashlib.sha256(hashlib.sha256(xml).digest() + hashlib.sha256(blob).digest()).hexdigest()
    np.save(tmp_path / "x.npy", np.ones((1, 3), np.float32))
    words = ["batch", str(tmp_path / "m.xml"), str(tmp_path / "x.npy"), "-o", str(tmp_path / "out")]
    assert main([*words, "--sha256", "0" * 64]) == 3
    assert not (tmp_path / "out").exists()
    assert main([*words, "--sha256", both]) == 0
    assert Predictor(tmp_path / "m.xml", sha256=both)({"x": np.ones((1, 3), np.float32)})["y"].tolist() == [[1, 1, 1]]
    capsys.readouterr()
