"""Scaled dot-product attention."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from irload.core import attribute as attr
from irload.core.element import boolean, dynamic, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch


class ScaledDotProductAttention(Op, since=13):
    """softmax(query · keyᵀ · scale + mask) · value, over any number of broadcasting batch axes.

    Specification: ScaledDotProductAttention-13. Shapes: query [N…, L, E], key [N…, S, E], value [N…, S, Ev], output
    [N…, L, Ev]. `attention_mask` broadcasts to [N…, L, S]: floats are added, booleans are true for the keys to attend
    to, a scalar means no mask. A row whose booleans are all false is NaN. With `averages` it is the mean of all values,
    as in OpenVINO's decoders for padding on the left. With `causal`, position l attends to the keys 0…l and
    `attention_mask` is ignored. `scale` defaults to 1/√E. `sink`, an input of newer runtimes, broadcasts to [N…, L, 1]:
    one additional score per row of the softmax, without a value.
    """

    multiplies = True

    causal = attr.boolean(default=False, spec_required=True)
    averages: bool = False
    """Whether rows without keys average all values."""

    def infer(
        self,
        query: TensorType,
        key: TensorType,
        value: TensorType,
        attention_mask: TensorType | None = None,
        scale: TensorType | None = None,
        sink: TensorType | None = None,
    ) -> TensorType:
        mask = None if self.causal else attention_mask
        others = [t.element for t in (scale, sink) if t is not None]
        if mask is not None and mask.element is not boolean:
            others.append(mask.element)
        element = merge(query.element, key.element, value.element, *others)
        if not (element.is_float or element is dynamic):
            raise TypeMismatch(f"query, key and value must be of a floating-point type, found {element}")

        batch, length, embedding = _parts("query", query.shape)
        key_batch, source, key_embedding = _parts("key", key.shape)
        value_batch, value_source, width = _parts("value", value.shape)
        _require_equal("embedding", embedding, key_embedding, "query", "key")
        source = _require_equal("source", source, value_source, "key", "value")
        batch = _join(batch, key_batch, value_batch)
        if mask is not None and mask.rank != 0:
            batch, length = _masked(mask.shape, batch, length, source)
        if scale is not None:
            expected = Shape() if not scale.rank else Shape(1)
            if scale.shape.meet(expected) is None:
                raise ShapeMismatch(f"scale must be a scalar or have one element, found {scale.shape}")
        if batch.rank is None:
            return TensorType(element, Shape.unranked())
        if sink is not None and sink.shape.rank is not None:
            _check_sink(sink.shape, batch, length)
        return TensorType(element, Shape(*batch, length, width))

    def compute(
        self,
        query: Array,
        key: Array,
        value: Array,
        attention_mask: Array | None = None,
        scale: Array | None = None,
        sink: Array | None = None,
    ) -> Array:
        embedding = query.shape[-1]
        if scale is None:
            factor = query.dtype.type(1 / math.sqrt(embedding) if embedding else math.inf)
        else:
            factor = scale.reshape(())
        scores = (query * factor) @ key.swapaxes(-1, -2)
        if self.causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        elif attention_mask is not None and attention_mask.ndim:
            if attention_mask.dtype == bool:
                dropped = ml_dtypes.finfo(query.dtype).min if self.averages else -np.inf
                scores = np.where(attention_mask, scores, dropped)
            else:
                scores = scores + attention_mask
        return _softmax(scores.astype(query.dtype, copy=False), sink) @ value


def _softmax(scores: Array, sink: Array | None) -> Array:
    """Softmax along the last axis; `sink` is added to the sum of each row."""
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, sink)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - top)
    return weights / total


def _parts(name: str, shape: Shape) -> tuple[Shape, Dim, Dim]:
    """The batch axes and the last two axes."""
    if shape.rank is None:
        return Shape.unranked(), ANY, ANY
    if shape.rank < 3:
        raise ShapeMismatch(f"{name} must have at least 3 axes, found {shape}")
    return Shape(*shape[:-2]), shape[-2], shape[-1]


def _require_equal(name: str, a: Dim, b: Dim, first: str, second: str) -> Dim:
    met = a.meet(b)
    if met is None:
        raise ShapeMismatch(f"the {name} dimension of {first} is {a}, of {second} {b}; they must be equal")
    return met


def _join(*batches: Shape) -> Shape:
    joined = batches[0]
    for batch in batches[1:]:
        if joined.rank is not None and batch.rank is not None:
            joined = joined.broadcast(batch)
    return joined


def _masked(mask: Shape, batch: Shape, length: Dim, source: Dim) -> tuple[Shape, Dim]:
    """The batch axes and the target length after the mask is broadcast against them."""
    if mask.rank is None:
        return batch, length
    if mask.rank < 2:
        raise ShapeMismatch(f"attention_mask must be a scalar or have at least 2 axes, found {mask}")
    joined = length.broadcast(mask[-2])
    if joined is None or (source.meet(mask[-1]) is None and mask[-1] != Dim(1, 1)):
        raise ShapeMismatch(f"attention_mask {mask} does not broadcast to target {length} by source {source}")
    return _join(batch, Shape(*mask[:-2])), joined


def _check_sink(sink: Shape, batch: Shape, length: Dim) -> None:
    """Raise ShapeMismatch for a sink that does not broadcast to [N…, L, 1]."""
    row = Shape(*batch, length, 1)
    one = Dim(1, 1)
    if len(sink) != len(row) or any(a.meet(one) is None and a.meet(b) is None for a, b in zip(sink, row, strict=True)):
        raise ShapeMismatch(f"sink must broadcast to {row}, found {sink}")
