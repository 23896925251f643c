"""Inputs for a published model: the stored ones next to it, or random ones of the types that OpenVINO expects.

Integer indices stay below the length of the indexed axis; sizes of dynamic dims are tried until OpenVINO accepts
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import irload
from irload.core.element import ElementType, element
from irload.core.shape import Shape
from tests.harness.runtime import shape_of, tensor

Arrays = list[Any]

_FIRST, _REST = (2, 1), (8, 32, 64, 224, 3, 1, 128, 512)
"""Sizes tried for a dynamic first dim, and for other dynamic dims."""
_PASSING = (
    *("Convert", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Broadcast", "Tile"),
    *("Concat", "Split", "VariadicSplit", "Slice", "StridedSlice"),
)
"""Operations whose output is an index if their input is."""
_INDEXED = {"Gather": 1, "EmbeddingBagOffsetsSum": 1, "EmbeddingBagPackedSum": 1, "GatherElements": 1, "OneHot": 0}
"""Operations with indices, and the port of their indices."""


@dataclass(frozen=True)
class Wanted:
    """The requirements of an input. `below`: exclusive upper bound of its integers, None if unbounded."""

    element: ElementType
    shape: Shape
    below: int | None = None


def wanted_by_runtime(model: ov.Model) -> list[Wanted]:
    """The requirements of the inputs of OpenVINO's model."""
    return [
        Wanted(element(i.element_type.get_type_name()), shape_of(i.partial_shape), index_limit(i)) for i in model.inputs
    ]


def wanted_by_irload(model: irload.Model) -> list[Wanted]:
    """The requirements of the inputs of irload's model, for models that OpenVINO rejects."""
    return [Wanted(p.element_type, p.partial_shape) for p in model.inputs]


def stored(file: Path) -> Arrays:
    """The arrays in_0.npy, in_1.npy, … next to the model; empty if there are no files."""
    paths = sorted(file.parent.glob("in_*.npy"), key=lambda p: int(p.stem[3:]))
    return [np.load(p) for p in paths]


def candidates(wanted: Sequence[Wanted], seed: int = 0) -> Iterator[Arrays]:
    """Random inputs: one set for static shapes, otherwise one per combination of sizes."""
    dynamic = any(w.shape.is_dynamic for w in wanted)
    for first, rest in product(_FIRST, _REST) if dynamic else [(1, 1)]:
        rng = np.random.default_rng(seed)
        yield [_random(w, _sizes(w.shape, first, rest), rng) for w in wanted]


def tensors(wanted: Sequence[Wanted], arrays: Arrays) -> list[ov.Tensor]:
    """The arrays as OpenVINO's tensors."""
    return [tensor(np.asarray(a), w.element) for a, w in zip(arrays, wanted, strict=True)]


def _sizes(shape: Shape, first: int, rest: int) -> tuple[int, ...]:
    if shape.rank is None:
        return (first, rest)
    sizes: list[int] = []
    for axis, dim in enumerate(shape):
        channels = shape.rank == 4 and axis == 1 and not shape[3].is_static
        size = first if axis == 0 else 3 if channels else rest
        sizes.append(max(dim.lo, size if dim.hi is None else min(size, dim.hi)))
    return tuple(sizes)


def _random(wanted: Wanted, sizes: tuple[int, ...], rng: np.random.Generator) -> Any:
    kind = wanted.element
    if kind.kind == "string":
        return rng.choice(np.array(["irload", "", "größe", "a b"], object), sizes)
    if kind.kind == "boolean":
        return rng.integers(0, 2, sizes).astype(bool)
    if kind.is_integer:
        picture = kind.name == "u8" and len(sizes) == 4
        below = wanted.below if wanted.below is not None else 256 if picture else 2
        return rng.integers(0, max(below, 1), sizes).astype(kind.dtype)
    values = _picture(sizes, rng) if len(sizes) == 4 else rng.standard_normal(sizes)
    return np.asarray(values, np.float64 if kind.name == "f64" else np.float32).astype(kind.dtype)


def _picture(sizes: Sequence[int], rng: np.random.Generator) -> Any:
    """A smooth random picture with some noise, of integers in 0..255, as most detectors expect."""
    n, c, h, w = sizes
    y, x = np.mgrid[0:h, 0:w] / max(h, w, 1)
    smooth = np.zeros((n, c, h, w))
    for height, down, right in rng.normal(size=(6, 3, n, c, 1, 1)):
        smooth += 40 * height * np.sin(36 * (down * y + right * x))
    return np.clip(np.rint(128 + smooth + rng.normal(size=(n, c, h, w)) * 8), 0, 255)


def index_limit(port: Any) -> int | None:
    """Exclusive upper bound of an integer input used as an index; None if it is not an index."""
    limits: list[int] = []
    seen: set[tuple[str, int]] = set()
    pending = [port]
    while pending:
        for user in pending.pop().get_target_inputs():
            node = user.get_node()
            kind, key = node.get_type_name(), (node.get_friendly_name(), user.get_index())
            if key in seen:
                continue
            seen.add(key)
            if _INDEXED.get(kind) == user.get_index():
                limits.append(_indexed(node, kind))
            elif kind in _PASSING and user.get_index() == 0:
                pending += node.outputs()
    return min(limits, default=None)


def _indexed(node: Any, kind: str) -> int:
    """The length of the axis that an indexing operation indexes; 1 if it is unknown."""
    if kind == "OneHot":
        return 2
    data, axis = shape_of(node.input_value(0).get_partial_shape()), 0
    if kind == "Gather":
        source = node.input_value(2).get_node()
        axis = int(source.get_data().ravel()[0]) if source.get_type_name() == "Constant" else 0
    elif kind == "GatherElements":
        axis = node.get_attributes()["axis"]
    if data.rank is None:
        return 1
    size = data[axis % data.rank]
    return size.lo if size.is_static else 1
