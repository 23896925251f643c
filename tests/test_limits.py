"""Limits: their values, their notation, and that all uses of a model respect its limits."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload import Limits
from irload.errors import InputInvalid, LimitExceeded
from irload.safety.limits import limits_of
from irrun.main import main
from tests.harness.tiers import tiered
from tests.hostile.confined import confined
from tests.read.texts import BASE, PARAMETER, RESULT, changed, const_net, net

MODELS = Path(__file__).parents[1] / "models"


def test_they_are_frozen_and_survive_pickling() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().layers = 3
    assert pickle.loads(pickle.dumps(Limits(layers=3))) == Limits(layers=3)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("tensor-bytes=8G", "tensor_bytes", 8 << 30),
        ("tensor_bytes=1.5k", "tensor_bytes", 1536),
        ("layers=7", "layers", 7),
        ("peak-bytes=2T", "peak_bytes", 2 << 40),
        ("peak-bytes=none", "peak_bytes", None),
        ("wall-time=0.25", "wall_time", 0.25),
        ("wall-time=None", "wall_time", None),
    ],
)
def test_as_text(text: str, name: str, value: float | None) -> None:
    assert limits_of([text]) == Limits(**{name: value})


@pytest.mark.parametrize(
    "text",
    [
        *("", "layers", "layers=", "layers=x", "layers=-1", "layers=1_0", "layers=１２", "layers=1.5", "layers=none"),
        *("depth=3", "wall-time=1G", "wall-time=nan", "wall-time=-1", f"layers={'9' * 400}", "layers=0x10"),
    ],
)
def test_invalid_texts_are_rejected(text: str) -> None:
    with pytest.raises(InputInvalid):
        limits_of([text])


@pytest.mark.parametrize(
    "wrong", [{"layers": -1}, {"layers": None}, {"layers": 1.0}, {"layers": True}, {"wall_time": float("nan")}]
)
def test_invalid_values_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputInvalid, match=f"the limit {next(iter(wrong))} must be"):
        Limits(**wrong)


# -- reading -----------------------------------------------------------------------------------------------------------

READING = [
    ("xml_bytes", 100, BASE),
    ("layers", 2, BASE),
    ("ports", 3, BASE),
    ("ports", 0, net("", "<edge/>")),
    ("attributes", 20, changed("<data ", "<data " + " ".join(f'a{k}=""' for k in range(30)) + " ")),
    ("element_bytes", 100_000, net(PARAMETER.replace("</output>", '<port id="1" precision="FP32"/>' * 20_000))),
    ("element_bytes", 100_000, net(tail=f"<rt_info>{'<a/>' * 80_000}</rt_info>")),
    ("name_length", 10, changed('name="relu"', 'name="relu_of_the_model"')),
    ("name_length", 10, changed('type="ReLU"', 'type="ReLU_of_the_model"')),
    ("name_length", 10, changed('names="y"', 'names="y,relu_of_the_model"')),
    ("tensor_bytes", 7, const_net('element_type="f32" shape="2" offset="0" size="8"')),
    ("wall_time", 0, BASE),
]


@pytest.mark.parametrize(("limit", "value", "text"), READING)
def test_reading(limit: str, value: int, text: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        irload.read_model(text.encode(), bytes(8), limits=Limits(**{limit: value}))
    assert caught.value.limit == limit
    said = str(caught.value)
    assert f"the limit {limit} is {value} " in said
    assert f"irload.Limits({limit}=…)" in said
    assert f"--limit {limit.replace('_', '-')}=…" in said


ONE = "<layers><layer id='0' name='a' type='Result' version='opset1'/></layers>"


LAYERS, JUNK = tiered(300, 800), 10_000
"""If nothing were freed, the elements between the layers would take more memory than the process may use."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("part", ["{junk}" + ONE, "{junk}<x>" + ONE + "</x>", ONE.replace("<layer ", "{junk}<layer ")])
def test_text_between_layers_is_freed_with_them(part: str) -> None:
    code = f"""
from irload.read import read_xml
part = {part!r}.replace("{{junk}}", "<junk/>" * {JUNK})
raw = read_xml(("<net version='11'>" + part * {LAYERS} + "</net>").encode())
print(len(raw.graph.layers), len(raw.warnings))
"""
    outcome = confined(["-c", code], memory=tiered(1 << 29, 1 << 30))
    assert outcome.returncode == 0, outcome.stderr
    layers, warnings = map(int, outcome.stdout.split())
    assert layers == LAYERS
    assert warnings <= 10_000


# -- inference, running ------------------------------------------------------------------------------------------------

DYNAMIC = changed('shape="1,3"', 'shape="?,3"').replace("<dim>1</dim>", "<dim>-1</dim>")


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("text", [BASE, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize(("limit", "value"), [("tensor_bytes", 11), ("peak_bytes", 20), ("wall_time", 0)])
def test_running(text: str, optimize: bool, limit: str, value: int) -> None:
    model = irload.read_model(text.encode())
    x = np.ones((1, 3), np.float32)
    assert irload.compile_model(model, optimize=optimize)(x)[0].tolist() == [[1, 1, 1]]
    limited = dataclasses.replace(model, limits=Limits(**{limit: value}))
    for allowed, limits in ((model, limited.limits), (limited, None)):
        # A static model is planned when it is compiled, a dynamic one for its first inputs.
        with pytest.raises(LimitExceeded) as caught:
            irload.compile_model(allowed, optimize=optimize, limits=limits)(x)
        assert caught.value.limit == limit


def test_the_time_limit_is_checked_before_large_steps_of_a_plan() -> None:
    text = BASE.replace('shape="1,3"', 'shape="1,1000000"').replace("<dim>3</dim>", "<dim>1000000</dim>")
    compiled = irload.compile_model(irload.read_model(text.encode()))
    x = np.zeros((1, 1000000), np.float32)
    compiled(x)
    compiled.limits = Limits(wall_time=0)
    with pytest.raises(LimitExceeded, match="not finished after 0 s"):
        compiled(x)


def test_constants_are_counted_before_they_are_loaded() -> None:
    model = irload.read_model(const_net('element_type="f32" shape="200000" offset="0" size="800000"').encode())
    assert model.weights_file is None  # loading them would be another error
    with pytest.raises(LimitExceeded, match="constants are too large: 800000 bytes; the limit peak_bytes is 1000 "):
        irload.compile_model(model, limits=Limits(peak_bytes=1000))()


def test_a_view_keeps_its_memory_alive() -> None:
    from irload.plan.memory_tracker import MemoryTracker

    ledger = MemoryTracker(Limits(peak_bytes=100))
    array = np.zeros(20, np.float32)
    view = array.reshape(4, 5)[1:]
    ledger.hold(array)
    ledger.hold(view)
    ledger.release(array)
    assert ledger.alive == 80
    with pytest.raises(LimitExceeded, match="would need 104 bytes"):
        ledger.require(24)
    ledger.release(view)
    assert ledger.alive == 0


def test_inference_and_reshape_respect_limits() -> None:
    model = irload.read_model(DYNAMIC.encode())
    model.limits = Limits(wall_time=0)
    with pytest.raises(LimitExceeded, match="wall_time"):
        irload.infer(model)
    with pytest.raises(LimitExceeded, match="wall_time"):
        model.reshape((2, 3))
    assert str(model.inputs[0].partial_shape) == "[?,3]"


def test_outputs_of_a_split() -> None:
    split = (
        '<layer id="1" name="s" type="Split" version="opset1"><data num_splits="10000000"/><input><port id="0"/>'
        '<port id="1"/></input><output><port id="2" precision="FP32"/></output></layer>'
        '<layer id="3" name="a" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>'
        '<output><port id="0" precision="I64"/></output></layer>'
    )
    edges = (
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
        '<edge from-layer="3" from-port="0" to-layer="1" to-port="1"/>'
        '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>'
    )
    with pytest.raises(LimitExceeded, match="num_splits is too large: 10000000; the limit ports is 4000000"):
        irload.read_model(net(PARAMETER + split + RESULT, edges).encode(), bytes(8))


def test_check_reports_exceeded_limits() -> None:
    report = irload.check(MODELS / "digits" / "model.xml", limits=Limits(wall_time=0))
    assert [f.code for f in report.findings] == ["IR901"]
    assert not report.readable
    checked = irload.check(MODELS / "digits" / "model.xml", select=["IR902"], limits=Limits(tensor_bytes=1 << 11))
    assert {f.layer_name for f in checked.findings} == {"conv1/weights", "dense/weights"}


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "inspect", "infer", "check", "batch"])
def test_every_command_accepts_limits(command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    rest = {"run": ["--random", "0"], "batch": [str(tmp_path / "x.npy"), "-o", str(tmp_path / "out")]}.get(command, [])
    words = [command, str(MODELS / "digits" / "model.xml"), *rest, "--limit", "wall-time=6000", "--limit", "layers=3"]
    assert main(words) == 3
    shown = capsys.readouterr()
    said = " ".join((shown.out + shown.err).split())
    assert "the limit layers is 3" in said
    assert "--limit layers=…" in said


def test_an_unknown_limit_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(MODELS / "digits" / "model.xml"), "--limit", "depth=3"]) == 2
    assert "is not a limit; the limits are xml-bytes, layers" in capsys.readouterr().err
