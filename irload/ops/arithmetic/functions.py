"""Functions of real numbers: roots, logarithms, trigonometry, the error function.

Integers are computed in f64 and rounded to the nearest integer unless the class docstring states otherwise.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.ops.elementwise import FloatUnary, UnaryFunction
from irload.ops.special import erf, erfinv


class Sqrt(UnaryFunction, since=1):
    """√x; NaN for x < 0. Specification: Sqrt-1."""

    def function(self, x: Array) -> Array:
        return np.sqrt(x)


class Log(UnaryFunction, since=1):
    """The natural logarithm; −∞ at zero, NaN for x < 0. Integers are truncated. Specification: Log-1."""

    truncates = True

    def function(self, x: Array) -> Array:
        return np.log(x)


class Erf(UnaryFunction, since=1):
    """The error function. Specification: Erf-1."""

    def function(self, x: Array) -> Array:
        return erf(x)


class ErfInv(FloatUnary, since=17):
    """The inverse of Erf: ±∞ at ±1, NaN for |x| > 1. Specification: ErfInv-17."""

    def compute(self, x: Array) -> Array:
        return erfinv(x)


class Sin(UnaryFunction, since=1):
    """The sine of radians. Integers are truncated. Specification: Sin-1."""

    truncates = True

    def function(self, x: Array) -> Array:
        return np.sin(x)


class Cos(UnaryFunction, since=1):
    """The cosine of radians. Specification: Cos-1."""

    def function(self, x: Array) -> Array:
        return np.cos(x)


class Tan(UnaryFunction, since=1):
    """The tangent of radians. Specification: Tan-1."""

    def function(self, x: Array) -> Array:
        return np.tan(x)


class Asin(UnaryFunction, since=1):
    """The angle in −π/2..π/2 whose sine is x; NaN if |x| > 1. Integers are truncated. Specification: Asin-1."""

    truncates = True

    def function(self, x: Array) -> Array:
        return np.arcsin(x)


class Acos(UnaryFunction, since=1):
    """The angle in 0..π whose cosine is x; NaN if |x| > 1. Specification: Acos-1."""

    def function(self, x: Array) -> Array:
        return np.arccos(x)


class Atan(UnaryFunction, since=1):
    """The angle in −π/2..π/2 whose tangent is x. Specification: Atan-1."""

    def function(self, x: Array) -> Array:
        return np.arctan(x)


class Sinh(UnaryFunction, since=1):
    """The hyperbolic sine. Specification: Sinh-1."""

    def function(self, x: Array) -> Array:
        return np.sinh(x)


class Cosh(UnaryFunction, since=1):
    """The hyperbolic cosine. Specification: Cosh-1."""

    def function(self, x: Array) -> Array:
        return np.cosh(x)


class Tanh(UnaryFunction, since=1):
    """The hyperbolic tangent. Specification: Tanh-1."""

    def function(self, x: Array) -> Array:
        return np.tanh(x)


class Asinh(UnaryFunction, since=4):
    """The number whose hyperbolic sine is x. Specification: Asinh-3."""

    def function(self, x: Array) -> Array:
        return np.arcsinh(x)


class Acosh(UnaryFunction, since=4):
    """The non-negative number whose hyperbolic cosine is x; NaN for x < 1. Specification: Acosh-3."""

    def function(self, x: Array) -> Array:
        return np.arccosh(x)


class Atanh(UnaryFunction, since=4):
    """The number whose hyperbolic tangent is x: ±∞ at ±1, NaN for |x| > 1. Specification: Atanh-3.

    Integers other than zero become the greatest or the smallest of their type.
    """

    def compute(self, x: Array) -> Array:
        if x.dtype.kind == "f":
            return np.arctanh(x)
        info = np.iinfo(x.dtype)
        return np.where(x > 0, info.max, np.where(x < 0, info.min, 0)).astype(x.dtype)
