"""Inference of graphs: known values, numbers of outputs, errors, bodies, and reuse of results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import UNKNOWN, VALUE_LIMIT, TensorType
from irload.errors import IRError, LimitExceeded, ShapeMismatch
from irload.graph import Graph, Node, Output
from irload.inference import Inference, Inferred
from irload.model import Model
from irload.read import read_graph
from irload.safety.limits import Limits
from tests.hostile.test_graph import handing_on, nested, net_of
from tests.read.texts import BASE, PARAMETER, RELU, RESULT, const_net, net


def inferred(text: str | bytes, weights: bytes | None = b"") -> tuple[Model, Inference, list[tuple[str, str]]]:
    """A model as it was read, an inference of it, and its errors: (layer, message)."""
    model = read_graph(text if isinstance(text, bytes) else text.encode(), weights)
    errors: list[tuple[str, str]] = []

    def note(node: Node, error: IRError) -> None:
        errors.append((node.name, error.message))

    run = Inference(on_error=note)
    run.graph(model)
    return model, run, errors


def node(model: Model, name: str) -> Node:
    """The node of that name."""
    return next(n for n in model.nodes if n.name == name)


# -- known values ------------------------------------------------------------------------------------------------------


def concat(first: int, second: int, element: str = "f32", size: int = 4) -> str:
    """Two constants, joined."""
    layers = "".join(
        f'<layer id="{k}" name="c{k}" type="Const" version="opset1"><data element_type="{element}" shape="{n}" '
        f'offset="0" size="{n * size}"/><output><port id="0" precision="FP32"/></output></layer>'
        for k, n in enumerate((first, second))
    )
    layers += (
        '<layer id="3" name="joined" type="Concat" version="opset1"><data axis="0"/><input><port id="0"/><port id="1"/>'
        '</input><output><port id="2" precision="FP32"/></output></layer>'
    )
    edges = "".join(f'<edge from-layer="{k}" from-port="0" to-layer="3" to-port="{k}"/>' for k in (0, 1))
    return net(layers + RESULT, edges + '<edge from-layer="3" from-port="2" to-layer="2" to-port="0"/>')


@pytest.mark.parametrize(("more", "known"), [(0, True), (1, False)])
def test_values_are_computed_up_to_a_number_of_elements(more: int, known: bool) -> None:
    half = VALUE_LIMIT // 2
    data = np.arange(half + 1, dtype=np.float32)
    model, run, errors = inferred(concat(half, half + more), data.tobytes())
    assert not errors
    joined = run.types[node(model, "joined").outputs[0]]
    assert joined.shape.static == (VALUE_LIMIT + more,)
    assert (joined.value is not None) == known
    if joined.value is not None:
        np.testing.assert_array_equal(joined.value, np.concatenate([data[:half], data[:half]]))


def test_a_value_needs_all_inputs() -> None:
    """A Concat of a constant and an input has a shape only."""
    text = concat(2, 3).replace('to-layer="3" to-port="1"', 'to-layer="3" to-port="9"')
    text = text.replace(RESULT, RESULT + PARAMETER.replace('id="0" name="in"', 'id="7" name="in"').replace("1,3", "3"))
    text = text.replace(
        'from-layer="1" from-port="0" to-layer="3" to-port="9"', 'from-layer="7" from-port="0" to-layer="3" to-port="1"'
    )
    model, run, errors = inferred(text, bytes(12))
    assert not errors
    joined = run.types[node(model, "joined").outputs[0]]
    assert (joined.shape.static, joined.value) == ((5,), None)


def test_an_operation_that_fails_on_known_values_has_a_shape_only() -> None:
    """The error belongs to execution, which may never reach the layer."""
    text = concat(2, 2, "i64", 8).replace(
        'type="Concat" version="opset1"><data axis="0"/>', 'type="ReverseSequence" version="opset1"><data/>'
    )
    text = text.replace('shape="2" offset="0" size="16"', 'shape="2,1" offset="0" size="16"', 1)
    model, run, errors = inferred(text, np.array([9, 9], np.int64).tobytes())
    assert not errors
    joined = run.types[node(model, "joined").outputs[0]]
    assert (joined.shape.static, joined.value) == ((2, 1), None)


def test_bounds_of_values_follow_from_bounds_of_inputs() -> None:
    """The dims of an input plus one."""
    layers = PARAMETER.replace("1,3", "1..4,3") + (
        '<layer id="1" name="dims" type="ShapeOf" version="opset1"><input><port id="0"/></input>'
        '<output><port id="1" precision="I64"/></output></layer>'
        '<layer id="3" name="one" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>'
        '<output><port id="0" precision="I64"/></output></layer>'
        '<layer id="4" name="more" type="Add" version="opset1"><input><port id="0"/><port id="1"/></input>'
        '<output><port id="2" precision="I64"/></output></layer>'
    )
    ends = ((0, 0, 1, 0), (1, 1, 4, 0), (3, 0, 4, 1), (4, 2, 2, 0))
    edges = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in ends)
    model, run, errors = inferred(net(layers + RESULT, edges), np.int64(1).tobytes())
    assert not errors
    more = run.types[node(model, "more").outputs[0]]
    assert more.value is None
    assert more.bounds is not None
    assert (more.bounds.lower.tolist(), more.bounds.upper.tolist()) == ([2, 4], [5, 4])
    exact, run, _ = inferred(net(layers + RESULT, edges).replace("1..4,3", "4,3"), np.int64(1).tobytes())
    value = run.types[node(exact, "more").outputs[0]].value
    assert value is not None
    assert value.tolist() == [5, 4]


# -- numbers of outputs ------------------------------------------------------------------------------------------------

SECOND_PORT = '<port id="2" precision="FP32"><dim>1</dim><dim>3</dim></port></output></layer>'
TWO = RELU.replace("</output></layer>", SECOND_PORT)


def test_a_layer_that_lists_too_many_output_ports() -> None:
    _, _, errors = inferred(BASE)
    assert not errors
    model, run, errors = inferred(net(PARAMETER + TWO + RESULT))
    assert errors == [("relu", "lists 2 output ports; ReLU has 1")]
    assert [str(run.types[o].shape) for o in node(model, "relu").outputs] == ["[1,3]", "[1,3]"], "as declared"
    assert run.result(model) is None
    with pytest.raises(ShapeMismatch, match=r"ReLU 'relu' \(id 1\): lists 2 output ports"):
        irload.read_model(net(PARAMETER + TWO + RESULT).encode())


def test_an_input_from_an_output_that_the_operation_lacks() -> None:
    text = net(PARAMETER + RELU + RESULT)
    model = read_graph(text.encode())
    relu, out = node(model, "relu"), node(model, "out")
    run = Inference()
    run.graph(model)
    out.inputs = [Output(relu, 1)]
    with pytest.raises(ShapeMismatch, match="input 0 comes from output 1 of ReLU 'relu', which has 1"):
        run.node(out)
    out.inputs = [Output(relu, 0)]
    run.node(out)


def test_a_constant_without_weights_has_its_type() -> None:
    model, run, errors = inferred(const_net('element_type="f16" shape="2,3" offset="0" size="12"', "FP16"), None)
    assert [name for name, _ in errors] == ["c"]
    assert str(run.types[node(model, "c").outputs[0]]) == "f16[2,3]"


def test_faulty_declarations_are_replaced_by_declared_port_types() -> None:
    """A layer that cannot be inferred has the declared types of its ports, or unknown types."""
    odd = RELU.replace('type="ReLU"', 'type="Odd"')
    model, run, errors = inferred(net(PARAMETER + odd + RESULT))
    assert not errors
    (out,) = node(model, "relu").outputs
    assert (run.types[out].element, run.types[out].shape.static) == (et.f32, (1, 3))
    out.declared = None
    again = Inference()
    again.graph(model)
    assert again.types[out] is UNKNOWN


def test_the_same_error_is_reported_once() -> None:
    model = read_graph(net(PARAMETER + TWO + RESULT).encode())
    errors: list[str] = []
    run = Inference(on_error=lambda node, error: errors.append(error.message))
    run.graph(model)
    run.graph(model)
    assert len(errors) == 1


# -- bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relus", "passes"), [(1, 1), (996, 1), (997, 2), (1997, 3)])
def test_a_long_body_counts_for_several_passes(relus: int, passes: int) -> None:
    """One pass, and another for each 1000 layers: the ReLUs, two Parameters and a Result."""
    body = handing_on()
    model = read_graph(net_of(body))
    first = next(n for n in model.nodes if n.type == "ReLU")
    model.nodes = [*model.nodes, *[first] * (relus - 1)]
    assert len(model.nodes) == relus + 3
    types = Inference()
    types.graph(model)
    inputs = [types.types[p.outputs[0]] for p in model.parameters]
    Inference(limits=Limits(body_passes=passes)).infer_body(model, inputs)
    with pytest.raises(LimitExceeded, match="body_passes"):
        Inference(limits=Limits(body_passes=passes - 1)).infer_body(model, inputs)


def test_passes_of_all_bodies_are_limited_together() -> None:
    model = read_graph(nested(3))
    Inference(limits=Limits(body_passes=6)).graph(model)
    with pytest.raises(LimitExceeded, match="body_passes"):
        Inference(limits=Limits(body_passes=5)).graph(model)


# -- reuse -------------------------------------------------------------------------------------------------------------


def result_of(graph: Graph) -> tuple[Inferred, list[TensorType]]:
    """The result of an inference, and the types of the Parameters in it."""
    run = Inference()
    run.graph(graph)
    result = run.result(graph)
    assert result is not None
    return result, [result.types[p.outputs[0]] for p in graph.parameters]


def test_a_result_holds_for_the_same_types_of_an_unchanged_graph() -> None:
    model = read_graph(BASE.encode())
    result, types = result_of(model)
    assert result.holds_for(model, types)
    assert not result.holds_for(model, [])
    assert not result.holds_for(model, [*types, *types])
    assert not result.holds_for(model, [replace(types[0], shape=Shape(2, 3))])
    relu = node(model, "relu")
    op, inputs = relu.op, relu.inputs
    relu.inputs = [relu.outputs[0]]
    assert not result.holds_for(model, types)
    relu.inputs = inputs
    assert result.holds_for(model, types)
    relu.op = node(model, "in").op
    assert not result.holds_for(model, types)
    relu.op = op
    assert result.holds_for(model, types)
    model.nodes = model.nodes[:-1]
    assert not result.holds_for(model, types)


def test_a_result_of_a_graph_with_bodies_holds_for_nothing() -> None:
    """Nodes of bodies may change while the nodes of the outer graph do not."""
    model = read_graph(nested(1))
    result, types = result_of(model)
    assert not result.holds_for(model, types)
    flat = read_graph(net_of(handing_on()))
    result, types = result_of(flat)
    assert result.holds_for(flat, types)
