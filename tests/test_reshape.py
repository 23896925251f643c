"""Model.reshape: new shapes for inputs, everything inferred again, no change if they are invalid."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from tests.harness.case import Case, const, param
from tests.harness.verify import load

CASE = Case("MatMul", "opset1", [param(np.ones((2, 3), np.float32)), const(np.ones((3, 4), np.float32))])


@pytest.mark.parametrize(
    ("shapes", "inferred"),
    [
        ([5, 3], "[5,4]"),
        ({"in0": [None, 3]}, "[?,4]"),
        ({0: "1..8,3"}, "[1..8,4]"),
        ({0: irload.Shape(7, (2, None))}, "[7,4]"),
    ],
)
def test_every_layer_follows(shapes: object, inferred: str) -> None:
    model = load(CASE)
    assert model.reshape(shapes) is model
    assert str(model.outputs[0].partial_shape) == inferred


def test_an_invalid_shape_leaves_the_model_unchanged() -> None:
    model = load(CASE)
    with pytest.raises(irload.ShapeMismatch):
        model.reshape([5, 7])
    assert str(model.inputs[0].partial_shape) == "[2,3]"
    assert str(model.outputs[0].partial_shape) == "[2,4]"


def test_an_input_that_does_not_exist_is_named() -> None:
    with pytest.raises(irload.InputInvalid, match="no input named 'y'"):
        load(CASE).reshape({"y": [1]})


def test_a_reshaped_model_runs() -> None:
    model = load(CASE).reshape([5, 3])
    assert irload.compile_model(model)(np.ones((5, 3), np.float32))[0].shape == (5, 4)


def test_a_list_is_not_a_dim() -> None:
    with pytest.raises(
        TypeError, match=r"a dim is an int, a pair \(lo, hi\) or None, found \[1, 2\]; .* Shape\(1, 3\)"
    ):
        irload.Shape([1, 2])  # type: ignore[arg-type]
