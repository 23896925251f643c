"""Determines which values of a program are computed without rounding, for any order of summation.

A value is exact if all its elements are multiples of 2^-grain of at most `largest`, and every sum that leads to it fits
the digits of its type. Inputs that were only moved count as exact, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any

import numpy as np

from irload.core.element import ElementType
from tests.harness.case import Array

DIGITS = {"f32": 23, "f16": 10, "bf16": 7, "f64": 50}
UNEVEN = 1000
"""The grain of arbitrary numbers: they are exact only as long as they are moved, not computed with."""


@dataclass(frozen=True)
class Exact:
    """Multiples of 2^-grain between −largest and largest."""

    grain: int
    largest: float

    def fits(self, element: ElementType) -> bool:
        """Whether the type represents each of these multiples."""
        digits = DIGITS.get(element.name)
        return digits is None or (self.grain < 64 and self.largest * 2.0**self.grain <= 2.0**digits)


INTEGER = Exact(0, 0)
"""Values of types that are not floating-point are never rounded."""

MOVES = frozenset(
    [
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Split",
        "VariadicSplit",
        "Concat",
        "Slice",
        "StridedSlice",
        "Gather",
        "GatherND",
        "GatherElements",
        "Pad",
        "Tile",
        "Broadcast",
        "MaxPool",
        "ReduceMax",
        "ReduceMin",
        "DepthToSpace",
        "SpaceToDepth",
        "ShuffleChannels",
        "Reverse",
        "ReverseSequence",
        "Select",
        "Roll",
        "ReLU",
        "Abs",
        "Negative",
        "Maximum",
        "Minimum",
        "Floor",
        "Ceiling",
        "Round",
        "TopK",
        "ReadValue",
        "Identity",
        "ScatterUpdate",
        "ScatterElementsUpdate",
        "BatchToSpace",
        "SpaceToBatch",
        "ExtractImagePatches",
        "AdaptiveMaxPool",
    ]
)


def of_array(array: Array) -> Exact:
    """The grain and the largest magnitude of a constant."""
    if array.dtype.kind not in "fV":
        return INTEGER
    wide = array.astype(np.float64)
    largest = float(np.abs(wide).max(initial=0))
    if not np.isfinite(largest):
        return Exact(UNEVEN, 1)
    for grain in range(13):
        if np.array_equal(np.round(wide * 2.0**grain), wide * 2.0**grain):
            return Exact(grain, largest)
    return Exact(UNEVEN, largest)


def after(
    type: str,
    data: Mapping[str, Any],
    inputs: Sequence[tuple[Exact | None, tuple[int, ...], Array | None, ElementType]],
    output: tuple[int, ...],
    element: ElementType,
) -> Exact | None:
    """Exactness of a result for exact inputs (each with its shape, and values if constant); None if it rounds."""
    if any(e is None for e, *_ in inputs):
        return None
    floats = [(e, s, a) for e, s, a, t in inputs if e is not None and t.name in DIGITS]
    if element.name not in DIGITS:
        return INTEGER
    if not floats:
        return Exact(0, 64) if type == "Convert" else None
    (first, shape, _), *others = floats
    both = Exact(max(e.grain for e, *_ in floats), max(e.largest for e, *_ in floats))
    if type == "MaxPool" and (data["rounding_type"] != "floor" or max(data.get("dilations") or [1]) > 1):
        return None  # a window without elements gives the lowest number of the type
    if type in MOVES or (type == "Interpolate" and data.get("mode") == "nearest"):
        return both
    if type == "GridSample" and data["mode"] == "nearest":
        return first
    exact_value = _calculated(type, data, first, shape, others, both, inputs, output)
    return exact_value if exact_value is not None and exact_value.fits(element) else None


def _calculated(type, data, first, shape, others, both, inputs, output):  # type: ignore[no-untyped-def]
    second = others[0][0] if others else first
    if type == "Clamp":
        bounds = of_array(np.array([data["min"], data["max"]]))
        least = max(data["min"], -data["max"], 0.0)
        return Exact(max(first.grain, bounds.grain), max(min(first.largest, bounds.largest), least))
    if type in ("Add", "Subtract"):
        return Exact(both.grain, first.largest + second.largest)
    if type == "SquaredDifference":
        return Exact(2 * both.grain, (first.largest + second.largest) ** 2)
    if type in ("Multiply", "PReLU"):
        return Exact(first.grain + second.grain, first.largest * max(second.largest, float(type == "PReLU")))
    if type == "Convert":
        return first
    if type in ("ReduceSum", "CumSum"):
        count = prod(shape) // max(prod(output), 1) if type == "ReduceSum" else max(shape)
        return Exact(first.grain, first.largest * max(count, 1))
    if type in ("ReduceMean", "AvgPool"):
        return _mean(type, data, first, shape, output)
    if type == "MatMul":
        rows = shape[-2] if data.get("transpose_a") and len(shape) > 1 else shape[-1]
        return Exact(first.grain + second.grain, first.largest * second.largest * max(rows, 1))
    if type in ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"):
        weights = others[0][2]
        size = prod(others[0][1])
        total = size * second.largest if weights is None else float(np.abs(weights).sum())
        if weights is not None and type in ("Convolution", "GroupConvolution"):
            lead = 1 if type == "Convolution" else 2
            total = float(np.abs(weights).reshape(prod(weights.shape[:lead]), -1).sum(axis=1).max(initial=0))
        return Exact(first.grain + second.grain, first.largest * total)
    return None


def _mean(type, data, first, shape, output):  # type: ignore[no-untyped-def]
    count = prod(data["kernel"]) if type == "AvgPool" else prod(shape) // max(prod(output), 1)
    if count < 1 or count & (count - 1):
        return None
    if type == "AvgPool" and (any(data["pads_begin"]) or any(data["pads_end"]) or data["rounding_type"] != "floor"):
        return None
    if type == "AvgPool" and data["auto_pad"] not in ("explicit", "valid"):
        return None
    return Exact(first.grain + int(log2(count)), first.largest * count)
