"""TensorIterator and Loop: hand-worked cases of slices, concatenations and ends of iterations; inference; errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.element import ElementType
from irload.core.shape import Dim, Shape
from irload.errors import (
    AttributeInvalid,
    ExecutionError,
    IRError,
    LimitExceeded,
    ReadError,
    ShapeMismatch,
    TypeMismatch,
)
from irload.ops.infrastructure.iteration import grows
from tests.harness.body import Body, Value, back_edges, input_entry, output_entry, port_map
from tests.harness.case import Case, const, param
from tests.harness.runtime import outputs
from tests.harness.verify import load

ROW = np.arange(6, dtype=np.float32)


def run(case: Case) -> list[Any]:
    """The outputs that irload computes, as lists."""
    feeds = [i.value for i in case.inputs if not i.constant]
    return [a.tolist() for a in irload.compile_model(load(case)).create_infer_request().infer(feeds).values()]


def shapes(case: Case, relaxed: list[str | None] | None = None) -> list[str]:
    return [str(p.partial_shape) for p in load(case, relaxed).outputs]


def iterator(rest: dict[str, Any], length: int = 6, *, only_last: bool = False) -> Case:
    """Adds 10 to each part of 0, 1, 2, …; concatenated forwards, or the last part alone."""
    body = Body(bytearray())
    part = body.parameter(et.f32, "1")
    result = body.result(body.op("Add", part, body.constant(np.float32(10))))
    end = {} if only_last else {"axis": 0, "stride": rest.get("part_size", 1), "part_size": rest.get("part_size", 1)}
    xml = port_map(input_entry(0, part, axis=0, **rest), output_entry(1, result, **end)) + body.xml()
    weights = bytes(body.weights)
    return Case("TensorIterator", "opset1", [param(np.arange(length, dtype=np.float32))], xml=xml, weights=weights)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ({}, [10, 11, 12, 13, 14, 15]),
        ({"start": -1, "end": 0, "stride": -1}, [15, 14, 13, 12, 11, 10]),
        ({"stride": 2, "part_size": 2}, [10, 11, 12, 13, 14, 15]),
        ({"start": -1, "end": 0, "stride": -2, "part_size": 2}, [14, 15, 12, 13, 10, 11]),
        ({"start": 1, "end": 4}, [11, 12, 13, 14]),
        ({"start": 1, "end": -2}, [11, 12, 13, 14]),
        ({"start": 4, "end": 1, "stride": -2, "part_size": 2}, [13, 14, 11, 12]),
    ],
)
def test_parts(rest: dict[str, int], expected: list[int]) -> None:
    case = iterator(rest)
    assert run(case) == [expected]
    assert shapes(case) == [f"[{len(expected)}]"]


def test_the_last_part_is_the_output_of_the_last_iteration() -> None:
    assert run(iterator({}, only_last=True)) == [[15]]


def test_empty_axis_has_no_iterations() -> None:
    assert run(iterator({}, length=0)) == [[]]


@pytest.mark.parametrize(
    ("rest", "error", "message"),
    [
        ({"part_size": 2}, AttributeInvalid, "stride ±part_size, found 2 and 1"),
        ({"part_size": 0, "stride": 0}, AttributeInvalid, "part_size must be positive"),
        ({"part_size": 4, "stride": 4}, ShapeMismatch, "not a whole number of parts of 4"),
        ({"start": 7}, ShapeMismatch, "elements 7 to -1 of an axis of 6"),
        ({"start": "x"}, ReadError, "start of the port map or the back edges must be an integer of 64 bits, found 'x'"),
    ],
)
def test_parts_that_cannot_be(rest: dict[str, Any], error: type[IRError], message: str) -> None:
    with pytest.raises(error, match=message):
        load(iterator(rest))


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("data", "size"), [([1, 0, 0, 2], None), ([1, 0, 3, 2], 2), ([1, 0, 0, 0], 0)])
def test_parts_of_dynamic_size_must_have_the_length_of_the_port_map(
    data: list[float], size: int | None, optimize: bool
) -> None:
    body = Body(bytearray())
    part = body.parameter(et.f32, "2")
    where = body.op("NonZero", part, version="opset3", output_type="i64")
    result = body.result(body.op("Squeeze", where, body.constant(np.array([0]))))
    xml = port_map(input_entry(0, part, axis=0, stride=2, part_size=2), output_entry(1, result, axis=0)) + body.xml()
    case = Case("TensorIterator", "opset1", [param(np.float32(data))], xml=xml, weights=bytes(body.weights))
    assert shapes(case) == ["[2]"]
    compiled = irload.compile_model(load(case), optimize=optimize)
    if size is None:
        assert compiled(np.float32(data))[0].tolist() == [0, 1]
        return
    message = f"iteration 1 returned {size} elements on axis 0 for output 0, .* expects 1"
    with pytest.raises(ExecutionError, match=message):
        compiled(np.float32(data))


def test_sliced_inputs_must_agree_on_the_number_of_parts() -> None:
    body = Body(bytearray())
    a, b = body.parameter(et.f32, "1"), body.parameter(et.f32, "1")
    result = body.result(body.op("Add", a, b))
    xml = port_map(input_entry(0, a, axis=0), input_entry(1, b, axis=0), output_entry(2, result, axis=0)) + body.xml()
    with pytest.raises(ShapeMismatch, match=r"input 0: 6, input 1: 4"):
        load(Case("TensorIterator", "opset1", [param(ROW), param(ROW[:4])], xml=xml))


# -- Loop -------------------------------------------------------------------------------------------------------------


def loop(
    trips: Any = 5,
    going: Any = True,
    *,
    stop: int | None = None,
    grow: bool = False,
    shape: str = "1",
    dynamic: bool = False,
    purpose: str = "execution_condition",
    start: Sequence[int] = (100,),
) -> Case:
    """state += iteration (with `grow`: appends it to the state). Returns the state and the concatenated iterations.

    The condition of the body is `iteration < stop`, or constantly true.
    """
    body = Body(bytearray())
    counter = body.parameter(et.i64, shape)
    state = body.parameter(et.i64, "1")
    number = counter if shape else body.op("Unsqueeze", counter, body.constant(np.array([0])))
    result = body.result(body.op("Concat", state, number, axis=0) if grow else body.op("Add", state, number))
    numbers = body.result(number)
    true = body.constant(np.bool_(True))
    condition: Value = body.result(true if stop is None else body.op("Less", number, body.constant(np.array([stop]))))
    lines = (
        input_entry(-1, counter, purpose="current_iteration"),
        input_entry(2, state),
        output_entry(3, result),
        output_entry(4, numbers, axis=0),
        output_entry(-1, condition, purpose=purpose),
    )
    xml = port_map(*lines) + back_edges((result, state)) + body.xml()
    make = param if dynamic else const
    inputs = [make(np.asarray(trips), et.i64), make(np.asarray(going), et.boolean), param(np.array(start, np.int64))]
    return Case("Loop", "opset5", inputs, outputs=2, xml=xml, weights=bytes(body.weights))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("trips", "going", "stop", "expected"),
    [
        (3, True, None, [[103], [0, 1, 2]]),
        ([3], [True], None, [[103], [0, 1, 2]]),
        (-1, True, 3, [[106], [0, 1, 2, 3]]),  # the iteration that turns the condition false still counts
        (-2, True, 1, [[101], [0, 1]]),
        (-(2**63), True, 1, [[101], [0, 1]]),
        (2, True, 9, [[101], [0, 1]]),
        (0, True, None, [[100], []]),
        (3, False, None, [[100], []]),
    ],
)
def test_iterations(trips: Any, going: Any, stop: int | None, expected: list[Any], dynamic: bool) -> None:
    assert run(loop(trips, going, stop=stop, dynamic=dynamic)) == expected


@pytest.mark.parametrize("shape", ["", "1", "?", "..."])
def test_the_counter_has_the_shape_of_its_parameter(shape: str) -> None:
    assert run(loop(2, shape=shape)) == [[101], [0, 1]]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (loop(3), ["[1]", "[3]"]),
        (loop(3, dynamic=True), ["[1]", "[?]"]),
        (loop(-1, stop=3), ["[1]", "[?]"]),
        (loop(3, stop=3), ["[1]", "[?]"]),
        (loop(0), ["[1]", "[0]"]),
        (loop(3, going=False), ["[1]", "[0]"]),
        (loop(3, grow=True), ["[1..]", "[3]"]),
    ],
)
def test_shapes(case: Case, expected: list[str]) -> None:
    assert shapes(case) == expected


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("start", [(), (100,)], ids=len)
@pytest.mark.parametrize("trips", [3, 0])
def test_state_may_grow(trips: int, start: tuple[int, ...], dynamic: bool) -> None:
    """Without iterations, as in a detector without detections, the result is the initial value."""
    numbers = list(range(trips))
    assert run(loop(trips, grow=True, dynamic=dynamic, start=start)) == [[*start, *numbers], numbers]


@pytest.mark.parametrize(
    ("initial", "result", "expected"),
    [
        (Shape(0, 3), Shape(Dim(1, None), 3), True),
        (Shape(None, 3), Shape(Dim(1, None), 3), False),
        (Shape(None, 0), Shape(None, 4), False),  # as TensorFlow's lists start; files declare [-1,4]
        (Shape(0, 3), Shape(Dim(1, None), Dim(4, None)), False),
        (Shape(0), Shape(Dim(1, None), 3), False),
    ],
    ids=str,
)
def test_only_values_that_grow_have_wider_types(initial: Shape, result: Shape, expected: bool) -> None:
    assert grows(initial, result) == expected


def test_an_endless_loop_exceeds_the_limit_of_iterations() -> None:
    case = loop(-1)
    model = load(case)
    model.limits = irload.Limits(iterations=50)
    with pytest.raises(LimitExceeded, match=r"more than 50 iterations.*--limit iterations="):
        irload.compile_model(model)([i.value for i in case.inputs if not i.constant])


def test_without_condition_it_is_refused() -> None:
    case = loop()
    xml = case.xml.replace(' purpose="execution_condition"', "")
    with pytest.raises(ReadError, match="without port and without purpose"):
        load(Case("Loop", "opset5", case.inputs, outputs=2, xml=xml, weights=case.weights))


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ('from-layer="6"', 'from-layer="60"', ReadError, "from-layer 60 .* is not a Result"),
        ('external_port_id="4"', 'external_port_id="3"', ReadError, "output port 3 twice"),
        ('external_port_id="2"', 'external_port_id="9"', ReadError, "external port 9, which the layer does not have"),
        ("current_iteration", "sideways", ReadError, "purpose 'sideways'"),
        ('<input external_port_id="2" internal_layer_id="1"/>', "", ShapeMismatch, "input 2 is not in the port map"),
        (
            'external_port_id="2" internal_layer_id="1"',
            'external_port_id="2" internal_layer_id="0"',
            ReadError,
            "both feed layer 0 of the body",
        ),
    ],
)
def test_wiring_that_cannot_be(old: str, new: str, error: type[IRError], message: str) -> None:
    case = loop()
    layer = case.xml.split('<edge from-layer="')[1].split('"')[0]
    xml = case.xml.replace(old.replace('from-layer="6"', f'from-layer="{layer}"'), new, 1)
    assert xml != case.xml
    with pytest.raises(error, match=message):
        load(Case("Loop", "opset5", case.inputs, outputs=2, xml=xml, weights=case.weights))


@pytest.mark.parametrize("trips", [[1, 2], [[1, 2]]])
def test_trip_count_has_one_element(trips: Any) -> None:
    with pytest.raises(ShapeMismatch, match="trip_count must be a scalar or have one element"):
        load(loop(trips))


def test_variables_of_a_body_pass_from_iteration_to_iteration() -> None:
    body = Body(bytearray())
    value = body.parameter(et.i64, "1")
    read = body.op("ReadValue", version="opset6", variable_id="v", variable_type=et.i64, variable_shape="1")
    total = body.op("Add", read, value)
    body.op("Assign", total, version="opset6", variable_id="v")
    result, condition = body.result(total), body.result(body.constant(np.bool_(True)))
    xml = port_map(
        input_entry(2, value),
        output_entry(3, result, axis=0),
        output_entry(-1, condition, purpose="execution_condition"),
    )
    inputs = [const(np.int64(3)), const(np.bool_(True)), param(np.array([2]))]
    case = Case("Loop", "opset5", inputs, xml=xml + body.xml(), weights=bytes(body.weights))
    request = irload.compile_model(load(case)).create_infer_request()
    assert request.infer([np.array([2])])[0].tolist() == [2, 4, 6]
    assert request.infer([np.array([1])])[0].tolist() == [7, 8, 9]


@pytest.mark.parametrize("optimize", [True, False])
def test_bounds_may_be_looser_for_a_known_shape(optimize: bool) -> None:
    """The state is [3..], so its first 12 elements are [3..12]; from a state [15], the size is only known as [..12]."""
    weights = bytearray()
    body = Body(weights)
    state = body.parameter(et.i64, "?")
    zero, twelve, one = (body.constant(np.array([k])) for k in (0, 12, 1))
    result = body.result(body.op("Slice", state, zero, twelve, one, version="opset8"))
    condition = body.result(body.constant(np.bool_(True)))
    graph = Body(weights)
    positions = graph.op("NonZero", graph.parameter(et.f32, "?"), version="opset3", output_type="i64")
    found = graph.op("Reshape", positions, graph.constant(np.array([-1])), special_zero=False)
    initial = graph.op("Concat", graph.constant(np.array([7, 8, 9])), found, axis=0)
    inputs = [graph.constant(np.int64(2)), graph.constant(np.bool_(True)), initial]
    lines = (
        input_entry(2, state),
        output_entry(3, result),
        output_entry(-1, condition, purpose="execution_condition"),
    )
    graph.loop(inputs, body, lines, [(result, state)], 1)
    model = irload.read_model(*graph.model())
    assert str(model.outputs[0].partial_shape) == "[3..12]"
    compiled = irload.compile_model(model, optimize=optimize)
    for count in (12, 0, 5):
        assert compiled(np.ones(count, np.float32))[0].tolist() == [7, 8, 9, *range(min(count, 9))]


def test_types_of_deeply_nested_bodies_settle_within_a_budget() -> None:
    model = load(loop(3, grow=True))
    model.limits = irload.Limits(body_passes=1)
    with pytest.raises(LimitExceeded, match=r"are not stable after 1 passes.*--limit body-passes="):
        irload.infer(model)


@pytest.mark.parametrize(
    ("outer", "inner", "given_", "expected"),
    [
        (et.f32, et.i32, [0.5, 1.5, -2.5, 3e9], [0, 2, 2, 2147483520]),
        (et.f32, et.u8, [0.6, 300, -1.5, 7], [1, 255, 0, 7]),
        (et.i32, et.i8, [300, -100, 1, -3], [127, 100, 1, 3]),
        (et.i64, et.f32, [2**40 + 1, -7, 3, 0], [1, 7, 3, 0]),
        (et.f16, et.f32, [0.5, -1, 2, 0], [0.5, 1, 2, 0]),
        (et.boolean, et.f32, [True, False, True, True], [1, 0, 1, 1]),
    ],
)
def test_inputs_are_converted_to_the_declared_types_of_body_parameters(
    outer: ElementType, inner: ElementType, given_: Any, expected: Any
) -> None:
    weights = bytearray()
    body = Body(weights)
    data = body.parameter(inner, "4")
    result = body.result(body.op("Abs", data))
    xml = port_map(input_entry(0, data), output_entry(1, result)) + body.xml("body")
    case = Case("TensorIterator", "opset1", [param(given_, outer)], xml=xml, weights=bytes(weights), oracle="cpu")
    model = load(case)
    assert sum(f"must be {outer} by the specification, found {inner}" in w for w in model.warnings) == 1
    for optimize in (False, True):
        output = irload.compile_model(model, optimize=optimize)(case.inputs[0].value)[0]
        assert output.dtype == inner.dtype
        assert output.tolist() == expected
    assert outputs(case)[0].tolist() == expected


def test_text_does_not_become_a_number() -> None:
    weights = bytearray()
    body = Body(weights)
    data = body.parameter(et.f32, "1")
    xml = port_map(input_entry(0, data), output_entry(1, body.result(body.op("Abs", data)))) + body.xml("body")
    case = Case("TensorIterator", "opset1", [param(["a"], et.string)], xml=xml, weights=bytes(weights))
    with pytest.raises(TypeMismatch, match="parameter 0 of the body is f32, the tensor for it string"):
        load(case)
