"""Normalization: hand-worked values, the position of epsilon, the choice of channels and axes, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation

# Two channels of two elements, with means 2 and 20 and variances 1 and 100.
TWO = np.array([[[1.0, 3.0], [10.0, 30.0]]])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [-1, 1, -10, 10]),
        ({"normalize_variance": True}, [-1, 1, -1, 1]),
        ({"normalize_variance": True, "eps": 3.0}, [-0.5, 0.5, -10 / 103**0.5, 10 / 103**0.5]),
        ({"across_channels": True}, [-10, -8, -1, 19]),
        ({"reduction_axes": (1, 2)}, [-10, -8, -1, 19]),
    ],
)
def test_mvn(attributes: dict[str, Any], expected: list[float]) -> None:
    (output,) = computed("MVN", "opset2", TWO, **attributes)
    np.testing.assert_allclose(output.ravel(), expected)


@pytest.mark.parametrize(
    ("axes", "mode", "expected"),
    [
        ([2], "inside_sqrt", [-0.5, 0.5, -10 / 103**0.5, 10 / 103**0.5]),
        ([-1], "outside_sqrt", [-0.25, 0.25, -10 / 13, 10 / 13]),
        ([-1, 2], "outside_sqrt", [-0.25, 0.25, -10 / 13, 10 / 13]),
    ],
)
def test_mvn_over_axes(axes: list[int], mode: str, expected: list[float]) -> None:
    (output,) = computed("MVN", "opset6", TWO, np.array(axes), normalize_variance=True, eps=3.0, eps_mode=mode)
    np.testing.assert_allclose(output.ravel(), expected)


def test_old_files_name_mvn_under_opset1() -> None:
    assert operation("MVN", "opset1").opset == "opset2"


def test_mvn_of_nothing_is_nothing() -> None:
    (output,) = computed("MVN", "opset6", np.zeros((2, 0, 3)), np.array([1]), normalize_variance=True)
    assert output.shape == (2, 0, 3)


@pytest.mark.parametrize(("version", "order"), [("opset1", (1, 2, 0, 3, 4)), ("opset5", (0, 1, 2, 3, 4))])
def test_batch_norm_takes_its_inputs_in_the_order_of_its_version(version: str, order: tuple[int, ...]) -> None:
    # (data − mean) / √(variance + 1) · gamma + beta
    parts = [TWO, np.array([2.0, 1.0]), np.array([0.0, 5.0]), np.array([1.0, 10.0]), np.array([3.0, 0.0])]
    (output,) = computed("BatchNormInference", version, *(parts[k] for k in order), epsilon=1.0)
    assert output.ravel().tolist() == [0, 2, 5, 25]


def test_group_norm() -> None:
    scale, bias = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    (each,) = computed("GroupNormalization", "opset12", TWO, scale, bias, num_groups=2)
    np.testing.assert_allclose(each.ravel(), [-1, 1, -1, 3])
    (all_,) = computed("GroupNormalization", "opset12", TWO, scale, bias, num_groups=1)
    deviation = (TWO - 11).ravel() / np.std(TWO)
    np.testing.assert_allclose(all_.ravel(), deviation * [1, 1, 2, 2] + [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [1 / 2, 2 / 5, 3 / 10]),
        (2, [1 / 1.5, 2 / 3, 3 / 5.5]),
        (3, [0.375, 6 / 17, 0.5625]),
        (5, [1 / 3.8, 2 / 3.8, 3 / 3.8]),
    ],
)
def test_lrn(size: int, expected: list[float]) -> None:
    data = np.array([[1.0], [2.0], [3.0]]).reshape(1, 3, 1)
    (output,) = computed("LRN", "opset1", data, np.array([1]), alpha=1.0, beta=1.0, bias=1.0, size=size)
    np.testing.assert_allclose(output.ravel(), expected)


def test_lrn_over_two_axes_divides_alpha_by_the_area() -> None:
    data = np.ones((1, 1, 3, 3))
    (output,) = computed("LRN", "opset1", data, np.array([2, 3]), alpha=9.0, beta=1.0, bias=0.0, size=3)
    np.testing.assert_allclose(output[0, 0], [[1 / 4, 1 / 6, 1 / 4], [1 / 6, 1 / 9, 1 / 6], [1 / 4, 1 / 6, 1 / 4]])


@pytest.mark.parametrize(
    ("axes", "mode", "eps", "expected"),
    [
        ([0], "add", 0.0, [0.6, 0.8]),
        (0, "add", 0.0, [0.6, 0.8]),
        ([-1], "add", 75.0, [0.3, 0.4]),
        ([0], "max", 100.0, [0.3, 0.4]),
        ([0], "max", 1.0, [0.6, 0.8]),
        ([], "add", 5.0, [1, 1]),
    ],
)
def test_normalize_l2(axes: Any, mode: str, eps: float, expected: list[float]) -> None:
    data = np.array([3.0, 4.0])
    (output,) = computed("NormalizeL2", "opset1", data, np.array(axes, np.int64), eps=eps, eps_mode=mode)
    np.testing.assert_allclose(output, expected)


def test_grn() -> None:
    (output,) = computed("GRN", "opset1", np.array([[3.0, 4.0]]), bias=75.0)
    np.testing.assert_allclose(output, [[0.3, 0.4]])


CHANNELS: dict[str, Any] = {"num_groups": 2}


@pytest.mark.parametrize(
    ("type", "version", "attributes", "inputs", "error", "message"),
    [
        ("BatchNormInference", "opset5", {}, ["1,3,4", "2", "3", "3", "3"], ShapeMismatch, "gamma must have one value"),
        ("BatchNormInference", "opset5", {}, ["1,3,4", "3", "3", "3,1", "3"], ShapeMismatch, "mean must have"),
        ("BatchNormInference", "opset5", {}, ["4", "3", "3", "3", "3"], ShapeMismatch, "batch and channels"),
        ("BatchNormInference", "opset1", {}, ["0", "0", "1,0,4", "0", "0"], ShapeMismatch, "at least one channel"),
        ("GroupNormalization", "opset12", CHANNELS, ["1,3,4", "3", "3"], AttributeInvalid, "must divide"),
        ("GroupNormalization", "opset12", CHANNELS, ["1,4,4", "3", "4"], ShapeMismatch, "scale must have one value"),
        ("GroupNormalization", "opset12", CHANNELS, ["4", "4", "4"], ShapeMismatch, "batch and channels"),
        ("MVN", "opset6", {}, ["1,3", "1"], TypeMismatch, "axes must be of an integer type"),
        ("MVN", "opset2", {"reduction_axes": (3,)}, ["1,3"], ShapeMismatch, "reduction_axes 3 is out of range"),
        ("GRN", "opset1", {}, ["3"], ShapeMismatch, "rank 2, 3 or 4"),
    ],
)
def test_errors(
    type: str, version: str, attributes: dict[str, Any], inputs: list[str], error: type[IRError], message: str
) -> None:
    with pytest.raises(error, match=message):
        operation(type, version, **attributes).infer(*(TensorType(et.f32, Shape.parse(i)) for i in inputs))


@pytest.mark.parametrize(
    ("axes", "message"),
    [([2], "out of range"), ([-3], "out of range"), ([0, 1, 0], "more than the rank"), (0, "rank 1")],
)
def test_axes_outside_the_data(axes: Any, message: str) -> None:
    with pytest.raises(ShapeMismatch, match=message):
        operation("LRN", "opset1").infer(TensorType(et.f32, Shape(2, 3)), TensorType.of(np.array(axes)))


@pytest.mark.parametrize(("type", "version"), [("MVN", "opset2"), ("GRN", "opset1")])
def test_strings_are_not_normalized(type: str, version: str) -> None:
    with pytest.raises(TypeMismatch, match="floating-point type, found string"):
        operation(type, version).infer(TensorType(et.string, Shape(1, 2, 3)))


def test_channels_are_inferred_from_the_channel_inputs() -> None:
    channel = TensorType(et.f32, Shape(3))
    data = TensorType(et.f32, Shape(1, None, None))
    inferred = operation("BatchNormInference", "opset5").infer(data, channel, channel, channel, channel)
    assert str(inferred) == "f32[1,3,?]"
