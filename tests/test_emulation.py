"""Deviations: noted on the layers concerned, and computed as the CPU plugin does on request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.deviations.emulation import emulate
from irload.deviations.registry import deviations
from irload.ops.registry import registered
from irrun.main import OK
from tests.cli.conftest import irrun as irrun
from tests.harness import runtime
from tests.harness.case import Case, Input, const, param
from tests.harness.ir import ir_of

F = np.float32
INTS = [np.array(v, np.int32) for v in ([-7, 7, -8], [2, -2, 3])]
U8 = [np.array(v, np.uint8) for v in ([200, 3], [100, 4])]
I8 = [np.array(v, np.int8) for v in ([100, 3], [100, -4])]
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 3, 4)).astype(F)
BOXES = np.array([[[0, 0, 1, 2], [0, 0, 1, 1], [0, 5, 1, 6], [0, 6, 1, 7]]], F)  # the first two overlap by 1/2
CENTERED = np.array([[[1, 0.5, 2, 1], [0.5, 0.5, 1, 1], [5.5, 0.5, 1, 1], [6.5, 0.5, 1, 1]]], F)  # the same boxes
SCORES = np.array([[[0.9, 0.8, 0.7, 0.6]]], F)
CLASSES = np.array([[[0.9, 0.8, 0.3, 0.2], [0.85, 0.4, 0.7, 0.6]]], F)
NONE = const(np.zeros(0, np.int64))


def nms(version: str, threshold: float, boxes: np.ndarray = BOXES, scores: np.ndarray = SCORES, **named: str) -> Case:
    options = [const(np.int64(9)), const(F(threshold)), const(F(0.1))]
    inputs = [param(boxes), param(scores), *options]
    return Case("NonMaxSuppression", version, inputs, named, 1 if version < "opset5" else 3)


def normalized(rank: int, axes: Input, mode: str = "add") -> Case:
    x = RNG.standard_normal((9, 3, 4, 2, 2)[:rank]).astype(F)
    return Case("NormalizeL2", "opset1", [param(x), axes], {"eps": 0.5, "eps_mode": mode})


def sequence(kind: str, gates: int) -> Case:
    lengths = np.array([1, 2], np.int32)
    states = [param(np.zeros((2, 1, 2), F))] * (2 if kind == "LSTMSequence" else 1)
    weights = [const(RNG.standard_normal(s).astype(F)) for s in ((1, gates * 2, 4), (1, gates * 2, 2), (1, gates * 2))]
    activations = {"LSTMSequence": ["sigmoid", "tanh", "tanh"], "GRUSequence": ["sigmoid", "tanh"]}.get(kind, ["tanh"])
    attributes = {"hidden_size": 2, "direction": "forward", "activations": activations}
    outputs = 3 if kind == "LSTMSequence" else 2
    return Case(kind, "opset5", [param(X), *states, param(lengths), *weights], attributes, outputs)


CASES = {
    "NMS at the threshold": nms("opset5", 0.5),
    "NMS of version 3 at the threshold": nms("opset3", 0.5),
    "NMS without a threshold": nms("opset9", 0.0),
    "NMS of centered boxes at the threshold": nms("opset9", 0.5, CENTERED, box_encoding="center"),
    "NMS sorted across classes": nms("opset9", 0.5, scores=CLASSES, sort_result_descending="true"),
    "NMS class by class": nms("opset9", 0.5, scores=CLASSES, sort_result_descending="false"),
    "rows of MatrixNms": Case(
        "MatrixNms",
        "opset8",
        [param(BOXES), param(CLASSES)],
        {"sort_result_type": "classid", "background_class": -1},
        3,
    ),
    "the sign of a vector": normalized(1, NONE),
    "the sign in five axes": normalized(5, NONE, "max"),
    "the sign by computed axes": normalized(3, param(np.zeros(0, np.int64))),
    "absolute values": Case("ReduceL1", "opset4", [param(X), NONE], {"keep_dims": True}),
    "absolute values of L2": Case("ReduceL2", "opset4", [param(X), NONE], {"keep_dims": True}),
    "quotients of integers": Case("Divide", "opset1", [*map(param, INTS)]),
    "narrow sums": Case("Add", "opset1", [*map(param, U8)]),
    "narrow products": Case("Multiply", "opset1", [*map(param, I8)]),
    "a bias that is no integer": Case(
        "LRN", "opset1", [param(np.abs(X)), const([1])], {"alpha": 0.5, "beta": 0.75, "bias": 1.7, "size": 3}
    ),
    "lengths of an LSTM": sequence("LSTMSequence", 4),
    "lengths of a GRU": sequence("GRUSequence", 3),
    "lengths of an RNN": sequence("RNNSequence", 1),
}
DYNAMIC = [name for name in CASES if name.startswith("lengths")]


@pytest.mark.parametrize("name", CASES)
def test_computes_as_the_cpu_plugin_does(name: str, tmp_path: Path) -> None:
    case = replace(CASES[name], oracle="cpu")
    states = case.inputs[1 : -4 if name in DYNAMIC else 0]
    shapes = ["?,3,4", *["?,1,2" for _ in states], "?", *[None] * 3] if name in DYNAMIC else None
    xml, weights = ir_of(case, shapes)
    feeds = [i.value for i in case.inputs if not i.constant]
    theirs = runtime.outputs(case, runtime.read(case, shapes))
    plain = irload.compile_model(irload.read_model(xml, weights))(feeds)
    assert not all(agree(a, b) for a, b in zip(plain.values(), theirs, strict=True)), "nothing to emulate"

    model = irload.read_model(xml, weights)
    assert [node.type for node in emulate(model)] == [case.type]
    ours = irload.compile_model(model, optimize=False)(feeds)
    assert all(agree(a, b) for a, b in zip(ours.values(), theirs, strict=True)), (list(ours.values()), theirs)

    (tmp_path / "m.xml").write_bytes(xml)
    notes = irload.check(tmp_path / "m.xml", weights, select=["IR312"]).findings
    assert any("--emulate openvino-cpu" in f.message for f in notes)
    assert all(f.severity == "note" for f in notes)


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5)


def test_norms_by_constant_axes_are_not_emulated() -> None:
    """The plugin computes the sign for other ranks only, or if it has to compute the axes."""
    case = replace(normalized(3, NONE), oracle="cpu")
    xml, weights = ir_of(case)
    model = irload.read_model(xml, weights)
    assert emulate(model) == []
    (theirs,) = runtime.outputs(case, runtime.read(case, None))
    assert agree(irload.compile_model(model)([case.inputs[0].value])[0], theirs)


def test_soft_suppression_has_no_threshold_to_meet() -> None:
    case = nms("opset9", 0.5)
    case = replace(case, inputs=[*case.inputs, const(F(0.5))], oracle="cpu")
    xml, weights = ir_of(case)
    model = irload.read_model(xml, weights)
    emulate(model)
    ours = irload.compile_model(model, optimize=False)([BOXES, SCORES])
    theirs = runtime.outputs(case, runtime.read(case, None))
    assert all(agree(a, b) for a, b in zip(ours.values(), theirs, strict=True))


def test_known_values_match_the_runtime() -> None:
    model = irload.read_model(*ir_of(Case("Divide", "opset1", [const(v) for v in INTS])))
    (divided,) = (node for node in model.nodes if node.type == "Divide")
    floors = divided.outputs[0].type.value
    assert emulate(model) == [divided]
    assert floors.tolist() == [-4, -4, -3]
    assert divided.outputs[0].type.value.tolist() == [-3, -3, -2]


def test_layers_without_a_deviation_are_unchanged(tmp_path: Path) -> None:
    for case in (
        Case("ReduceL1", "opset4", [param(X), const([1])], {"keep_dims": True}),
        Case("Divide", "opset1", [param(X), param(X)]),
        Case("LRN", "opset1", [param(X), const([1])], {"alpha": 0.5, "beta": 0.75, "bias": 2, "size": 3}),
        Case("Add", "opset1", [param(X), param(X)]),
    ):
        xml, weights = ir_of(case)
        assert emulate(irload.read_model(xml, weights)) == []
        (tmp_path / "m.xml").write_bytes(xml)
        assert irload.check(tmp_path / "m.xml", weights, select=["IR312"]).findings == []
    with pytest.raises(irload.InputInvalid, match="openvino-cpu"):
        emulate(irload.read_model(xml, weights), "openvino-gpu")


def test_the_command(irrun, tmp_path: Path) -> None:
    xml, weights = ir_of(CASES["NMS at the threshold"])
    (tmp_path / "m.xml").write_bytes(xml)
    (tmp_path / "m.bin").write_bytes(weights)
    np.save(tmp_path / "boxes.npy", BOXES)
    np.save(tmp_path / "scores.npy", SCORES)
    words = ["run", tmp_path / "m.xml", tmp_path / "boxes.npy", tmp_path / "scores.npy", "--json"]
    plain, emulated = irrun(*words), irrun(*words, "--emulate", "openvino-cpu")
    assert (plain.code, emulated.code) == (OK, OK)
    assert "emulated" not in plain.json
    assert emulated.json["emulated"]
    assert emulated.json["outputs"][0]["shape"] < plain.json["outputs"][0]["shape"]
    assert "irrun: --emulate openvino-cpu changes 1 layer\n" in emulated.err


def test_the_list_is_whole() -> None:
    entries = deviations()
    assert len(entries) >= 90
    assert sum(e.emulated for e in entries) >= 8
    assert all(e.when for e in entries if e.emulated)
    types = {cls.type for cls in registered()}
    assert {t for e in entries for t in e.operations} <= types
