"""Random cases: elements picked by index and by slice."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.element import boolean, f16, f32, i8, i32, i64, u8
from irload.ops.movement.slicing import Slice
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import pick, random_array, random_shape
from tests.ops.movement.material import data, index, signed, some_shape

FAR = 2**31 - 1


@cases("Gather", "opset1", "opset7", "opset8")
def gather(rng: Random, version: str) -> Case:
    batched = version != "opset1"
    shape = some_shape(rng, (1, 4), empty=False)
    axis = int(rng.integers(len(shape)))
    batches = int(rng.integers(axis + 1)) if batched and rng.random() < 0.6 else 0
    inner = random_shape(rng, (0, 2), 1, 3)
    size = shape[axis]
    low, high = (-size - 1, size + 1) if version == "opset8" and rng.random() < 0.3 else (0, size)
    if version == "opset8" and rng.random() < 0.3:
        low = -size
    at = rng.integers(low, high, shape[:batches] + inner)
    batch_dims = batches - at.ndim if at.ndim and rng.random() < 0.3 else batches
    place = signed(rng, axis, len(shape))
    inputs = [data(rng, shape), index(rng, at), index(rng, [place] if rng.random() < 0.2 else place, constant=True)]
    # OpenVINO reads out of bounds for batches of one and for indices out of range (see the deviations).
    beyond = bool(((at < -size) | (at >= size)).any())
    common = batch_dims % at.ndim if batch_dims < 0 else batch_dims
    expected = [_gathered(inputs[0].value, at, axis, common)] if beyond or 1 in shape[:common] else None
    return Case("Gather", version, inputs, {"batch_dims": batch_dims} if batched else {}, expected=expected)


def _gathered(data: Array, indices: Array, axis: int, batches: int) -> Array:
    """Gather one slice at a time."""
    result = np.zeros(data.shape[:axis] + indices.shape[batches:] + data.shape[axis + 1 :], data.dtype)
    for place in np.ndindex(*data.shape[:axis], *indices.shape[batches:]):
        k = int(indices[place[:batches] + place[axis:]])
        if -data.shape[axis] <= k < data.shape[axis]:
            result[place] = data[place[:axis]][k]
    return result


def _ends(rng: Random, size: int) -> tuple[int, int, int]:
    step = int(pick(rng, [1, 1, 1, 2, 3, -1, -2]))
    first, last = (int(v) for v in rng.integers(-size - 2, size + 3, 2))
    if rng.random() < 0.2:
        first = pick(rng, [0, FAR, -FAR - 1])
    if rng.random() < 0.2:
        last = pick(rng, [FAR, -FAR - 1])
    # OpenVINO infers wrong intervals if begin and end count from opposite ends of the axis (see deviations).
    if step > 0 and first < 0 <= last < FAR:
        last = FAR
    if step < 0 and -FAR - 1 < last < 0 <= first:
        last = -FAR - 1
    if step < 0 and first < -1:
        first = -1
    return first, last, step


@cases("Slice", "opset8")
def slice_(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (1, 4), 6)
    axes = rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)]
    known = rng.random() < 0.7
    if not known:
        axes = np.arange(len(axes))
    ends = np.array([_ends(rng, shape[a]) for a in axes])
    inputs = [data(rng, shape), index(rng, ends[:, 0]), index(rng, ends[:, 1]), index(rng, ends[:, 2])]
    if known:
        inputs.append(index(rng, [signed(rng, int(a), len(shape)) for a in axes]))
    return Case("Slice", version, inputs)


@cases("StridedSlice", "opset1")
def strided_slice(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (1, 4), 6, empty=False)
    kinds = [pick(rng, ["plain", "plain", "plain", "shrink"]) for _ in range(rng.integers(1, len(shape) + 1))]
    axes = list(range(len(kinds)))
    if rng.random() < 0.3:  # an ellipsis: positions after it count from the end
        at = int(rng.integers(len(kinds) + 1))
        axes = [k if k < at else len(shape) - len(kinds) + k for k in range(len(kinds))]
        kinds.insert(at, "ellipsis")
        axes.insert(at, -1)
    if rng.random() < 0.3:
        at = int(rng.integers(len(kinds) + 1))
        kinds.insert(at, "new")
        axes.insert(at, -1)
    ends = [_ends(rng, shape[a]) if k == "plain" else (0, 1, 1) for k, a in zip(kinds, axes, strict=True)]
    for k, (kind, axis) in enumerate(zip(kinds, axes, strict=True)):
        if kind == "shrink":
            begin = int(rng.integers(-shape[axis], shape[axis]))
            ends[k] = (begin, begin + 1, 1)
    plain = [kind == "plain" for kind in kinds]
    attributes = {
        "begin_mask": [int(p and rng.random() < 0.3) for p in plain],
        "end_mask": [int(p and rng.random() < 0.3) for p in plain],
        "new_axis_mask": [int(k == "new") for k in kinds],
        "shrink_axis_mask": [int(k == "shrink") for k in kinds],
        "ellipsis_mask": [int(k == "ellipsis") for k in kinds],
    }
    for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask"):
        if not any(attributes[name]) and rng.random() < 0.5:
            attributes[name] = []
    values = np.array(ends)
    # With a new axis after the ellipsis and a begin that is not constant, OpenVINO miscounts axes (see deviations).
    inputs = [data(rng, shape), index(rng, values[:, 0], constant="ellipsis" in kinds or None)]
    backward = bool((values[:, 2] < 0).any())  # for masked ends OpenVINO bounds an unbounded axis by 2**63 - 2
    inputs.append(index(rng, values[:, 1], constant=(backward and any(attributes["end_mask"])) or None))
    if (values[:, 2] != 1).any() or rng.random() < 0.5:
        inputs.append(index(rng, values[:, 2]))
    return Case("StridedSlice", version, inputs, attributes)


@cases("GatherElements", "opset6")
def gather_elements(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 4))
    axis = int(rng.integers(len(shape)))
    part = (*shape[:axis], int(rng.integers(1, 5)), *shape[axis + 1 :])
    low = -shape[axis] if rng.random() < 0.4 else 0
    at = rng.integers(low, shape[axis], part)
    return Case("GatherElements", version, [data(rng, shape), index(rng, at)], {"axis": signed(rng, axis, len(shape))})


@cases("GatherND", "opset5", "opset8")
def gather_nd(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 5), 1, 3)
    batches = int(rng.integers(0, len(shape)))
    depth = int(rng.integers(1, len(shape) - batches + 1))
    inner = random_shape(rng, (0, 2), 1, 3)
    rows = [rng.integers(0, n, shape[:batches] + inner) for n in shape[batches : batches + depth]]
    return Case("GatherND", version, [data(rng, shape), index(rng, np.stack(rows, -1))], {"batch_dims": batches})


@cases("GatherTree", "opset1")
def gather_tree(rng: Random, version: str) -> Case:
    shape = random_shape(rng, 3, 1, 4)
    steps, batch, beams = shape
    element = pick(rng, [i32, f32])
    inputs = [
        param(rng.integers(0, 6, shape), element),
        param(rng.integers(0, beams, shape), element),
        param(rng.integers(1, steps + 1, batch), element),
        param(rng.integers(0, 6), element),
    ]
    return Case("GatherTree", version, inputs)


@cases("SliceScatter", "opset15")
def slice_scatter(rng: Random, version: str) -> Case:
    while True:  # the CPU plugin crashes for empty parts
        plain = slice_(rng, version)
        values = [i.value for i in plain.inputs]
        part = Slice().compute(*values)
        if part.size and (values[3] > 0).all():
            break
    updates = data(rng, part.shape, plain.inputs[0].element)
    inputs = [plain.inputs[0], updates, *(const(i.value, i.element) for i in plain.inputs[1:])]
    return Case("SliceScatter", version, inputs, oracle="cpu")  # constants only, see deviations


@cases("Unique", "opset10")
def unique(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 3), 1, 4)
    along = rng.random() < 0.6
    element = pick(rng, [f32, f16, i32, i64, i8, u8, boolean])
    attributes = {"sorted": bool(rng.random() < 0.5), "index_element_type": pick(rng, ["i32", "i64"])}
    attributes["count_element_type"] = pick(rng, ["i32", "i64"])
    inputs = [param(random_array(rng, shape, element, 0, 2 if element.is_integer else 1).round(), element)]
    if element is boolean:
        inputs = [param(rng.integers(0, 2, shape), element)]
    if not along:
        return Case("Unique", version, inputs, attributes, outputs=4)
    axis = int(rng.integers(len(shape)))
    inputs.append(const(signed(rng, axis, len(shape)), pick(rng, [i32, i64])))
    expected = _unique_slices(inputs[0].value, axis, attributes["sorted"])  # OpenVINO is wrong (see deviations)
    return Case("Unique", version, inputs, attributes, outputs=4, expected=expected)


def _unique_slices(values: Any, axis: int, ordered: bool) -> list[Any]:
    """Unique's outputs, slice by slice."""
    slices = [tuple(s.ravel().tolist()) for s in np.moveaxis(values, axis, 0)]
    distinct = list(dict.fromkeys(slices))
    if ordered:
        distinct.sort()
    first = [slices.index(d) for d in distinct]
    return [values.take(first, axis), first, [distinct.index(s) for s in slices], [slices.count(d) for d in distinct]]
