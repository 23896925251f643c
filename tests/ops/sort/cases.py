"""Random cases of the sorting family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape
from tests.ops.detection.material import random_boxes, random_scores

TIED = (et.f32, et.f16, et.i32, et.i64, et.u32, et.u64)
"""Types that the reference sorts. The others run on the CPU plugin, which does not order equal elements by index."""


def same_sets(ours: Sequence[Array], theirs: Sequence[Array], axis: int) -> bool:
    """True if the values and indices of an unsorted TopK agree, both sorted by index."""
    pairs: list[list[Array]] = []
    for values, indices in (ours, theirs):
        order = np.argsort(indices, axis)
        pairs.append([np.take_along_axis(a, order, axis) for a in (values, indices)])
    return all(np.array_equal(a, b) for a, b in zip(*pairs, strict=True))


@cases("TopK", "opset1", "opset3", "opset11")
def topk(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS))
    shape = random_shape(rng, (1, 4), 1, 6)
    axis = int(rng.integers(-len(shape), len(shape)))
    kinds = (et.i8, et.i32, et.i64) if version == "opset1" else (*INTEGERS,)
    k = pick(rng, (const, const, param))(int(rng.integers(1, shape[axis] + 1)), pick(rng, kinds))
    attributes = {"axis": axis, "mode": pick(rng, ["max", "min"]), "sort": pick(rng, ["value", "index", "none"])}
    if rng.random() < 0.7:
        attributes["index_element_type"] = pick(rng, INDICES)
    if version == "opset11" and rng.random() < 0.5:
        attributes["stable"] = attributes["sort"] != "none" and rng.random() < 0.5
    if element in TIED and rng.random() < 0.7:
        data = np.round(random_array(rng, shape, et.f64 if element.is_float else element)).astype(element.dtype)
    else:
        data = np.argsort(rng.random(shape), axis).astype(element.dtype)
    compare = None if attributes["sort"] != "none" else lambda a, b: same_sets(a, b, axis)
    return Case("TopK", version, [param(data, element), k], attributes, outputs=2, compare=compare)


@cases("NonMaxSuppression", "opset1", "opset3", "opset4", "opset5", "opset9")
def nms(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    batches, classes, count = *random_shape(rng, 2, 1, 3), int(rng.integers(1, 9))
    center = rng.random() < 0.4
    optional = int(rng.integers(1, 4 + (version in ("opset5", "opset9"))))
    # Without iou_threshold it is 0, which equals the overlap of separate boxes: see deviations.
    boxes = random_boxes(rng, (batches, count), element, center=center, swapped=not center, dense=optional < 2)
    scores = random_scores(rng, (batches, classes, count), element)
    tail = () if version in ("opset1", "opset3", "opset4") or rng.random() < 0.6 else (1,)
    make = pick(rng, (const, const, param))
    options = [
        make(np.full(tail, rng.integers(version in ("opset5", "opset9"), 6)), pick(rng, INDICES)),
        make(np.full(tail, rng.uniform(0, 0.8)), et.f32),
        make(np.full(tail, rng.uniform(0, 0.5)), et.f32),
    ]
    if version in ("opset5", "opset9"):
        options.append(make(np.full(tail, pick(rng, [0.0, 0.3, 1.0])), et.f32))
    attributes = {"box_encoding": "center" if center else "corner"}
    if rng.random() < 0.7:
        attributes["sort_result_descending"] = pick(rng, [True, False])
    if version != "opset1" and rng.random() < 0.7:
        attributes["output_type"] = pick(rng, INDICES)
    inputs = [param(boxes, element), param(scores, element), *options[:optional]]
    outputs = 3 if version in ("opset5", "opset9") else 1
    return Case("NonMaxSuppression", version, inputs, attributes, outputs, inconsistent_shapes=outputs == 1)
