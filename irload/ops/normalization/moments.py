"""Normalization by mean and variance: of the data itself (MVN, GroupNormalization) or given (BatchNormInference)."""

from __future__ import annotations

import math

import numpy as np

from irload.core import attribute as attr
from irload.core.element import follow, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axes
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch
from irload.ops.elementwise import prefer_float, require_float


def mean_over(data: Array, axes: tuple[int, ...]) -> Array:
    """The mean over `axes`, which keep size 1. Unlike NumPy's it does not warn about empty tensors."""
    return data.sum(axis=axes, keepdims=True) / data.dtype.type(math.prod(data.shape[a] for a in axes))


def centered(data: Array, axes: tuple[int, ...]) -> Array:
    """`data` minus its mean over `axes`."""
    return data - mean_over(data, axes)


class MVN(Op, since=2, also_in=(1,)):
    """Subtracts the mean over the spatial axes (with `across_channels` also the channels), and may divide by √(σ²+ε).

    Specification: MVN-1. `reduction_axes` of newer files replaces both.
    """

    eps = attr.number(default=0.0, rule=attr.advised(attr.non_negative), spec_required=True)
    across_channels = attr.boolean(default=False, spec_required=True)
    normalize_variance = attr.boolean(default=False, spec_required=True)
    reduction_axes = attr.integers(default=(), rule=attr.non_negative)
    rounds = (0,)

    def infer(self, data: TensorType) -> TensorType:
        prefer_float("data", data.element)
        if data.rank is not None:
            normalize_axes(self.reduction_axes, data.rank, "reduction_axes")
        return data.without_value()

    def compute(self, data: Array) -> Array:
        axes = self.reduction_axes or tuple(range(1 if self.across_channels else 2, data.ndim))
        result = centered(data, tuple(set(axes)))
        if not self.normalize_variance:
            return result
        variance = mean_over(np.square(result), tuple(set(axes)))
        return result / np.sqrt(variance + data.dtype.type(self.eps))


class MVN6(Op, type="MVN", since=6):
    """Subtracts the mean over `axes`, and may divide by √(σ²+ε) (eps_mode inside_sqrt) or σ+ε (outside_sqrt).

    Specification: MVN-6. Axes may be negative.
    """

    eps = attr.number(default=0.0, rule=attr.advised(attr.non_negative), spec_required=True)
    normalize_variance = attr.boolean(default=False, spec_required=True)
    eps_mode = attr.choice("inside_sqrt", "outside_sqrt", default="inside_sqrt", upper=True, spec_required=True)

    rounds = (0,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        prefer_float("data", data.element)
        check_axes(data, axes)
        if data.rank is not None and axes.ints is not None and not (data.element.is_float or data.element.is_dynamic):
            over = sorted(set(normalize_axes(axes.ints, data.rank)))
            if over not in (list(range(min(first, data.rank - 1), data.rank)) for first in (1, 2)):
                # OpenVINO decomposes MVN to integer operations, and divides by a variance rounded to zero.
                raise TypeMismatch(f"data must be of a floating-point type over axes {over}, found {data.element}")
        return data.without_value()

    def compute(self, data: Array, axes: Array) -> Array:
        over = tuple(set(normalize_axes(axes.ravel().tolist(), data.ndim)))
        result = centered(data, over)
        if not self.normalize_variance:
            return result
        variance, eps = mean_over(np.square(result), over), data.dtype.type(self.eps)
        return result / (np.sqrt(variance + eps) if self.eps_mode == "inside_sqrt" else np.sqrt(variance) + eps)


def check_axes(data: TensorType, axes: TensorType, ranks: tuple[int, ...] = (1,)) -> None:
    """Raise TypeMismatch or ShapeMismatch for axes that are not integers, have another rank, or are out of range."""
    if not (axes.element.is_integer or axes.element.is_dynamic):
        raise TypeMismatch(f"axes must be of an integer type, found {axes.element}")
    if axes.rank is not None and axes.rank not in ranks:
        raise ShapeMismatch(f"axes must have rank {' or '.join(map(str, ranks))}, found shape {axes.shape}")
    if data.rank is None:
        return
    if axes.rank == 1 and axes.shape[0].lo > data.rank:
        raise ShapeMismatch(f"axes has {axes.shape[0]} values, more than the rank of data {data.shape}")
    if axes.ints is not None:
        normalize_axes(axes.ints, data.rank, "axes")


class GroupNormalization(Op, since=12):
    """Normalizes each of `num_groups` groups of channels of each sample, then scales and shifts each channel.

    Specification: GroupNormalization-12. data [N, C, …] with C a multiple of num_groups; scale and bias [C].
    """

    num_groups = attr.integer(rule=attr.positive)
    epsilon = attr.number(default=0.0, rule=attr.advised(attr.non_negative), spec_required=True)

    def infer(self, data: TensorType, scale: TensorType, bias: TensorType) -> TensorType:
        element = follow(data.element, scale.element, bias.element)
        require_float("data", element)
        channels = _channels(data, {"scale": scale, "bias": bias})
        if channels.is_static and (channels.lo % self.num_groups or not channels.lo):
            raise AttributeInvalid(f"num_groups {self.num_groups} must divide the number of channels {channels}")
        return TensorType(data.element, data.shape)

    def compute(self, data: Array, scale: Array, bias: Array) -> Array:
        grouped = data.reshape(data.shape[0], self.num_groups, math.prod(data.shape[1:]) // self.num_groups)
        result = centered(grouped, (2,))
        deviation = np.sqrt(mean_over(np.square(result), (2,)) + data.dtype.type(self.epsilon))
        return (result / deviation).reshape(data.shape) * _along_channels(scale, data) + _along_channels(bias, data)


class BatchNormInference5(Op, type="BatchNormInference", since=5):
    """Normalizes each channel by a given mean and variance: (data − mean) / √(variance + ε) · gamma + beta.

    Specification: BatchNormInference-5. data [N, C, …]; all others [C].
    """

    epsilon = attr.number(default=0.0, rule=attr.non_negative, spec_required=True)

    def infer(
        self, data: TensorType, gamma: TensorType, beta: TensorType, mean: TensorType, variance: TensorType
    ) -> TensorType:
        element = merge(*(t.element for t in (data, gamma, beta, mean, variance)))
        require_float("data", element)
        channels = _channels(data, {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance})
        if channels.hi == 0:
            raise ShapeMismatch(f"data must have at least one channel, found {data.shape}")
        return TensorType(element, data.shape if data.rank is None else data.shape.with_dim(1, channels))

    def compute(self, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> Array:
        scale = gamma / np.sqrt(variance + data.dtype.type(self.epsilon))
        return (data - _along_channels(mean, data)) * _along_channels(scale, data) + _along_channels(beta, data)


class BatchNormInference(BatchNormInference5, since=1):
    """BatchNormInference whose data is its third input (BatchNormInference-1)."""

    def infer(
        self, gamma: TensorType, beta: TensorType, data: TensorType, mean: TensorType, variance: TensorType
    ) -> TensorType:
        return super().infer(data, gamma, beta, mean, variance)

    def compute(self, gamma: Array, beta: Array, data: Array, mean: Array, variance: Array) -> Array:
        return super().compute(data, gamma, beta, mean, variance)


def _channels(data: TensorType, others: dict[str, TensorType]) -> Dim:
    """The channel dim of `data`, intersected with the sizes of per-channel tensors. Raises ShapeMismatch."""
    if data.rank is not None and data.rank < 2:
        raise ShapeMismatch(f"data must have at least batch and channels, found shape {data.shape}")
    channels = ANY if data.rank is None else data.shape[1]
    for name, tensor in others.items():
        met = Shape(channels).meet(tensor.shape)
        if met is None:
            raise ShapeMismatch(
                f"{name} must have one value for each of {channels} channels, found shape {tensor.shape}"
            )
        channels = met[0]
    return channels


def _along_channels(values: Array, data: Array) -> Array:
    """One value per channel, shaped to broadcast against `data`."""
    return values.reshape(-1, *(1,) * (data.ndim - 2))
