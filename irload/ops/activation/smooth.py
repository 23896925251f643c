"""Smooth activations: sigmoid and other functions of exponentials."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import merge
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.elementwise import FloatUnary, UnaryFunction, require_float
from irload.ops.special import erf


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^−x), without overflow."""
    tail = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, tail) / (1 + tail)


def softplus(x: Array) -> Array:
    """ln(1 + e^x), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


class Sigmoid(UnaryFunction, since=1):
    """1 / (1 + e^−x). On integers 1 for x > 0, else 0. Specification: Sigmoid-1."""

    def function(self, x: Array) -> Array:
        return sigmoid(x)


class Exp(UnaryFunction, since=1):
    """e^x. Specification: Exp-1. Integers are truncated."""

    truncates = True

    def function(self, x: Array) -> Array:
        return np.exp(x)


class Gelu(FloatUnary, since=2):
    """x · Φ(x), where Φ is the cumulative distribution function of the standard normal. Specification: Gelu-2."""

    def compute(self, x: Array) -> Array:
        return _gelu(x)


class Gelu7(FloatUnary, type="Gelu", since=7):
    """x · Φ(x), exact (`ERF`) or with the tanh approximation of Φ (`TANH`). Specification: Gelu-7."""

    approximation_mode = attr.choice("erf", "tanh", default="erf", upper=True)

    def compute(self, x: Array) -> Array:
        if self.approximation_mode == "erf":
            return _gelu(x)
        return 0.5 * x * (1 + np.tanh(x.dtype.type(np.sqrt(2 / np.pi)) * (x + 0.044715 * x * x * x)))


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x * x.dtype.type(np.sqrt(0.5))))


class Mish(FloatUnary, since=4):
    """x · tanh(ln(1 + e^x)). Specification: Mish-4."""

    def compute(self, x: Array) -> Array:
        return x * np.tanh(softplus(x))


class SoftPlus(FloatUnary, since=4):
    """ln(1 + e^x). Specification: SoftPlus-4."""

    def compute(self, x: Array) -> Array:
        return softplus(x)


class SoftSign(FloatUnary, since=9):
    """x / (1 + |x|). Specification: SoftSign-9."""

    def compute(self, x: Array) -> Array:
        return x / (1 + np.abs(x))


class Swish(Op, since=4):
    """x · sigmoid(beta · x); beta is a scalar, 1 if absent. Specification: Swish-4."""

    def infer(self, x: TensorType, beta: TensorType | None = None) -> TensorType:
        element = x.element if beta is None else merge(x.element, beta.element)
        require_float("x and beta", element)
        if beta is not None and beta.rank not in (None, 0):
            raise ShapeMismatch(f"beta must be a scalar, found {beta.shape}")
        return TensorType(element, x.shape)

    def compute(self, x: Array, beta: Array | None = None) -> Array:
        return x * sigmoid(x if beta is None else beta * x)
