"""Piecewise linear and exponential activations: ReLU and its variants, and Clamp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import bounds_of
from irload.core.element import follow, merge
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import Shape
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.elementwise import FloatUnary, Unary, require_float, require_numeric


class ReLU(Unary, since=1):
    """max(x, 0); NaN is preserved. Specification: ReLU-1."""

    def compute(self, x: Array) -> Array:
        return np.maximum(x, x.dtype.type(0))


class Clamp(Unary, since=1):
    """x clamped to `min`..`max`; NaN is preserved. For integers, bounds are rounded inwards. Specification: Clamp-1."""

    min = attr.number(default=0.0, spec_required=True)
    max = attr.number(default=0.0, spec_required=True)

    def validate(self) -> None:
        if not self.min <= self.max:
            raise AttributeInvalid(f"attribute min must not exceed max, found {self.min} and {self.max}")

    def bounds(self, x: TensorType) -> list[Bounds | None]:
        known = bounds_of(x)
        return [None if known is None else Bounds(self.compute(known.lower), self.compute(known.upper))]

    def compute(self, x: Array) -> Array:
        low, high = self.min, self.max
        if x.dtype.kind != "f":
            info = np.iinfo(x.dtype)
            low, high = whole(low, math.ceil, info), whole(high, math.floor, info)
        return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))


class Elu(FloatUnary, since=1):
    """x for x ≥ 0, alpha · (e^x − 1) below. Specification: Elu-1."""

    alpha = attr.number(default=0.0, rule=attr.advised(attr.non_negative), spec_required=True)
    rounds = (0,)

    def compute(self, x: Array) -> Array:
        return np.where(x < 0, x.dtype.type(self.alpha) * np.expm1(np.minimum(x, 0)), x)


class Selu(Op, since=1):
    """lambda · x for x > 0, lambda · alpha · (e^x − 1) otherwise; alpha and lambda have one element each.

    Specification: Selu-1.
    """

    def infer(self, x: TensorType, alpha: TensorType, lambda_: TensorType) -> TensorType:
        element = merge(x.element, alpha.element, lambda_.element)
        require_float("x, alpha and lambda", element)
        for name, single in (("alpha", alpha), ("lambda", lambda_)):
            if not single.shape.size.contains(1):
                raise ShapeMismatch(f"{name} must hold one value, found {single.shape}")
        return TensorType(element, x.shape)

    def compute(self, x: Array, alpha: Array, lambda_: Array) -> Array:
        a, scale = alpha.reshape(()), lambda_.reshape(())
        return scale * np.where(x > 0, x, a * np.expm1(np.minimum(x, 0)))


class HardSigmoid(Op, since=1):
    """alpha · x + beta, clamped to 0..1; alpha and beta are scalars. Specification: HardSigmoid-1."""

    def infer(self, x: TensorType, alpha: TensorType, beta: TensorType) -> TensorType:
        element = merge(x.element, alpha.element, beta.element)
        require_float("x, alpha and beta", element)
        for name, scalar in (("alpha", alpha), ("beta", beta)):
            if scalar.rank not in (None, 0):
                raise ShapeMismatch(f"{name} must be a scalar, found {scalar.shape}")
        return TensorType(element, x.shape)

    def compute(self, x: Array, alpha: Array, beta: Array) -> Array:
        return np.clip(alpha * x + beta, 0, 1)


class HSigmoid(FloatUnary, since=5):
    """min(max(x + 3, 0), 6) / 6. Specification: HSigmoid-5."""

    rounds = (0,)

    def infer(self, x: TensorType) -> TensorType:
        require_numeric("x", x.element)
        return super().infer(x)

    def compute(self, x: Array) -> Array:
        return np.clip(x + 3, 0, 6) / 6


class HSwish(FloatUnary, since=4):
    """x · min(max(x + 3, 0), 6) / 6. Specification: HSwish-4."""

    rounds = (0,)

    def infer(self, x: TensorType) -> TensorType:
        require_numeric("x", x.element)
        return super().infer(x)

    def compute(self, x: Array) -> Array:
        return x * (np.clip(x + 3, 0, 6) / 6)


class PReLU(Op, since=1):
    """x for x ≥ 0, slope · x below. A 1-D slope as long as axis 1 of x is per channel; other slopes broadcast to x.

    Leading axes of length 1 beyond the rank of x are accepted, as in PyTorch's slope of shape [1] for a scalar.
    Specification: PReLU-1, for floats. OpenVINO also accepts integers, whose products wrap. If slope and x differ in
    type, a remark is recorded and the result has the type of x, as in OpenVINO: Model Optimizer wrote f32 slopes
    into f16 models.
    """

    def infer(self, x: TensorType, slope: TensorType) -> TensorType:
        element = follow(x.element, slope.element)
        require_numeric("x and slope", element)
        if element.is_integer:
            remark(f"x and slope must be of a floating-point type by the specification, found {element}")
        if x.rank is not None and slope.rank is not None and not _by_channel(x.shape, slope.shape):
            joined = x.shape.broadcast(slope.shape.without_leading_ones(x.rank))
            if joined.meet(x.shape) is None:
                raise ShapeMismatch(f"slope {slope.shape} does not broadcast to {x.shape}")
        return TensorType(element, x.shape)

    def compute(self, x: Array, slope: Array) -> Array:
        if _by_channel(Shape(*x.shape), Shape(*slope.shape)):
            slope = slope.reshape(slope.shape + (1,) * (x.ndim - 2))
        slope = slope.reshape(slope.shape[max(slope.ndim - x.ndim, 0) :])
        return np.where(x < 0, x * slope, x).astype(x.dtype)


def _by_channel(x: Shape, slope: Shape) -> bool:
    """Return True if the slope is 1-D and its length can equal axis 1 of x."""
    return len(slope) == 1 and len(x) > 1 and x[1].meet(slope[0]) is not None


def whole(bound: float, rounding: Callable[[float], int], limits: Any) -> int:
    """Round a bound, clipped to the limits of a type. Clips before rounding: the greatest i64 is not a float."""
    if bound <= limits.min:
        return int(limits.min)
    return int(limits.max) if bound >= limits.max else rounding(bound)
