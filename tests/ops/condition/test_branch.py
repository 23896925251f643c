"""If: which branch runs, inference of both, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.errors import IRError, ReadError, ShapeMismatch, TypeMismatch
from tests.harness.body import Body, input_entry, output_entry, port_map
from tests.harness.case import Case, const, param
from tests.harness.runtime import outputs
from tests.harness.verify import load

DATA = np.array([[1, 2, 3]], np.float32)


def branches(then: Any, otherwise: Any, cond: Any = True, *, constant: bool = False) -> Case:
    """Each branch returns a constant; `then` and `otherwise` are arrays."""
    xml, weights = "", bytearray()
    for tag, array in (("then", then), ("else", otherwise)):
        body = Body(weights)
        xml += port_map(output_entry(1, body.result(body.constant(array))), tag=f"{tag}_port_map") + body.xml(
            f"{tag}_body"
        )
    return Case("If", "opset8", [(const if constant else param)(np.asarray(cond))], xml=xml, weights=bytes(weights))


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("cond", [True, False])
def test_the_condition_chooses(cond: bool, shape: tuple[int, ...]) -> None:
    compiled = irload.compile_model(load(branches(ones(2), ones(2) * 5, np.full(shape, cond))))
    assert compiled(np.full(shape, cond))[0].tolist() == ([1, 1] if cond else [5, 5])


@pytest.mark.parametrize(
    ("then", "otherwise", "expected"),
    [
        (ones(2, 3), ones(2, 3), "[2,3]"),
        (ones(2, 3), ones(2, 5), "[2,3..5]"),
        (ones(2, 3), ones(6), "[...]"),
        (ones(), ones(6), "[...]"),
    ],
)
def test_the_shape_admits_both(then: Any, otherwise: Any, expected: str) -> None:
    assert str(load(branches(then, otherwise)).output(0).partial_shape) == expected


@pytest.mark.parametrize(("cond", "expected"), [(True, "[2,3]"), (False, "[7]")])
def test_a_constant_condition_determines_the_shape(cond: bool, expected: str) -> None:
    assert str(load(branches(ones(2, 3), ones(7), cond, constant=True)).output(0).partial_shape) == expected


def test_a_branch_that_never_runs_need_not_fit() -> None:
    weights, xml = bytearray(), ""
    for tag, axis in (("then", 0), ("else", 1)):
        body = Body(weights)
        data = body.parameter(et.f32, "?,?")
        result = body.result(body.op("Squeeze", data, body.constant(np.array([axis]))))
        xml += port_map(input_entry(1, data), output_entry(2, result), tag=f"{tag}_port_map") + body.xml(f"{tag}_body")
    case = Case("If", "opset8", [param(np.bool_(True)), param(DATA)], xml=xml, weights=bytes(weights))
    compiled = irload.compile_model(load(case, ["", "?,?"]))
    assert compiled([np.bool_(True), DATA])[0].tolist() == [1, 2, 3]
    assert compiled([np.bool_(False), DATA.T])[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        (branches(ones(1), np.ones(1, np.int32)), TypeMismatch, "must agree, found f32, i32"),
        (branches(ones(1), ones(1), [[True, False]]), ShapeMismatch, "cond must be a scalar or have one element"),
        (branches(ones(1), ones(1), np.zeros(0, bool)), ShapeMismatch, "cond must be a scalar or have one element"),
        (branches(ones(1), ones(1), np.float32(1)), TypeMismatch, "cond must be boolean, found f32"),
        (branches(ones(1), ones(1), 1), TypeMismatch, "cond must be boolean, found i64"),
    ],
)
def test_refused(case: Case, error: type[IRError], message: str) -> None:
    with pytest.raises(error, match=message):
        load(case)


@pytest.mark.parametrize(
    ("cond", "constant", "expected"),
    [
        *((([True, False], False, 1), ([False, True], False, 5), (np.uint8(7), False, 1), (np.int8(0), False, 5))),
        *(((np.float32(0.5), True, 1), (np.int64(256), True, 1), (np.float32(0), True, 5))),
    ],
)
def test_other_conditions_that_the_runtime_takes(cond: Any, constant: bool, expected: int) -> None:
    case = branches(ones(2), ones(2) * 5, cond, constant=constant)
    model = load(case)
    assert sum("by the specification" in w for w in model.warnings) == 1
    inputs = [] if constant else [np.asarray(cond)]
    assert irload.compile_model(model)(inputs)[0].tolist() == [expected, expected]
    assert outputs(case)[0].tolist() == [expected, expected]


def test_both_branches_give_the_same_outputs() -> None:
    case = branches(ones(1), ones(1))
    head, _, tail = case.xml.partition("<else_port_map>")
    xml = head + "<else_port_map>" + tail[tail.index("</else_port_map>") :]
    with pytest.raises(ShapeMismatch, match="then_body gives 1 outputs, else_body 0"):
        load(Case("If", "opset8", case.inputs, xml=xml, weights=case.weights))


def test_both_bodies_must_be_there() -> None:
    case = branches(ones(1), ones(1))
    xml = case.xml[: case.xml.index("<else_body>")]
    with pytest.raises(ReadError, match="has no <else_body>"):
        load(Case("If", "opset8", case.inputs, xml=xml, weights=case.weights))
