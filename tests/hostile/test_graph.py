"""Malformed graphs: each ends in a typed error that names the location, or is read as OpenVINO reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.errors import IRError, LimitExceeded, ReadError, ShapeMismatch, UnknownOperation
from irload.inference import Inference
from models.ir import Graph
from tests.hostile.confined import irrun
from tests.read.texts import BASE, EDGES, PARAMETER, RELU, RESULT, changed, net

FIRST, SECOND = (edge + "/>" for edge in EDGES.split("/>")[:2])
BACK = RELU.replace('id="1" name="relu"', 'id="3" name="back"')
STRANGE = RELU.replace('id="1" name="relu" type="ReLU"', 'id="3" name="odd" type="Strange"')


def edge(start: str, end: str) -> str:
    """An edge from `layer:port` to `layer:port`."""
    (a, b), (c, d) = start.split(":"), end.split(":")
    return f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'


FAULTS: dict[str, tuple[str, type[IRError], str]] = {
    "a cycle": (
        net(PARAMETER + RELU + BACK + RESULT, edge("3:1", "1:0") + edge("1:1", "3:0") + SECOND),
        ReadError,
        r"'(relu|back)' .*cycle",
    ),
    "a cycle that no Result needs": (
        net(
            PARAMETER + RELU + BACK + BACK.replace('"3" name="back"', '"4" name="forth"') + RESULT,
            EDGES + edge("3:1", "4:0") + edge("4:1", "3:0"),
        ),
        ReadError,
        r"'(forth|back)' .*cycle",
    ),
    "a self loop": (net(edges=edge("1:1", "1:0") + SECOND), ReadError, "'relu' .*cycle"),
    "an edge from nowhere": (changed('from-layer="0"', 'from-layer="77"'), ReadError, "no layer 77"),
    "an edge to nowhere": (net(edges=EDGES + edge("1:1", "77:0")), ReadError, "no layer 77"),
    "an edge from a missing port": (net(edges=FIRST + edge("1:9", "2:0")), ReadError, "'relu' has no output port 9"),
    "an edge to a missing port": (net(edges=edge("0:0", "1:9") + SECOND), ReadError, "'relu' has no input port 9"),
    "an edge from an input port": (net(edges=FIRST + edge("1:0", "2:0")), ReadError, "'relu' has no output port 0"),
    "two producers of one input": (net(edges=EDGES + edge("0:0", "2:0")), ReadError, "'out' is already fed"),
    "the same edge twice": (net(edges=EDGES + SECOND), ReadError, "'out' is already fed"),
    "an input without producer": (net(edges=SECOND), ReadError, "'relu' .*input port 0 is fed by no edge"),
    "a duplicate id": (net(PARAMETER + RELU + RELU.replace("relu", "twin") + RESULT), ReadError, "'twin' .*has id 1"),
    "no id": (changed('<layer id="1" ', "<layer "), ReadError, "no attribute id"),
    "a negative id": (changed('<layer id="1"', '<layer id="-1"'), ReadError, "not a non-negative"),
    "an id that is no number": (changed('<layer id="1"', '<layer id="one"'), ReadError, "not a non-negative"),
    "an id of 100 digits": (
        changed('<layer id="1"', f'<layer id="{"9" * 100}"'),
        ReadError,
        "not a non-negative",
    ),
    "an id in digits of another script": (changed('<layer id="1"', '<layer id="１"'), ReadError, "not a non-negative"),
    "a missing input port": (
        changed('<input><port id="0"/></input>', "", BASE),
        ReadError,
        "'out' has no input port 0",
    ),
    "an operation without its input": (
        net(
            changed(
                '<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>',
                "",
                PARAMETER + RELU + RESULT,
            ),
            SECOND,
        ),
        ShapeMismatch,
        "'relu' .*takes 1 input",
    ),
    "an operation without output port": (
        net(
            changed(
                '<output><port id="1" precision="FP32" names="y"><dim>1</dim><dim>3</dim></port></output>',
                "",
                PARAMETER + RELU + RESULT,
            )
        ),
        ReadError,
        "'relu' has no output port 1",
    ),
}


@pytest.mark.parametrize(("text", "error", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_graph_is_named(text: str, error: type[IRError], words: str) -> None:
    with pytest.raises(error, match=words):
        irload.read_model(text.encode())


def test_a_net_without_layers_has_no_nodes() -> None:
    model = irload.read_model(b'<net name="m" version="11"/>')
    assert (model.inputs, model.outputs, model.nodes) == ([], [], [])


def test_a_net_without_results_returns_nothing() -> None:
    model = irload.read_model(net(PARAMETER + RELU, FIRST).encode())
    assert model.outputs == []
    assert list(irload.compile_model(model)(np.ones((1, 3), np.float32)).values()) == []


def test_an_unknown_operation_that_a_result_needs_cannot_run() -> None:
    text = net(PARAMETER + RELU + STRANGE + RESULT, FIRST + edge("1:1", "3:0") + edge("3:1", "2:0"))
    model = irload.read_model(text.encode())
    with pytest.raises(UnknownOperation, match=r"Strange 'odd' \(id 3\): .*Strange \(opset1\)"):
        irload.compile_model(model)


def test_an_unused_unknown_operation_is_ignored() -> None:
    model = irload.read_model(net(PARAMETER + RELU + STRANGE + RESULT, EDGES + edge("1:1", "3:0")).encode())
    assert any("Strange" in warning for warning in model.warnings)
    result = irload.compile_model(model)(np.full((1, 3), -2, np.float32))[0]
    assert result.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("command", ["run", "check", "infer"])
def test_the_command_line_locates_the_cycle(command: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(FAULTS["a cycle"][0])
    done = irrun(command, path)
    assert done.returncode in (1, 3)
    assert "cycle" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


# -- bodies ----------------------------------------------------------------------------------------------------------


def handing_on() -> str:
    """A body that takes x (layer 0) and a condition (layer 1) and returns relu(x) (layer 3)."""
    g = Graph()
    x, _ = g.parameter("x", "f32", (1, 3)), g.parameter("c", "boolean", ())
    g.result(g.layer("ReLU", [x], [("f32", (1, 3))])[0])
    return g.text()


def choosing(then_body: str, else_body: str) -> str:
    """A body with the same ports that contains an If of two bodies."""
    g = Graph()
    x, c = g.parameter("x", "f32", (1, 3)), g.parameter("c", "boolean", ())
    lines = "".join(
        f'<input external_port_id="{port}" internal_layer_id="{layer}"/>' for port, layer in ((1, 0), (2, 1))
    )
    lines += '<output external_port_id="3" internal_layer_id="3"/>'
    inner = "".join(f"<{w}_port_map>{lines}</{w}_port_map>" for w in ("then", "else"))
    inner += f"<then_body>{then_body}</then_body><else_body>{else_body}</else_body>"
    g.result(g.layer("If", [c, x, c], [("f32", (1, 3))], version="opset8", inner=inner)[0])
    return g.text()


def looping(inner: str | None) -> str:
    """A graph that takes rows, a condition and a trip count; returns the first two. `inner` is the body of its Loop.

    The innermost body doubles the rows, so the type of every Loop changes after the first pass.
    """
    g = Graph()
    x, c = g.parameter("x", "f32", ("?", 3)), g.parameter("c", "boolean", ())
    trips = g.parameter("t", "i64", ())
    if inner is None:
        y = g.layer("Concat", [x, x], [("f32", ("?", 3))], attributes={"axis": 0})[0]
    else:
        ports = "".join(f'<input external_port_id="{k + 2}" internal_layer_id="{k}"/>' for k in (0, 1, 2))
        ports += '<output external_port_id="5" internal_layer_id="4"/>'
        ports += '<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition"/>'
        inner = f"<port_map>{ports}</port_map><body>{inner}</body>"
        inner += '<back_edges><edge from-layer="4" to-layer="0"/></back_edges>'
        y = g.layer("Loop", [trips, c, x, c, trips], [("f32", ("?", 3))], version="opset5", inner=inner)[0]
    g.result(y)
    g.result(c)
    return g.text()


def net_of(graph: str) -> bytes:
    """The file of a graph."""
    return f'<?xml version="1.0"?><net name="m" version="11">{graph}</net>'.encode()


def nested(depth: int) -> bytes:
    """Nested Ifs."""
    text = handing_on()
    for _ in range(depth):
        text = choosing(text, handing_on())
    return net_of(text)


def test_bodies_nested_1000_deep_are_beyond_the_limit() -> None:
    with pytest.raises(LimitExceeded, match="body_depth"):
        irload.read_model(nested(1000))


@pytest.mark.parametrize("optimize", [True, False])
def test_bodies_nested_as_deep_as_allowed_run(optimize: bool) -> None:
    model = irload.read_model(nested(irload.Limits().body_depth - 1))
    compiled = irload.compile_model(model, optimize=optimize)
    x = np.array([[-1, 0, 2]], np.float32)
    for condition in (True, False):
        assert compiled([x, np.array(condition)])[0].tolist() == [[0, 0, 2]]
    with pytest.raises(LimitExceeded, match="body_depth"):
        irload.read_model(nested(irload.Limits().body_depth))


def test_branches_on_both_sides_are_inferred_once_each() -> None:
    text = handing_on()
    for _ in range(8):
        text = choosing(text, text)
    model = irload.read_model(net_of(text))
    bodies = sum(1 for _ in model.walk()) - 1
    passes: list[object] = []

    class Counting(Inference):
        def infer_body(self, body: Any, inputs: Any) -> Any:
            passes.append(body)
            return super().infer_body(body, inputs)

    Counting().graph(model)
    assert (bodies, len(passes)) == (2**9 - 2, 2**9 - 2)


def test_types_of_nested_loops_settle_or_end_in_an_error(tmp_path: Path) -> None:
    text = looping(None)
    for _ in range(20):
        text = looping(text)
    (tmp_path / "model.xml").write_bytes(net_of(text))
    done = irrun("infer", tmp_path / "model.xml")
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
