"""Base of recurrent cells and sequences: attributes, activations, the arithmetic of a step, the shapes.

The weights of all gates are stacked: W [gates · hidden, input], R [gates · hidden, hidden], B [gates · hidden]. A step
takes the product x·Wᵀ and the state; it returns the new state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from irload.core import attribute as attr
from irload.core.element import dynamic, merge
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch

State = tuple[Array, ...]


def sigmoid(x: Array) -> Array:
    """1 / (1 + e⁻ˣ), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}


class Recurrent(Op):
    """The attributes of every recurrent operation; subclasses define the cell by `gates`, `defaults` and `step`.

    `activations_alpha` and `activations_beta` are parameters of activations; the activations allowed by the
    specification have no parameters. `clip` bounds the inputs of the gates' activations; 0 means unbounded.
    """

    multiplies = True

    gates: ClassVar[int]
    defaults: ClassVar[tuple[str, ...]]
    """The default of the activations f, g, h, also for an empty attribute."""

    hidden_size = attr.integer(default=0, spec_required=True)
    activations = attr.words(default=())
    activations_alpha = attr.numbers(default=())
    activations_beta = attr.numbers(default=())
    clip = attr.number(default=0.0)

    @property
    def bias_gates(self) -> int:
        """The length of B in units of `hidden`."""
        return self.gates

    def validate(self) -> None:
        if self.activations and len(self.activations) < len(self.defaults):
            raise AttributeInvalid(
                f"activations must have {len(self.defaults)} values, found {', '.join(self.activations)}"
            )
        for name in self.activations:
            if name.lower() not in ACTIVATIONS:
                raise AttributeInvalid(f"activations: '{name}' is not one of {', '.join(ACTIVATIONS)}")

    def step(self, projected: Array, state: State, recurrence: Array, bias: Array) -> State:
        """One step: `projected` is x·Wᵀ [batch, gates · hidden], `state` the result of the previous step."""
        raise NotImplementedError

    def activate(self, which: int, x: Array) -> Array:
        """Activation number `which`: 0 is f, 1 is g, 2 is h."""
        return ACTIVATIONS[(self.activations or self.defaults)[which].lower()](x)

    def gate(self, which: int, x: Array) -> Array:
        """Activation number `which` of the clipped `x`."""
        return self.activate(which, x.clip(-self.clip, self.clip) if self.clip > 0 else x)

    def hidden(self, known: Sequence[Dim], blocks: Sequence[tuple[str, Dim, int]]) -> Dim:
        """The hidden size. `known` dims are equal to it, `blocks` (name, dim, times) are multiples of it."""
        size = merged("hidden_size", *known)
        if not size.is_static:
            for name, dim, times in blocks[:2]:  # as in OpenVINO, the bias is not used
                if dim.is_static:
                    if dim.size % times:
                        raise ShapeMismatch(f"{name} has {dim} rows, which is not a multiple of {times} gates")
                    size = merged("hidden_size", size, Dim(dim.size // times, dim.size // times))
        if size.is_static:
            for name, dim, times in blocks:
                if dim.meet(size * times) is None:
                    raise ShapeMismatch(f"{name} must have {times} · {size} rows, found {dim}")
        self.agree(size)
        return size

    def agree(self, size: Dim) -> None:
        """Remark on a `hidden_size` that differs from the inputs, whose size OpenVINO uses."""
        if self.hidden_size < 0 or (self.hidden_size and not size.contains(self.hidden_size)):
            remark(
                f"attribute hidden_size must be {size}, as in the inputs, by the specification, found "
                f"{self.hidden_size}"
            )


class RNN(Recurrent):
    """f(x·Wᵀ + h·Rᵀ + B)."""

    gates = 1
    defaults = ("tanh",)

    def step(self, projected: Array, state: State, recurrence: Array, bias: Array) -> State:
        (h,) = state
        return (self.gate(0, projected + h @ recurrence.T + bias),)


class GRU(Recurrent):
    """Gates z (update), r (reset) and h.

    z = f(x·Wzᵀ + h·Rzᵀ + Bz), r analogous, n = g(x·Whᵀ + (r ∘ h)·Rhᵀ + Bh), the result (1 − z) ∘ n + z ∘ h. With
    `linear_before_reset`, n = g(x·Whᵀ + r ∘ (h·Rhᵀ + Bn) + Bh), and B has Bn as a fourth block.
    """

    gates = 3
    defaults = ("sigmoid", "tanh")

    linear_before_reset = attr.boolean(default=False)

    @property
    def bias_gates(self) -> int:
        return 4 if self.linear_before_reset else 3

    def step(self, projected: Array, state: State, recurrence: Array, bias: Array) -> State:
        (h,) = state
        size = h.shape[-1]
        xz, xr, xn = (projected[..., k * size : (k + 1) * size] for k in range(3))
        wz, wr, wn = (recurrence[k * size : (k + 1) * size] for k in range(3))
        bz, br, bn, *rest = (bias[k * size : (k + 1) * size] for k in range(self.bias_gates))
        z = self.gate(0, xz + h @ wz.T + bz)
        r = self.gate(0, xr + h @ wr.T + br)
        inner = r * (h @ wn.T + rest[0]) if rest else (r * h) @ wn.T
        n = self.gate(1, xn + inner + bn)
        return ((1 - z) * n + z * h,)


class LSTM(Recurrent):
    """Gates f (forget), i (input), c (cell) and o (output), in this order.

    f, i, o = f(x·Wᵀ + h·Rᵀ + B), c̃ = g(…), the new cell c = f ∘ c + i ∘ c̃, the new state o ∘ h(c).
    """

    gates = 4
    defaults = ("sigmoid", "tanh", "tanh")

    def step(self, projected: Array, state: State, recurrence: Array, bias: Array) -> State:
        h, cell = state
        f, i, c, o = np.split(projected + h @ recurrence.T + bias, 4, -1)
        cell = self.gate(0, f) * cell + self.gate(0, i) * self.gate(1, c)
        return self.gate(0, o) * self.activate(2, cell), cell


# -- shapes -----------------------------------------------------------------------------------------------------------


def merged(name: str, *dims: Dim) -> Dim:
    """Dims that must be equal. Raises ShapeMismatch."""
    result = ANY
    for dim in dims:
        met = result.meet(dim)
        if met is None:
            raise ShapeMismatch(f"{name} differs between the inputs: {result} and {dim}")
        result = met
    return result


def of_rank(name: str, tensor: TensorType, rank: int) -> Shape:
    """The shape, with this rank if it is unknown. Raises ShapeMismatch."""
    if tensor.rank is None:
        return Shape.any(rank)
    if tensor.rank != rank:
        raise ShapeMismatch(f"{name} must have {rank} axes, found {tensor.shape}")
    return tensor.shape


def float_type(*tensors: TensorType) -> TensorType:
    """An unranked type of the common element type. Raises TypeMismatch."""
    element = merge(*(t.element for t in tensors))
    if not (element.is_float or element is dynamic):
        raise TypeMismatch(f"all inputs must be of one floating-point type, found {element}")
    return TensorType(element, Shape.unranked())
