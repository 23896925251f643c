"""f16 in plans: only results of the graph are rounded, whether layers have kernels or are computed."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from models import ir


def between(type: str, graph: ir.Graph, x: ir.Ref) -> ir.Ref:
    """A layer that keeps values."""
    f16, zero = [("f16", (2,))], graph.constant(np.int64(0))
    if type == "CumSum":
        return graph.layer("CumSum", [x, zero], f16, version="opset3", attributes={"exclusive": False})[0]
    if type == "Roll":
        return graph.layer("Roll", [x, zero, zero], f16, version="opset7")[0]
    return graph.layer(type, [x], f16)[0]


@pytest.mark.parametrize("type", ["ReLU", "CumSum", "Roll"])
def test_layers_do_not_round(type: str) -> None:
    """2048 + 1 is not a number of f16."""
    graph = ir.Graph()
    x = graph.parameter("x", "f16", (2,))
    numpy, f16 = {"auto_broadcast": "numpy"}, [("f16", (2,))]
    one, large = (graph.constant(np.array(v, np.float16)) for v in ([1, 0], [2048, 2048 if type == "CumSum" else 0]))
    (more,) = graph.layer("Add", [x, one], f16, attributes=numpy)
    (rest,) = graph.layer("Subtract", [between(type, graph, more), large], f16, attributes=numpy)
    graph.result(rest)
    text = f'<net name="n" version="11">{graph.text()}</net>'
    model = irload.read_model(text.encode(), bytes(graph.blob))
    output = irload.compile_model(model, jit=False)(np.array([2048, 0], np.float16))[0]
    assert (output.dtype, output[0]) == (np.float16, 1)


def test_values_between_parts_of_a_plan_are_not_rounded() -> None:
    """The Slice depends on a value, so a plan computes the product and the sum before it."""
    graph = ir.Graph()
    x, count = graph.parameter("x", "f16", (1, 2)), graph.parameter("count", "i64", (1,))
    numpy, zero, step = {"auto_broadcast": "numpy"}, graph.constant(np.zeros(1, np.int64)), graph.constant([1])
    f16, open_ended = [("f16", (1, 2))], [("f16", ("?", 2))]
    (same,) = graph.layer("MatMul", [x, graph.constant(np.eye(2, dtype=np.float16))], f16)
    (more,) = graph.layer("Add", [same, graph.constant(np.float16(1))], f16, attributes=numpy)
    (part,) = graph.layer("Slice", [more, zero, count, step, zero], open_ended, version="opset8")
    (rest,) = graph.layer("Subtract", [part, graph.constant(np.float16(2048))], open_ended, attributes=numpy)
    graph.result(rest)
    model = irload.read_model(f'<net name="n" version="11">{graph.text()}</net>'.encode(), bytes(graph.blob))
    output = irload.compile_model(model, jit=False)([np.array([[2048, 2047]], np.float16), np.array([1], np.int64)])[0]
    assert (output.dtype, output.tolist()) == (np.float16, [[1, 0]])


def test_variables_have_the_type_of_the_graph() -> None:
    graph = ir.Graph()
    x, f16 = graph.parameter("x", "f16", (1,)), [("f16", (1,))]
    variable = {"variable_id": "v", "variable_type": "f16", "variable_shape": "1"}
    (past,) = graph.layer("ReadValue", [x], f16, version="opset6", attributes=variable)
    one, numpy = graph.constant(np.ones(1, np.float16)), {"auto_broadcast": "numpy"}
    (more,) = graph.layer("Add", [past, one], f16, attributes=numpy)
    graph.layer("Assign", [more], f16, version="opset6", attributes={"variable_id": "v"})
    graph.result(more)
    model = irload.read_model(f'<net name="n" version="11">{graph.text()}</net>'.encode(), bytes(graph.blob))
    request = irload.compile_model(model, jit=False).create_infer_request()
    assert request.infer(np.array([2048], np.float16))[0].dtype == np.float16
    (state,) = request.query_state()
    assert (state.state.dtype, state.state.tolist()) == (np.float16, [2048])
