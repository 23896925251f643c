"""Operations that need terabytes, hours, or missing data: rejected before anything is allocated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from tests.harness.case import Case, Input, const, param
from tests.harness.children import Died, in_children, preload
from tests.harness.ir import ir_of

MEMORY, SECONDS = 1 << 30, 300
ONE = param(np.ones(1, np.float32))
ROW = param(np.ones((1, 1, 4), np.float32))
PLANE = param(np.ones((1, 1, 4, 4), np.float32))
FAR = 1 << 40


def number(value: int | float, element: et.ElementType = et.i64) -> Input:
    return const(np.array(value, element.dtype), element)


def case(type: str, version: int, *inputs: Input, outputs: int = 1, **attributes: object) -> Case:
    return Case(
        type, f"opset{version}", list(inputs), {k.replace("_DASH_", "-"): v for k, v in attributes.items()}, outputs
    )


CONV: dict[str, Any] = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
POOL: dict[str, Any] = {"kernel": "1", "strides": "1", "pads_begin": "0", "pads_end": "0"}
ROI: dict[str, Any] = {"pooled_h": 1 << 20, "pooled_w": 1 << 20, "spatial_scale": 1.0}

TERABYTES = {
    "Tile": case("Tile", 1, ONE, const([FAR])),
    "Broadcast": case("Broadcast", 3, ONE, const([FAR])),
    "Pad": case("Pad", 1, ONE, const([0]), const([FAR]), pad_mode="edge"),
    "Pad, both sides": case("Pad", 12, ONE, const([FAR]), const([FAR]), pad_mode="constant"),
    "RaggedToSparse": Case("RaggedToSparse", "extension", [const([0], et.i32), const([2**31 - 1], et.i32)]),
    "Range": case("Range", 4, number(0), number(FAR), number(1), output_type="i64"),
    "Range with a tiny step": case(
        "Range", 4, number(0.0, et.f32), number(1.0, et.f32), number(1e-30, et.f32), output_type="f32"
    ),
    "OneHot": case(
        "OneHot", 1, param(np.zeros(1, np.int64)), number(FAR), number(1.0, et.f32), number(0.0, et.f32), axis=0
    ),
    "Interpolate": case(
        "Interpolate",
        11,
        PLANE,
        const([1 << 20, 1 << 22]),
        const([2, 3]),
        mode="nearest",
        shape_calculation_mode="sizes",
    ),
    "Interpolate by scales": case(
        "Interpolate",
        11,
        PLANE,
        const(np.array([1e6, 1e6], np.float32)),
        const([2, 3]),
        mode="linear_onnx",
        shape_calculation_mode="scales",
    ),
    "deconvolution by strides": case(
        "ConvolutionBackpropData", 1, ROW, const(np.ones((1, 1, 1), np.float32)), **{**CONV, "strides": FAR}
    ),
    "deconvolution by dilations": case(
        "ConvolutionBackpropData", 1, ROW, const(np.ones((1, 1, 2), np.float32)), **{**CONV, "dilations": FAR}
    ),
    "deconvolution to an output_shape": case(
        "ConvolutionBackpropData", 1, ROW, const(np.ones((1, 1, 1), np.float32)), const([FAR]), **CONV
    ),
    "Convolution by pads": case(
        "Convolution", 1, ROW, const(np.ones((1, 1, 1), np.float32)), **{**CONV, "pads_begin": FAR}
    ),
    "MaxPool by pads": case("MaxPool", 1, ROW, **{**POOL, "pads_end": FAR}),
    "AdaptiveAvgPool": case("AdaptiveAvgPool", 8, PLANE, const([1 << 20, 1 << 20])),
    "Eye": case("Eye", 9, number(FAR), number(2), number(0), output_type="f32"),
    "RandomUniform": case(
        "RandomUniform", 8, const([FAR]), number(0.0, et.f32), number(1.0, et.f32), output_type="f32"
    ),
    "Multinomial": case(
        "Multinomial",
        13,
        param(np.ones((1, 2), np.float32)),
        const([FAR]),
        convert_type="i64",
        with_replacement=True,
        log_probs=False,
    ),
    "EmbeddingSegmentsSum": case(
        "EmbeddingSegmentsSum",
        3,
        param(np.ones((2, 2), np.float32)),
        param(np.zeros(1, np.int64)),
        param(np.zeros(1, np.int64)),
        number(FAR),
    ),
    "SegmentMax": case("SegmentMax", 16, ONE, param(np.zeros(1, np.int64)), number(FAR), fill_mode="ZERO"),
    "SpaceToBatch": case("SpaceToBatch", 2, PLANE, const([1, 1, 1, 1]), const([0, 0, 0, 0]), const([0, 0, FAR, 0])),
    "DFT": case("DFT", 7, param(np.ones((4, 2), np.float32)), const([0]), const([FAR])),
    "IRDFT": case("IRDFT", 9, param(np.ones((4, 2), np.float32)), const([0]), const([FAR])),
    "ROIPooling": case("ROIPooling", 2, PLANE, param(np.zeros((1, 5), np.float32)), **ROI),
    "PriorBoxClustered": case(
        "PriorBoxClustered", 1, const([1 << 20, 1 << 20]), const([1, 1]), width="1", height="1", step=1.0, offset=0.5
    ),
    "PriorBox": case("PriorBox", 1, const([1 << 20, 1 << 20]), const([1, 1]), min_size="1", offset=0.5),
    "Broadcast to 2 to the 64 elements": case("Broadcast", 1, ONE, const([1 << 32, 1 << 32])),
}


def ended(case: Case, optimize: bool) -> str:
    """The outcome of a case: the type of the error and its message, or the shapes of the results."""
    arrays = [i.value for i in case.inputs if not i.constant]
    try:
        compiled = irload.compile_model(irload.read_model(*ir_of(case)), threads=1, optimize=optimize)
        return " ".join(str(list(r.shape)) for r in compiled(arrays).values())
    except irload.IRError as error:
        return f"{type(error).__name__}: {error}"


def confined(cases: Sequence[Case]) -> list[str]:
    """`ended` of each case plainly and by the plan, in child processes with limited memory and time."""
    preload()
    tasks = [(c, optimize) for c in cases for optimize in (False, True)]
    outcome = in_children(lambda k: ended(*tasks[k]), len(tasks), SECONDS, MEMORY)
    return [str(f) if isinstance(f, Died) else f for f in outcome]


def toggled(case: Case) -> Case:
    """The case with all inputs fed at run time."""
    return replace(case, inputs=[replace(i, constant=False) for i in case.inputs])


@pytest.mark.parametrize("when", ["in the file", "at run time"])
def test_terabytes_are_rejected_before_allocation(when: str) -> None:
    cases = {n: c if when == "in the file" else toggled(c) for n, c in TERABYTES.items()}
    endings = confined(list(cases.values()))
    wrong = {
        n: endings[2 * k + j] for k, n in enumerate(cases) for j in (0, 1) if "LimitExceeded" not in endings[2 * k + j]
    }
    assert wrong == {}


FRUGAL: dict[str, tuple[Case, str]] = {
    "MaxPool of a kernel of 2^30": (
        case("MaxPool", 1, ROW, **{**POOL, "kernel": 1 << 30, "pads_begin": 1 << 30}),
        "[1, 1, 5]",
    ),
    "MaxPool with places, of a kernel of 2^40": (
        case("MaxPool", 8, ROW, outputs=2, **{**POOL, "kernel": FAR, "pads_end": FAR, "dilations": 3}),
        "",
    ),
    "AvgPool of a kernel of 2^30": (
        case("AvgPool", 1, ROW, exclude_DASH_pad="false", **{**POOL, "kernel": 1 << 30, "pads_end": 1 << 30}),
        "[1, 1, 5]",
    ),
    "a long window over a long row": (
        case("MaxPool", 1, param(np.ones((1, 1, 200_001), np.float32)), **{**POOL, "kernel": 100_001}),
        "[1, 1, 100001]",
    ),
    "strides of 2^50": (
        case("Convolution", 1, ROW, const(np.ones((1, 1, 1), np.float32)), **{**CONV, "strides": 1 << 50}),
        "[1, 1, 1]",
    ),
    "dilations of 2^50 over pads of 2^50": (
        case(
            "Convolution",
            1,
            ROW,
            const(np.ones((1, 1, 2), np.float32)),
            **{**CONV, "dilations": 1 << 50, "pads_end": 1 << 50},
        ),
        "[1, 1, 4]",
    ),
    "pads of 2^62 with strides of 2^61": (
        case(
            "Convolution",
            1,
            ROW,
            const(np.ones((1, 1, 1), np.float32)),
            **{**CONV, "strides": 1 << 61, "pads_begin": 1 << 62, "pads_end": 1 << 62},
        ),
        "[1, 1, 5]",
    ),
    "a deconvolution of strides 2^50 into an output of 5": (
        case(
            "ConvolutionBackpropData",
            1,
            ROW,
            const(np.ones((1, 1, 1), np.float32)),
            const([5]),
            **{**CONV, "strides": 1 << 50},
        ),
        "[1, 1, 5]",
    ),
    "patches at rates of 2^50": (
        case(
            "ExtractImagePatches",
            3,
            PLANE,
            sizes="2,2",
            strides="1,1",
            rates=f"{1 << 50},{1 << 50}",
            auto_pad="same_upper",
        ),
        "[1, 4, 4, 4]",
    ),
    "an LRN of size 2^60": (case("LRN", 1, PLANE, const([1]), alpha=1, beta=1, bias=1, size=1 << 60), "[1, 1, 4, 4]"),
    "an Interpolate to a scale of 1e-30": (
        case(
            "Interpolate",
            11,
            PLANE,
            const(np.array([1e-30], np.float32)),
            const([2]),
            mode="linear_onnx",
            shape_calculation_mode="scales",
        ),
        "[1, 1, 0, 4]",
    ),
    "an empty batch of Eyes that NumPy cannot hold": (
        case("Eye", 9, number(1 << 31), number(1 << 31), number(0), const([0]), output_type="f32"),
        "LimitExceeded",
    ),
    "an empty batch of Eyes of 2^28 rows": (
        case("Eye", 9, number(1 << 28), number(1 << 28), number(0), const([0]), output_type="f32"),
        f"[0, {1 << 28}, {1 << 28}]",
    ),
    "samples of a region, 2^31 a side": (
        case(
            "ROIAlign",
            3,
            PLANE,
            param(np.array([[0, 0, 3, 3]], np.float32)),
            param(np.zeros(1, np.int64)),
            pooled_h=1,
            pooled_w=1,
            sampling_ratio=1 << 31,
            spatial_scale=1.0,
            mode="avg",
        ),
        "LimitExceeded",
    ),
    "a region as large as f32 tells": (
        case(
            "ROIAlign",
            3,
            PLANE,
            param(np.array([[-3e38, -3e38, 3e38, 3e38]], np.float32)),
            param(np.zeros(1, np.int64)),
            pooled_h=1,
            pooled_w=1,
            sampling_ratio=0,
            spatial_scale=1.0,
            mode="avg",
        ),
        "LimitExceeded|ExecutionError",
    ),
    "NMS of 2^62 boxes a class": (
        case(
            "NonMaxSuppression",
            9,
            param(np.zeros((1, 2, 4), np.float32)),
            param(np.ones((1, 1, 2), np.float32)),
            number(1 << 62),
            number(0.5, et.f32),
            number(0.1, et.f32),
            outputs=3,
        ),
        "",
    ),
    "a Bucketize of 1,000,000 values": (
        case(
            "Bucketize",
            3,
            param(np.ones(1_000_000, np.float32)),
            param(np.arange(1000, dtype=np.float32)),
            output_type="i64",
        ),
        "[1000000]",
    ),
    "a CumSum of 1,000,000 values": (case("CumSum", 3, param(np.ones(1_000_000, np.float32)), number(0)), "[1000000]"),
    "a NonZero of 1,000,000 values": (
        case("NonZero", 3, param(np.ones(1_000_000, np.float32)), output_type="i64"),
        "[1, 1000000]",
    ),
}
"""Small results for which a naive implementation takes terabytes or hours, and their outcomes."""


def test_small_results_take_little_memory_and_time() -> None:
    endings = confined([c for c, _ in FRUGAL.values()])
    wrong = {
        n: endings[2 * k + j]
        for k, (n, (_, wanted)) in enumerate(FRUGAL.items())
        for j in (0, 1)
        if not re.search(wanted if "Limit" in wanted else re.escape(wanted), endings[2 * k + j])
        or "memory" in endings[2 * k + j].replace("working memory", "")
        or "died" in endings[2 * k + j]
    }
    assert wrong == {}


@pytest.mark.parametrize("optimize", [False, True])
def test_a_shape_that_contradicts_inference_is_an_error(optimize: bool) -> None:
    """Inference assumes that the unknown axis has length 1 and is removed. At run time its length is 4: it is kept."""
    squeeze = case("Squeeze", 1, PLANE, param(np.array(2, np.int32)))
    compiled = irload.compile_model(irload.read_model(*ir_of(squeeze)), optimize=optimize)
    with pytest.raises(irload.ExecutionError, match=r"output 0 is of shape \[1,1,4,4\], inferred \[\?,\?,\?\]"):
        compiled([PLANE.value, np.array(2, np.int32)])
    (result,) = compiled([PLANE.value, np.array(1, np.int32)]).values()
    assert result.shape == (1, 4, 4)
