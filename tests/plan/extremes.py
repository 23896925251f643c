"""Compares plans with `compute` on NaN, infinities and numbers near the limits of f32, by class: finite, NaN, +∞, −∞.

Each element of a plan's result must have the class of the plain result in f32, or of the plain result in f64 rounded
to f32: whether a sum overflows in f32 may depend on the order of its terms. Inputs are not judged if a sum of
magnitudes in f64 exceeds a quarter of the largest f32, because then some order of the terms may overflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.interpreter import InterpreterRun
from irload.plan.schedule import ScheduledNode
from irload.runtime.compiled_model import CompiledModel

VALUES = (np.nan, np.inf, -np.inf, 1e-30, 1e19, 1e30, -1e30, 1e37, 1e38, -3e38, 3e38)
SUMS = {
    "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "MatMul", "Einsum",
    "ReduceSum", "ReduceMean", "ReduceL1", "AvgPool", "AdaptiveAvgPool", "Interpolate",
}  # fmt: skip
"""Operations that are sums of products, which may overflow in some order of the terms."""
CELLS = {"LSTMSequence", "GRUSequence", "RNNSequence", "LSTMCell", "GRUCell", "RNNCell"}
"""Operations that contain sums of products; they are judged on numbers up to 1e30."""
LARGEST = float(np.finfo(np.float32).max)


class Terms(InterpreterRun):
    """A plain run of an f32 model in f64 that detects sums whose terms might overflow f32."""

    overflows = False

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        kind = scheduled.node.type
        inputs = [a.astype(np.float64) if a.dtype == np.float32 else a for a in inputs]
        if kind in SUMS | CELLS:
            sizes = [np.abs(np.where(np.isfinite(a), a, 0)) if a.dtype.kind == "f" else a for a in inputs]
            sums = sizes if kind in CELLS else super().run_node(scheduled, sizes)
            most = 1e30 if kind in CELLS else LARGEST / 4
            self.overflows |= any(a.dtype.kind == "f" and bool((np.abs(a) > most).any()) for a in sums)
        return super().run_node(scheduled, inputs)


def feeds(shapes: Sequence[Sequence[int]], values: Sequence[float], seed: int = 11) -> Iterator[list[Array]]:
    """Normal random inputs. Each value is put at one position, in a whole row, and next to another of the values."""
    rng = np.random.default_rng(seed)
    for value in values:
        for how in ("position", "row", "pair"):
            arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
            array = arrays[int(rng.integers(len(arrays)))]
            if not array.size:
                continue
            if how == "row" and array.ndim:
                array[tuple(int(rng.integers(n)) for n in array.shape[:-1])] = value
            else:
                array.reshape(-1)[rng.integers(array.size)] = value
            if how == "pair":
                array.reshape(-1)[rng.integers(array.size)] = rng.choice(np.asarray(values, np.float32))
            yield arrays


def classes_agree(model: Model, shapes: Sequence[Sequence[int]], values: Sequence[float] = VALUES) -> int:
    """Check the plan of a model by class; returns how many inputs were judged."""
    wide = CompiledModel(model, 1, optimize=False)
    plain, plan = irload.compile_model(model, optimize=False), irload.compile_model(model, 1)
    judged = 0
    for arrays in feeds(shapes, values):
        run = Terms(wide, {})
        bound, types = wide._bound(arrays)
        exact = [np.array(a) for a in wide.execute(run, types, bound)]
        if run.overflows:
            continue
        judged += 1
        for actual, wanted, other in zip(plan(arrays).values(), plain(arrays).values(), exact, strict=True):
            with np.errstate(all="ignore"):
                accepted = kinds(wanted), kinds(other.astype(wanted.dtype))
            wrong = (kinds(actual) != accepted[0]) & (kinds(actual) != accepted[1])
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0])
                raise AssertionError(f"{actual[at]} at {list(map(int, at))}, plain {wanted[at]}, in f64 {other[at]}")
    return judged


def kinds(array: Array) -> Array:
    """0 for a finite number, 1 for NaN, 2 for +∞, 3 for −∞."""
    if array.dtype.kind != "f":
        return np.zeros(array.shape, np.int8)
    return np.select([np.isnan(array), array == np.inf, array == -np.inf], [1, 2, 3], 0).astype(np.int8)
