"""Unary arithmetic without change of type: signs, absolute values, rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import bounds_of
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType
from irload.ops.elementwise import Unary


class Abs(Unary, since=1):
    """|x|. The smallest integer of a type, which has no absolute value, is unchanged. Specification: Abs-1."""

    def compute(self, x: Array) -> Array:
        return np.abs(x)

    def bounds(self, x: TensorType) -> list[Bounds | None]:
        known = bounds_of(x)
        if known is None or np.any(known.lower == UNBOUNDED_LO):
            return [None]
        low, high = known.lower, known.upper
        nearest = np.where((low <= 0) & (high >= 0), 0, np.minimum(np.abs(low), np.abs(high)))
        return [Bounds(nearest, np.maximum(np.abs(low), np.abs(high)))]


class Negative(Unary, since=1):
    """−x. Specification: Negative-1."""

    def compute(self, x: Array) -> Array:
        return np.negative(x)

    def bounds(self, x: TensorType) -> list[Bounds | None]:
        known = bounds_of(x)
        if known is None or np.any(known.lower == UNBOUNDED_LO) or np.any(known.upper == UNBOUNDED_HI):
            return [None]
        return [Bounds(-known.upper, -known.lower)]


class Sign(Unary, since=1):
    """−1, 0 or 1; NaN is preserved. Specification: Sign-1."""

    def compute(self, x: Array) -> Array:
        return np.sign(x)

    def bounds(self, x: TensorType) -> list[Bounds | None]:
        return _increasing(self.compute, x)


class Rounding(Unary):
    """Rounding to whole numbers; integers are unchanged."""

    def compute(self, x: Array) -> Array:
        return self.rounded(x) if x.dtype.kind == "f" else x

    def bounds(self, x: TensorType) -> list[Bounds | None]:
        return _increasing(self.compute, x)

    def rounded(self, x: Array) -> Array:
        """Floats rounded to whole numbers."""
        raise NotImplementedError


class Ceiling(Rounding, since=1):
    """The least whole number ≥ x. Specification: Ceiling-1."""

    def rounded(self, x: Array) -> Array:
        return np.ceil(x)


class Floor(Rounding, since=1):
    """The greatest whole number ≤ x. Specification: Floor-1."""

    def rounded(self, x: Array) -> Array:
        return np.floor(x)


class Round(Rounding, since=5):
    """The nearest whole number; `mode`: halves to even or away from zero. Specification: Round-5."""

    mode = attr.choice("half_to_even", "half_away_from_zero", default="half_to_even")

    def rounded(self, x: Array) -> Array:
        if self.mode == "half_to_even":
            return np.rint(x)
        whole = np.trunc(x)
        return whole + np.copysign(np.abs(x - whole) >= 0.5, x)


def _increasing(compute: Callable[[Array], Array], x: TensorType) -> list[Bounds | None]:
    """Return the bounds of a function that increases, from its values at the bounds of `x`."""
    known = bounds_of(x)
    return [None if known is None else Bounds(compute(known.lower), compute(known.upper))]
