"""ReadValue and Assign over sequences of inferences: against the real runtime, by hand, and the errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.errors import AttributeInvalid, InputInvalid, IRError, ShapeMismatch, TypeMismatch
from tests.harness.body import Body, Value
from tests.harness.case import Array, Random
from tests.harness.material import pick, random_array, random_shape
from tests.harness.runtime import array_of, core, tensor


def f32(*values: float) -> Array:
    return np.array([values], np.float32)


def attributes(version: str, name: str, element: et.ElementType, shape: str) -> dict[str, Any]:
    """The type and shape that a ReadValue of either version declares for its variable."""
    declared = {"variable_type": element, "variable_shape": shape} if version == "opset6" else {}
    return {"version": version, "variable_id": name, **declared}


def accumulator(version: str = "opset6", *, init: bool = True, shape: str = "1,2", x: str = "1,2") -> Body:
    """sum += x, returned; the initial sum is the second input, or zeros."""
    graph = Body(bytearray())
    value = graph.parameter(et.f32, x)
    initial = [graph.parameter(et.f32, "1,2")] if init else []
    total = graph.op("Add", value, graph.op("ReadValue", *initial, **attributes(version, "sum", et.f32, shape)))
    graph.result(total)
    graph.op("Assign", total, version=version, variable_id="sum")
    return graph


def request(graph: Body) -> irload.InferRequest:
    return irload.compile_model(irload.read_model(*graph.model())).create_infer_request()


# -- against OpenVINO ----------------------------------------------------------------------------------------------


def random_model(rng: Random) -> tuple[Body, list[tuple[int, ...]]]:
    """One or two variables that accumulate or grow; the shapes of the inputs."""
    graph, shapes = Body(bytearray()), list[tuple[int, ...]]()
    for k in range(int(rng.integers(1, 3))):
        version = pick(rng, ("opset3", "opset6"))
        shape = random_shape(rng, (1, 3), 1, 3)
        shapes.append(shape)
        value = graph.parameter(et.f32, ",".join(map(str, shape)))
        if rng.random() < 0.4:
            declared = ",".join(["?", *map(str, shape[1:])])
            initial: list[Value] = [graph.constant(np.zeros((0, *shape[1:]), np.float32))]
            read = graph.op("ReadValue", *initial, **attributes("opset6", f"v{k}", et.f32, declared))
            total, version = graph.op("Concat", read, value, axis=0), "opset6"
        else:
            declared = ",".join(map(str, shape))
            initial = [graph.constant(random_array(rng, shape, et.f32), et.f32)]
            if rng.random() < 0.3:
                initial = [graph.op("Multiply", initial[0], graph.op("Negative", value))]
            if version == "opset6" and rng.random() < 0.3:
                initial = []
            read = graph.op("ReadValue", *initial, **attributes(version, f"v{k}", et.f32, declared))
            total = graph.op(pick(rng, ("Add", "Maximum", "Subtract")), value, read)
        graph.op("Assign", total, version=version, variable_id=f"v{k}")
        graph.result(graph.op("Multiply", total, graph.constant(np.float32(2))))
    return graph, shapes


@pytest.mark.parametrize("seed", range(12))
def test_sequences_agree_with_the_runtime(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, shapes = random_model(rng)
    xml, weights = graph.model()
    theirs = (
        core()
        .compile_model(
            core().read_model(xml, tensor(np.frombuffer(weights, np.uint8), et.u8)),
            "CPU",
            {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1},
        )
        .create_infer_request()
    )
    ours = request(graph)
    for step in range(6):
        if step and rng.random() < 0.25:
            ours.reset_state()
            theirs.reset_state()
        states = [random_array(rng, shape, et.f32) for shape in shapes]
        for k, array in enumerate(states):
            theirs.set_input_tensor(k, tensor(array, et.f32))
        theirs.infer()
        for k, array in enumerate(ours.infer(states).values()):
            np.testing.assert_allclose(array, array_of(theirs.get_output_tensor(k)), 1e-5, 1e-5)


# -- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["opset3", "opset6"])
def test_initial_value_counts_once(version: str) -> None:
    run = request(accumulator(version))
    assert run.infer([f32(1, 2), f32(10, 20)])[0].tolist() == [[11, 22]]
    assert run.infer([f32(1, 2), f32(5, 5)])[0].tolist() == [[12, 24]]
    run.reset_state()
    assert run.infer([f32(1, 2), f32(5, 5)])[0].tolist() == [[6, 7]]


def test_without_initial_value_it_begins_with_zeros() -> None:
    run = request(accumulator(init=False))
    assert [run.infer([f32(1, 2)])[0].tolist() for _ in range(2)] == [[[1, 2]], [[2, 4]]]


def test_dynamic_axes_of_zeros_are_as_short_as_permitted() -> None:
    run = request(accumulator(init=False, shape="2..,2", x="?,2"))
    assert run.infer([f32(1, 2)])[0].tolist() == [[1, 2], [1, 2]]


def test_an_assigned_value_is_read_by_the_next_inference() -> None:
    graph = Body(bytearray())
    value = graph.parameter(et.f32, "1,2")
    graph.op("Assign", value, version="opset6", variable_id="v")
    start = graph.op("Multiply", value, graph.constant(np.float32(-1)))
    graph.result(graph.op("ReadValue", start, **attributes("opset6", "v", et.f32, "1,2")))
    run = request(graph)
    assert [run.infer([f32(k, k)])[0].tolist() for k in (1, 2, 3)] == [[[-1, -1]], [[1, 1]], [[2, 2]]]


def test_requests_have_states_of_their_own() -> None:
    compiled = irload.compile_model(irload.read_model(*accumulator(init=False).model()))
    first, second = compiled.create_infer_request(), compiled.create_infer_request()
    first.infer([f32(1, 1)])
    assert second.infer([f32(1, 1)])[0].tolist() == [[1, 1]]


def test_state_can_be_read_set_and_reset() -> None:
    run = request(accumulator(init=False))
    (state,) = run.query_state()
    assert (state.name, state.state) == ("sum", None)
    state.state = [[5, 6]]
    run.infer([f32(1, 1)])
    assert np.array_equal(np.asarray(state.state), [[6, 7]])
    state.reset()
    assert run.infer([f32(1, 1)])[0].tolist() == [[1, 1]]
    with pytest.raises(InputInvalid, match=r"'sum' has shape \[3\]; the model takes \[1,2\]"):
        state.state = np.zeros(3, np.float32)


def test_callers_arrays_are_not_the_state() -> None:
    graph = Body(bytearray())
    value = graph.parameter(et.f32, "1,2")
    graph.result(graph.op("ReadValue", value, **attributes("opset6", "v", et.f32, "1,2")))
    graph.op("Assign", value, version="opset6", variable_id="v")
    run, state = request(graph), f32(1, 2)
    run.infer([state])
    state[:] = 0
    returned = run.infer([f32(9, 9)])[0]
    assert returned.tolist() == [[1, 2]]


def test_failed_inference_leaves_the_state() -> None:
    graph = Body(bytearray())
    value, divisor = graph.parameter(et.i32, "1"), graph.parameter(et.i32, "1")
    total = graph.op("Add", value, graph.op("ReadValue", **attributes("opset6", "v", et.i32, "1")))
    graph.op("Assign", total, version="opset6", variable_id="v")
    graph.result(graph.op("Divide", total, divisor))
    run, one = request(graph), np.array([1], np.int32)
    run.infer([one, one])
    with pytest.raises(IRError, match="division by zero"):
        run.infer([one, one * 0])
    assert run.infer([one, one])[0].tolist() == [2]


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "element", "error", "message"),
    [
        ("1,3", et.f32, ShapeMismatch, r"variable_shape \[1,3\] of 'v' does not allow the initial value's \[1,2\]"),
        ("1", et.f32, ShapeMismatch, r"variable_shape \[1\] of 'v'"),
        ("1,2", et.i32, TypeMismatch, "variable_type i32 of 'v' does not allow the initial value's f32"),
    ],
)
def test_variable_must_relax_its_initial_value(
    shape: str, element: et.ElementType, error: type[IRError], message: str
) -> None:
    graph = Body(bytearray())
    value = graph.parameter(et.f32, "1,2")
    graph.result(graph.op("ReadValue", value, **attributes("opset6", "v", element, shape)))
    with pytest.raises(error, match=message):
        irload.read_model(*graph.model())


def test_assigned_value_must_fit() -> None:
    with pytest.raises(ShapeMismatch, match=r"'sum' has shape \[1,2\], the value to store \[3,2\]"):
        irload.read_model(*accumulator(x="3,2").model())


def test_assign_needs_a_read_value() -> None:
    graph = Body(bytearray())
    graph.op("Assign", graph.parameter(et.f32, "1"), version="opset6", variable_id="lost")
    with pytest.raises(AttributeInvalid, match="no ReadValue has the variable_id 'lost'"):
        irload.compile_model(irload.read_model(*graph.model()))


def test_unranked_variable_without_initial_value_cannot_begin() -> None:
    run = request(accumulator(init=False, shape="..."))
    with pytest.raises(IRError, match="do not determine the initial zeros"):
        run.infer([f32(1, 2)])


def test_an_undeclared_variable_has_the_shape_of_its_initial_value():
    for shape in ("1,2", "?,2"):
        graph = Body(bytearray())
        value, initial = graph.parameter(et.f32, "1,2"), graph.parameter(et.f32, shape)
        total = graph.op("Add", value, graph.op("ReadValue", initial, version="opset6", variable_id="sum"))
        graph.result(total)
        graph.op("Assign", total, version="opset6", variable_id="sum")
        text, weights = graph.model()
        read = next(n for n in irload.read_model(text, weights).nodes if n.type == "ReadValue")
        theirs = core().read_model(text, tensor(np.frombuffer(weights or b"\0", np.uint8), et.u8))
        expected = next(o for o in theirs.get_ordered_ops() if o.get_type_name() == "ReadValue").output(0)
        assert str(read.outputs[0].type) == f"f32{expected.get_partial_shape()}".replace(" ", "") == f"f32[{shape}]"


def test_an_assign_may_list_no_output_port():
    graph = accumulator()
    text, weights = graph.model()
    tail = re.search(rb'(<layer [^>]*type="Assign".*?)<output>.*?</output>', text, re.S)
    assert tail is not None
    compiled = irload.compile_model(irload.read_model(text.replace(tail[0], tail[1]), weights))
    running = compiled.create_infer_request()
    x = f32(1, 2)
    assert [running.infer([x, x])[0].tolist() for _ in range(2)] == [[[2, 4]], [[3, 6]]]
