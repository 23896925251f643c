"""Indices out of range and negative ones: each operation follows its specification, and never wraps silently."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.errors import ExecutionError
from tests.harness.case import Case, const, param
from tests.harness.ir import ir_of
from tests.hostile.test_running import ended

DATA = np.array([10, 20, 30], np.float32)
BEYOND = {"3": 3, "-4": -4, "INT64_MIN": -(2**63), "INT64_MAX": 2**63 - 1}


def gather(version: str, index: int, element: et.ElementType = et.i64) -> Case:
    return Case("Gather", version, [param(DATA), param(np.array([index], element.dtype), element), const(0)])


def value(case: Case) -> list[float]:
    """The result, computed plainly and by the plan, which must agree."""
    model = irload.read_model(*ir_of(case))
    arrays = [i.value for i in case.inputs if not i.constant]
    plain, fast = (irload.compile_model(model, optimize=o)(arrays)[0].ravel().tolist() for o in (False, True))
    assert plain == fast
    return plain


@pytest.mark.parametrize("version", ["opset1", "opset7", "opset8"])
def test_gather_counts_negative_indices_from_the_end_and_gives_zero_outside(version: str) -> None:
    assert [value(gather(version, k)) for k in (0, 2, -1, -3)] == [[10], [30], [30], [10]]
    for index in BEYOND.values():
        assert value(gather(version, index)) == [0]
    assert value(gather(version, 2**64 - 1, et.u64)) == [0]  # −1 is not valid
    constant = Case("Gather", version, [param(DATA), const(2**64 - 1, et.u64), const(0)])
    assert value(constant) == [0]


def at(type: str, version: str, index: int) -> Case:
    """An operation with `index` as one of its indices, on an axis of 3."""
    indices, one = param(np.array([index])), param(np.array([1], np.float32))
    inputs = {
        "GatherElements": [param(DATA), indices],
        "GatherND": [param(DATA), param(np.array([[index]]))],
        "ScatterUpdate": [param(DATA), indices, one, const(0)],
        "ScatterElementsUpdate": [param(DATA), indices, one, const(0)],
        "ScatterNDUpdate": [param(DATA), param(np.array([[index]])), one],
    }[type]
    return Case(type, version, inputs)


CHECKED = [
    ("GatherElements", "opset6"),
    ("GatherND", "opset5"),
    ("GatherND", "opset8"),
    ("ScatterUpdate", "opset3"),
    ("ScatterElementsUpdate", "opset3"),
    ("ScatterElementsUpdate", "opset12"),
    ("ScatterNDUpdate", "opset4"),
    ("ScatterNDUpdate", "opset15"),
]


@pytest.mark.parametrize("row", CHECKED, ids="-".join)
def test_others_accept_negative_indices_and_reject_out_of_range_ones(row: tuple[str, str]) -> None:
    assert value(at(*row, -1)) == value(at(*row, 2))
    for index in BEYOND.values():
        for optimize in (False, True):
            assert ended(at(*row, index), optimize).startswith(f"{ExecutionError.__name__}: line 1: {row[0]} 'op'")


TABLE = param(np.ones((3, 2), np.float32))
BAGS = {
    "EmbeddingBagOffsetsSum": ("opset3", lambda i: [TABLE, param(np.array([i])), param(np.array([0]))]),
    "EmbeddingBagPackedSum": ("opset3", lambda i: [TABLE, param(np.array([[i]]))]),
    "EmbeddingSegmentsSum": ("opset3", lambda i: [TABLE, param(np.array([i])), param(np.array([0])), const(1)]),
    "EmbeddingBagOffsets": ("opset15", lambda i: [TABLE, param(np.array([i])), param(np.array([0]))]),
    "EmbeddingBagPacked": ("opset15", lambda i: [TABLE, param(np.array([[i]]))]),
}


@pytest.mark.parametrize("type", BAGS)
def test_bags_refuse_rows_that_the_table_does_not_have(type: str) -> None:
    version, inputs = BAGS[type]
    assert ended(Case(type, version, inputs(2)), False) == "[1, 2]"
    for index in (-1, *BEYOND.values()):
        assert "ExecutionError" in ended(Case(type, version, inputs(index)), False)


def test_one_hot_is_zero_for_indices_out_of_range() -> None:
    for index in (-1, *BEYOND.values()):
        case = Case(
            "OneHot",
            "opset1",
            [param(np.array([index])), const(3), const(np.float32(1)), const(np.float32(0))],
            {"axis": 0},
        )
        assert value(case) == [0, 0, 0]
