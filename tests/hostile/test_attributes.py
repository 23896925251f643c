"""Attributes and small inputs at the boundaries of their ranges, for every operation.

Each ends in a typed error or in a result of the inferred shape: no other exception, no crash, no hang, no memory beyond
the limits. `python -m tests.hostile.boundaries 20000` tries more.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.errors import AttributeInvalid, IRError, LimitExceeded, ShapeMismatch
from tests.harness.case import GENERATORS, Case, const, param
from tests.harness.ir import ir_of
from tests.harness.tiers import tiered
from tests.ops.families import load_families

load_families()
ROOT = Path(__file__).parents[2]
EACH = tiered(1, 8)
"""Cases per row."""


def test_boundary_values_of_every_operation() -> None:
    """In a new process, whose children may use OpenVINO: it hangs in a fork of a process that has used it."""
    words = [sys.executable, "-m", "tests.hostile.boundaries", str(EACH * len(GENERATORS)), "7"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


SQUARE, WINDOW = (param(np.ones((1, 1, n, n), np.float32)) for n in (4, 2))
ONE_CHANNEL = param(np.ones((1, 1, 2, 2), np.float32))


def conv(**attributes: object) -> Case:
    complete = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", **attributes}
    return Case("Convolution", "opset1", [SQUARE, WINDOW], complete)


def pool(**attributes: object) -> Case:
    complete = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", **attributes}
    return Case("MaxPool", "opset1", [SQUARE], complete)


def axis(value: object) -> Case:
    return Case("Softmax", "opset8", [param([[1.0, 2.0]])], {"axis": value})


WRONG: dict[str, tuple[Case, type[IRError], str]] = {
    "zero strides": (conv(strides="0,1"), AttributeInvalid, "strides must be positive"),
    "negative strides": (pool(strides="-1,1"), AttributeInvalid, "strides must be positive"),
    "zero dilations": (conv(dilations="0,1"), AttributeInvalid, "dilations must be positive"),
    "negative dilations": (conv(dilations="1,-3"), AttributeInvalid, "dilations must be positive"),
    "a kernel of zero": (pool(kernel="0,2"), AttributeInvalid, "kernel must be positive"),
    "a negative kernel": (pool(kernel="2,-2"), AttributeInvalid, "kernel must be positive"),
    "negative pads": (pool(pads_begin="-1,0"), AttributeInvalid, "pads_begin must not be negative"),
    "a list that is too long": (conv(strides="1,1,1"), AttributeInvalid, "strides must have one value for each of 2"),
    "a list that is too short": (pool(pads_end="1"), AttributeInvalid, "pads_end must have one value for each of 2"),
    "a list of 100,000 items": (conv(dilations="1," * 100_000), AttributeInvalid, "found 100000"),
    "an integer beyond 64 bits": (axis(2**64), AttributeInvalid, "does not fit 64 bits"),
    "an integer of 10,000 digits": (axis("9" * 10_000), AttributeInvalid, "not an integer|does not fit"),
    "an axis out of range": (axis(2), ShapeMismatch, "axis 2 is out of range for rank 2"),
    "a negative axis out of range": (axis(-3), ShapeMismatch, "axis -3 is out of range"),
    "the least axis": (axis(-(2**63)), ShapeMismatch, "out of range"),
    "a bad enum": (pool(rounding_type="sideways"), AttributeInvalid, "'sideways' is not one of floor, ceil"),
    "an empty enum": (conv(auto_pad=""), AttributeInvalid, "'' is not one of"),
    "NaN for an integer": (axis("nan"), AttributeInvalid, "'nan' is not an integer"),
    "infinity for an integer": (axis("inf"), AttributeInvalid, "'inf' is not an integer"),
    "NaN where a number must be positive": (
        Case(
            "PSROIPooling",
            "opset1",
            [param([[[[1.0]]]]), param([[0.0] * 5])],
            {"output_dim": 1, "group_size": 1, "spatial_scale": "nan", "mode": "average"},
        ),
        AttributeInvalid,
        "spatial_scale",
    ),
    "groups of zero": (
        Case("GroupConvolution", "opset1", [ONE_CHANNEL, param(np.zeros((0, 1, 1, 1, 1), np.float32))]),
        ShapeMismatch,
        "groups",
    ),
    "groups that do not divide the channels": (
        Case(
            "Convolution",
            "onednn",
            [ONE_CHANNEL, param(np.zeros((1, 1, 1, 1), np.float32))],
            {
                "strides": "1,1",
                "pads_begin": "0,0",
                "pads_end": "0,0",
                "dilations": "1,1",
                "groups": 2,
                "data_format": "NCX",
                "filter_format": "OIX",
            },
        ),
        ShapeMismatch,
        "divisible by groups 2",
    ),
    "a shuffle into zero groups": (
        Case("ShuffleChannels", "opset1", [param([[1.0, 2.0]])], {"axis": 1, "group": 0}),
        AttributeInvalid,
        "group must be positive",
    ),
    "groups that do not divide": (
        Case("ShuffleChannels", "opset1", [param([[1.0, 2.0, 3.0]])], {"axis": 1, "group": 2}),
        ShapeMismatch,
        "must be divisible by 2",
    ),
    "splits that do not divide": (
        Case("Split", "opset1", [param([1.0, 2.0, 3.0]), const(0)], {"num_splits": 2}, 2),
        ShapeMismatch,
        "2",
    ),
    "more splits than a layer may have ports": (
        Case("Split", "opset1", [param([1.0, 2.0]), const(0)], {"num_splits": 2**62}),
        LimitExceeded,
        "limit",
    ),
}


@pytest.mark.parametrize(("case", "error", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_attribute_is_named(case: Case, error: type[IRError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        irload.infer(irload.read_model(*ir_of(case)))
    assert caught.value.where is not None
    assert caught.value.where.layer_name == "op"
    assert len(str(caught.value)) < 1000


ZEROS = {
    "no batch": (conv(), (0, 1, 4, 4), (0, 1, 3, 3)),
    "no channel": (Case("ReLU", "opset1", [SQUARE]), (1, 0, 4, 4), (1, 0, 4, 4)),
    "no element to sum": (
        Case("ReduceSum", "opset1", [SQUARE, const([0, 1, 2, 3])], {"keep_dims": False}),
        (2, 0, 3, 1),
        (),
    ),
}


@pytest.mark.parametrize(("case", "shape", "expected"), ZEROS.values(), ids=ZEROS)
def test_dims_of_zero_are_legal(case: Case, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    empty = param(np.zeros(shape, np.float32))
    case = replace(case, inputs=[empty, *case.inputs[1:]])
    for optimize in (False, True):
        model = irload.read_model(*ir_of(case))
        (result,) = irload.compile_model(model, optimize=optimize)(
            [i.value for i in case.inputs if not i.constant]
        ).values()
        assert result.shape == expected
        assert not result.any()
