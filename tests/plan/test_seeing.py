"""Inspecting a plan: times of its steps, and its description."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from tests.plan.nets import convolutions

MODELS = Path(__file__).parents[2] / "models"
START = np.array([[1, 3]], np.float32)


@pytest.mark.numpy_kernels
def test_a_profile_has_an_entry_for_each_step():
    compiled = irload.compile_model(convolutions(3, 32, 32), 1)
    first, second = compiled.profile(np.ones((1, 3, 24, 24), np.float32), 3)
    assert (first.operation, first.layer, first.shape) == ("Convolution+ReLU", "relu0", (1, 32, 24, 24))
    assert first.flops == 2 * 32 * 24 * 24 * 3 * 9
    assert second.flops == 2 * 32 * 24 * 24 * 32 * 9
    assert (first.kernel, second.kernel) == ("im2col", "winograd")
    assert min(first.seconds, second.seconds) > 0
    assert first.rate.endswith("GFLOP/s")


def test_a_profile_of_a_plain_plan_has_an_entry_for_each_operation():
    compiled = irload.compile_model(MODELS / "loop" / "model.xml", 1)
    (entry,) = compiled.profile([4, START])
    assert (entry.operation, entry.kernel) == ("Loop", "compute")
    plain = irload.compile_model(convolutions(3, 4), 1, optimize=False)
    assert [s.operation for s in plain.profile(np.ones((1, 3, 24, 24), np.float32), 1)] == ["Convolution", "ReLU"]


def test_a_profile_preserves_the_state():
    compiled = irload.compile_model(MODELS / "state" / "model.xml", 1)
    step = np.array([[1, 2, 3]], np.float32)
    compiled(step)
    compiled.profile(step)
    assert compiled(step)[0].tolist() == [[2, 4, 6]]


@pytest.mark.numpy_kernels
def test_explain_lists_kernels_and_memory():
    text = irload.compile_model(convolutions(3, 32, 32), 2).explain()
    for part in ("x f32[1,3,24,24], 2 threads", "2 × Convolution+ReLU", "1 × winograd: ", "values 147.5 KB", "(relu1)"):
        assert part in text, part


def test_a_plain_plan_explains_its_reason():
    loop = irload.compile_model(MODELS / "loop" / "model.xml", 1).explain([4, START])
    assert "shapes depend on values, first at Loop 'doubling'" in loop
    assert "optimize=False" in irload.compile_model(convolutions(3, 4), 1, optimize=False).explain()


def test_a_dynamic_model_is_explained_for_given_inputs():
    compiled = irload.compile_model(convolutions(3, 4, size="?"), 1)
    with pytest.raises(irload.InputInvalid, match="dynamic"):
        compiled.explain()
    assert "f32[1,3,9,9]" in compiled.explain(np.ones((1, 3, 9, 9), np.float32))
