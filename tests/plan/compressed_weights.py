"""Graphs of compressed weights as exporters write them, for tests of plans and kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.packing import pack, unpack
from irload.core.tensor import Array
from models import ir
from tests.plan.graphs import Net

ELEMENTS = (et.u4, et.i4, et.u8, et.i8, et.f16, et.bf16, et.nf4, et.f4e2m1, et.f8e4m3, et.f8e5m2)


@dataclass(frozen=True)
class Weights:
    """Weights [columns, length], or [length, columns] unless `transposed`, with a scale for each of `groups`.

    Without `groups` there is no scale. `scale`: the type of scales and of the arithmetic.
    """

    element: ElementType
    columns: int
    length: int
    groups: int = 0
    zero: bool = False
    scale: str = "f16"
    transposed: bool = True
    lead: tuple[int, ...] = ()

    def of(self, net: Net, seed: int = 0) -> ir.Ref:
        """The weights in f32."""
        rng = np.random.default_rng(seed)
        groups = max(self.groups, 1)
        split = (groups, self.length // groups) if groups > 1 else (self.length,)
        shape = (*self.lead, self.columns, *split) if self.transposed else (*self.lead, *split, self.columns)
        along = len(shape) - (1 if self.transposed else 2)
        each = (*shape[:along], 1, *shape[along + 1 :])
        kind = "f32" if self.element is et.nf4 else self.scale
        weights = _converted(net, net.codes(_values(rng, self.element, shape), self.element), kind)
        if self.zero:
            zeros = _converted(net, net.codes(_values(rng, self.element, each), self.element), kind)
            weights = net.op("Subtract", weights, zeros)
        if self.groups:
            scale = (rng.random(each) + 0.5) * rng.choice([-1, 1], each) / 16
            weights = net.op("Multiply", weights, net.codes(scale.astype(et.element(kind).dtype), et.element(kind)))
        if groups > 1:
            whole = (self.columns, self.length) if self.transposed else (self.length, self.columns)
            weights = net.reshape(weights, *self.lead, *whole)
        return weights if kind == "f32" else _converted(net, weights, "f32")


def _converted(net: Net, x: ir.Ref, to: str) -> ir.Ref:
    return net.op("Convert", x, destination_type=to)


def _values(rng: np.random.Generator, element: ElementType, shape: tuple[int, ...]) -> Array:
    """Random values of an element type in its storage dtype."""
    if element.kind == "float":
        values = rng.standard_normal(shape).astype(element.dtype)
        return unpack(np.frombuffer(pack(values, element), np.uint8), element, shape)
    half = 1 << (element.bits - 1)
    low = -half if element.is_signed else 0
    return rng.integers(low, low + 2 * half, shape).astype(element.dtype)
