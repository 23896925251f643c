"""irrun save: converted models compute the same, in OpenVINO too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from irrun.main import FINDINGS, OK, UNREADABLE, USAGE
from tests.cli.conftest import MODELS
from tests.harness.runtime import core
from tests.read.legacy import legacy_net

DIGITS = MODELS / "digits" / "model.xml"
IMAGE = np.load(MODELS / "digits" / "digit_7_0.npy")


def test_the_same_model_again(irrun, tmp_path: Path) -> None:
    target = tmp_path / "again.xml"
    outcome = irrun("save", DIGITS, target)
    assert outcome.code == OK
    assert outcome.err.count("wrote ") == 2
    expected = irload.compile_model(DIGITS)(IMAGE)[0]
    np.testing.assert_array_equal(irload.compile_model(target)(IMAGE)[0], expected)
    theirs = core().compile_model(str(target), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(IMAGE)[0]
    np.testing.assert_allclose(theirs, expected, rtol=1e-4, atol=1e-6)


def test_constants_of_f16(irrun, tmp_path: Path) -> None:
    assert irrun("save", DIGITS, tmp_path / "half.xml", "--fp16").code == OK
    assert (tmp_path / "half.bin").stat().st_size < 0.6 * DIGITS.with_suffix(".bin").stat().st_size
    expected = irload.compile_model(DIGITS)(IMAGE)[0]
    np.testing.assert_allclose(irload.compile_model(tmp_path / "half.xml")(IMAGE)[0], expected, atol=1e-2)


def test_other_shapes(irrun, tmp_path: Path) -> None:
    assert irrun("save", DIGITS, tmp_path / "three.xml", "--shape", "image[3,1,8,8]").code == OK
    model = irload.read_model(tmp_path / "three.xml")
    assert (model.inputs[0].shape, model.outputs[0].shape) == ((3, 1, 8, 8), (3, 10))
    assert model.differences == []
    assert irrun("save", DIGITS, tmp_path / "x.xml", "--shape", "image[3,1,8]").code != OK
    assert not (tmp_path / "x.xml").exists()


def test_version_10_becomes_11_without_rt_info(irrun, tmp_path: Path) -> None:
    attribute = '<rt_info><attribute name="layout" version="0" layout="[N,C,H,W]"/></rt_info>'
    text = DIGITS.read_text("utf-8").replace(
        'type="Parameter" version="opset1">', f'type="Parameter" version="opset1">{attribute}'
    )
    text = text.replace("</net>", '<rt_info><conversion><tool value="x"/></conversion></rt_info></net>')
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    words = ("save", tmp_path / "m.xml", tmp_path / "kept.xml", "--bin", DIGITS.with_suffix(".bin"))
    assert irrun(*words).code == OK
    assert "rt_info" in (tmp_path / "kept.xml").read_text("utf-8")
    words = ("save", tmp_path / "m.xml", tmp_path / "bare.xml", "--bin", DIGITS.with_suffix(".bin"), "--strip-rt-info")
    assert irrun(*words).code == OK
    assert "rt_info" not in (tmp_path / "bare.xml").read_text("utf-8")
    ten = text.replace('version="11"', 'version="10"', 1)
    (tmp_path / "ten.xml").write_text(ten, encoding="utf-8")
    (tmp_path / "ten.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    assert irrun("save", tmp_path / "ten.xml", tmp_path / "eleven.xml").code == OK
    assert irload.read_model(tmp_path / "eleven.xml").ir_version == 11


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("m.xml", "is the model itself"),
        ("m.bin", "must end in .xml"),
        ("taken.xml", "exists already; --force replaces it"),
        ("none/x.xml", "does not exist"),
    ],
)
def test_targets_that_are_rejected(target: str, words: str, irrun, tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes(DIGITS.with_suffix(suffix).read_bytes())
    (tmp_path / "taken.bin").write_text("precious")
    outcome = irrun("save", tmp_path / "m.xml", tmp_path / target)
    assert outcome.code == USAGE
    assert words in outcome.err
    assert (tmp_path / "taken.bin").read_text() == "precious"
    if target == "taken.xml":
        assert irrun("save", tmp_path / "m.xml", tmp_path / target, "--force").code == OK
    if target == "m.xml":
        assert irrun("save", tmp_path / "m.xml", tmp_path / target, "--force").code == USAGE


def test_a_model_that_cannot_be_read(irrun, tmp_path: Path) -> None:
    assert irrun("save", tmp_path / "none.xml", tmp_path / "x.xml").code == UNREADABLE
    assert not list(tmp_path.iterdir())


def test_upgrade_writes_version_11_and_lists_the_rewritten_layers(irrun, tmp_path: Path) -> None:
    text, blob = legacy_net("ScaleShift", "", [(1, 3)], [(1, 3)], {"weights": np.array([1, 2, 3], np.float32)})
    (tmp_path / "old.xml").write_bytes(text)
    (tmp_path / "old.bin").write_bytes(blob)
    outcome = irrun("upgrade", tmp_path / "old.xml", "-o", tmp_path / "new.xml", "--json")
    assert outcome.code == OK
    assert outcome.json["ir_version"] == 6
    assert outcome.json["rewritten"] == ["Input 'in0' → Parameter", "ScaleShift 'layer' → Multiply"]
    assert outcome.json["unknown"] == []
    x = np.array([[5, 6, 7]], np.float32)
    assert core().compile_model(str(tmp_path / "new.xml"), "CPU")(x)[0].tolist() == [[5, 12, 21]]
    assert irrun("upgrade", tmp_path / "old.xml", "-o", tmp_path / "old.xml").code == USAGE


def test_upgrade_reports_layers_without_an_equivalent(irrun, tmp_path: Path) -> None:
    (tmp_path / "old.xml").write_bytes(legacy_net("Oddity", "", [(1, 3)], [(1, 3)])[0])
    outcome = irrun("upgrade", tmp_path / "old.xml", "-o", tmp_path / "new.xml")
    assert outcome.code == FINDINGS
    assert "Oddity" in outcome.out
