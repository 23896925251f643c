"""Attributes against the specification: read and run as OpenVINO does, with a warning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from tests.harness import runtime
from tests.harness.case import Case, Input
from tests.harness.ir import ir_of
from tests.test_rounding import MVN, case_of

NAN = float("nan")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("2;1", 2.0), ("2,,1", 2.0), ("0x10", 0.0), ("1.5.5", 1.5), ("+2", 2.0), (".5", 0.5), ("2.", 2.0)),
        *(("1e1x", 10.0), ("1-", 1.0), (" 2 1", 2.0), ("nan", float("nan"))),
        *((text, None) for text in ("x", "", " ", "--1", "-", ".", "1e", "1e+", "1e400", "Infinity", "nanx", "+inf")),
    ],
)
def test_numbers_are_read_up_to_the_first_invalid_character(text: str, value: float | None) -> None:
    case = case_of("Elu", "opset1", {"alpha": text}, et.f32, [-1.0, 2.0])
    if value is None:
        with pytest.raises(irload.IRError, match="alpha"):
            irload.read_model(*ir_of(case))
        with pytest.raises(runtime.Rejected):
            runtime.read(case)
        return
    model = irload.read_model(*ir_of(case))
    plain = text.strip() in ("+2", ".5", "2.", "nan")
    assert any("is not a number; OpenVINO reads" in w for w in model.warnings) == (not plain)
    output = irload.compile_model(model)(case.inputs[0].value)[0]
    assert output.tolist() == pytest.approx([value * np.expm1(-1.0), 2], nan_ok=True)
    assert runtime.outputs(case)[0].tolist() == pytest.approx(output.tolist(), nan_ok=True)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [*(("2;1", 2), ("2,,1", 2), ("2e1", 2), ("2e", 2), ("2.9", 2)), *((t, None) for t in (".5", "inf", "x", "--2"))],
)
def test_integers_are_read_up_to_the_first_invalid_character(text: str, blocks: int | None) -> None:
    attributes = {"mode": "blocks_first", "block_size": text}
    case = Case("DepthToSpace", "opset1", [Input(np.zeros((1, 16, 1, 1), np.float32), et.f32)], attributes)
    if blocks is None:
        with pytest.raises(irload.IRError, match="block_size"):
            irload.read_model(*ir_of(case))
        with pytest.raises(runtime.Rejected):
            runtime.read(case)
        return
    model = irload.read_model(*ir_of(case))
    assert any("is not an integer; OpenVINO reads 2" in w for w in model.warnings)
    assert list(runtime.read(case).output(0).shape) == list(model.outputs[0].shape) == [1, 4, 2, 2]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        *((text, [-2, 0.25, 0.5, 2]) for text in (None, "0", "-1", str(2**40))),
        ("1", [-2, NAN, NAN, 2]),
        ("2", [-2, 2, 2, 2]),
    ],
)
def test_fake_quantize_counts_its_levels_unsigned(levels: str | None, expected: list[float]) -> None:
    bounds = [Input(np.float32(v), et.f32, True) for v in (-1, 1, -2, 2)]
    data = Input(np.array([-1.5, 0.125, 0.25, 7], np.float32), et.f32)
    case = Case("FakeQuantize", "opset1", [data, *bounds], {} if levels is None else {"levels": levels})
    model = irload.read_model(*ir_of(case))
    assert sum("attribute levels" in w for w in model.warnings) == (levels in (None, "0", "-1", "1"))
    for optimize in (False, True):
        output = irload.compile_model(model, optimize=optimize)(data.value)[0]
        assert output.tolist() == pytest.approx(expected, nan_ok=True)
    assert runtime.outputs(case)[0].tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("mode", "channels"), [("avg", 1), ("avg", 3), ("max", 3)])
def test_a_negative_sampling_ratio_takes_no_samples(mode: str, channels: int) -> None:
    attributes = {"pooled_h": 1, "pooled_w": 2, "spatial_scale": 1, "sampling_ratio": -1, "mode": mode}
    data = Input(np.ones((1, channels, 3, 3), np.float32), et.f32)
    regions = Input(np.array([[0, 0, 2, 2]], np.float32), et.f32, True), Input(np.array([0]), et.i64, True)
    case = Case("ROIAlign", "opset3", [data, *regions], attributes, oracle="cpu")
    model = irload.read_model(*ir_of(case))
    assert any("sampling_ratio must not be negative by the specification" in w for w in model.warnings)
    output = irload.compile_model(model)(data.value)[0]
    assert output.tolist() == runtime.outputs(case)[0].tolist() == [[[[0, 0]]] * channels]


@pytest.mark.parametrize(
    ("type_", "attributes", "expected"),
    [
        # the variances are 1, less 0.75 each, and the sums of squares 25 and 1
        ("MVN", {**MVN, "normalize_variance": "true", "eps": -0.75}, [[2, -2], [-2, 2]]),
        ("NormalizeL2", {"eps": -9, "eps_mode": "add"}, [[3 / 4, 4 / 4 * -1], [NAN, NAN]]),
    ],
)
def test_a_negative_epsilon_is_added_unchanged(type_: str, attributes: dict[str, Any], expected: Any) -> None:
    x = [[3, 1], [0, 2]] if type_ == "MVN" else [[3, -4], [1, 0]]
    case = case_of(type_, "opset6" if type_ == "MVN" else "opset1", attributes, et.f32, x)
    model = irload.read_model(*ir_of(case))
    assert any("attribute eps must not be negative by the specification" in w for w in model.warnings)
    output = irload.compile_model(model)(case.inputs[0].value)[0]
    assert np.allclose(output, expected, equal_nan=True)
    assert np.allclose(runtime.outputs(case)[0], expected, equal_nan=True)


def test_exclude_pad_defaults_to_true() -> None:
    attributes = {"kernel": "3", "strides": "1", "pads_begin": "1", "pads_end": "0", "rounding_type": "floor"}
    case = Case("AvgPool", "opset1", [Input(np.array([[[2, 4, 9]]], np.float32), et.f32)], attributes)
    model = irload.read_model(*ir_of(case))
    assert any("exclude-pad is missing" in w for w in model.warnings)
    output = irload.compile_model(model)(case.inputs[0].value)[0]
    assert output.tolist() == runtime.outputs(case)[0].tolist() == [[[3, 5]]]
