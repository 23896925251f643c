"""Types that are inferred at run time depend only on the values that inference reads: the interpreter caches them."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest

from irload.core.element import f16, i64
from irload.core.op import infer_outputs
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.inference import Inference
from irload.plan.inferred_types import LARGEST, InferredTypes, Outputs, UnreadType, form_of
from tests.harness.case import GENERATORS
from tests.harness.verify import load
from tests.ops.families import load_families

load_families()
CASES_A_ROW = 3


@pytest.mark.parametrize("row", sorted(GENERATORS), ids="-".join)
def test_types_without_unread_values(row: tuple[str, str]) -> None:
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    for case in (generate(rng) for _ in range(CASES_A_ROW) for generate in GENERATORS[row]):
        op = next(n for n in load(case).nodes if n.type == row[0]).op
        expected = infer_outputs(op, [TensorType.of(i.value, i.element) for i in case.inputs], Inference())
        unread = [
            UnreadType.of_stored(i.value, TensorType(i.element, TensorType.of(i.value).shape)) for i in case.inputs
        ]
        first = infer_outputs(op, unread, Inference())
        second = infer_outputs(op, [t if t.is_read else t.without_value() for t in unread], Inference())
        assert [(t.element, t.shape) for t in first] == [(t.element, t.shape) for t in expected], case
        assert [(t.element, t.shape) for t in second] == [(t.element, t.shape) for t in expected], case


def test_values_are_converted_when_read() -> None:
    tensor = UnreadType.of_stored(np.array([1, 2**-30], np.float32), TensorType(f16, Shape(2)))
    assert not tensor.is_read
    assert tensor.without_value().value is None
    assert not tensor.is_read
    assert tensor.value is not None
    assert tensor.value.dtype == np.float16
    assert tensor.is_read


def test_a_changed_copy_reads_the_value() -> None:
    """As inference and extensions create from the types of inputs."""
    array = np.array([3, 4])
    tensor = UnreadType.of_stored(array, TensorType.of(array))
    changed = replace(tensor, shape=Shape(1, 2))
    assert tensor.is_read
    assert (changed.element, changed.shape) == (i64, Shape(1, 2))
    assert changed.value is array


def _keep(known: InferredTypes, arrays: list[np.ndarray], read: list[int], length: int) -> None:
    given = [UnreadType.of_stored(a, TensorType.of(a)) for a in arrays]
    for k in read:
        assert given[k].value is not None
    known.keep(form_of(arrays), arrays, given, Outputs((TensorType(i64, Shape(length)),), 8 * length))


def _find(known: InferredTypes, *arrays: np.ndarray) -> int | None:
    outputs = known.find(form_of(arrays), arrays)
    return None if outputs is None else outputs.nbytes // 8


def test_outputs_by_read_values() -> None:
    known, data = InferredTypes(), np.zeros(3)
    _keep(known, [data, np.array([4])], [1], 4)
    _keep(known, [data, np.array([5])], [1], 5)
    assert _find(known, data + 1, np.array([4])) == 4
    assert _find(known, data, np.array([5])) == 5
    assert _find(known, data, np.array([6])) is None
    assert _find(known, np.zeros(2), np.array([4])) is None


def test_inputs_read_only_for_other_values() -> None:
    known = InferredTypes()
    _keep(known, [np.array([1]), np.array([7])], [0], 1)
    _keep(known, [np.array([2]), np.array([8])], [0, 1], 8)
    assert _find(known, np.array([2]), np.array([8])) == 8
    assert _find(known, np.array([2]), np.array([9])) is None


def test_large_values_and_texts_are_not_cached() -> None:
    known, large, text = InferredTypes(), np.zeros(LARGEST, np.int64), np.array(["a"], object)
    _keep(known, [large], [0], 1)
    _keep(known, [text], [0], 1)
    assert _find(known, large) is None
    assert _find(known, text) is None
