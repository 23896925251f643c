"""Random cases of Proposal and GenerateProposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Case, Random, cases, param
from tests.harness.material import INDICES, pick, random_shape
from tests.ops.detection.material import random_boxes, random_scores


def deltas(rng: Random, shape: tuple[int, ...], element: ElementType) -> Array:
    """Random deltas of boxes: small shifts and changes of size."""
    return rng.uniform(-0.4, 0.4, shape).astype(element.dtype)


def same_proposals(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """True if rows, and scores of existing regions, agree; OpenVINO does not initialize the scores after these."""
    valid = ours[0][:, 1:].any(1)
    pairs = [(ours[0], theirs[0]), *((a[valid], b[valid]) for a, b in zip(ours[1:], theirs[1:], strict=True))]
    return all(np.allclose(a, b, 1e-4, 1e-4) for a, b in pairs)


def same_scored(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """True if regions with nonzero scores agree; OpenVINO orders regions of score 0 at random."""
    scored = ours[1] > 0
    return all(np.allclose(a[scored], b[scored], 1e-4, 1e-4) for a, b in zip(ours, theirs, strict=True))


@cases("Proposal", "opset1", "opset4")
def proposal(rng: Random, version: str) -> Case:
    element = et.f32
    ratios, scales = [[0.5], [1.0], [0.5, 1.0, 2.0]], [[1.5], [1.0, 2.5]]
    attributes: dict[str, Any] = {
        "base_size": pick(rng, [4, 8]),
        "pre_nms_topn": pick(rng, [10, 30, 1000]),  # OpenVINO crashes below 8
        "post_nms_topn": int(rng.integers(1, 12)),
        "nms_thresh": pick(rng, [0.301, 0.501, 0.701]),
        "feat_stride": pick(rng, [4, 8, 16]),
        "min_size": pick(rng, [0, 0, 4, 9]) if version == "opset4" else 0,  # the scores determine the rows to compare
        "ratio": pick(rng, ratios),
        "scale": pick(rng, scales),
    }
    optional = {
        "clip_before_nms": pick(rng, [True, False]),
        "clip_after_nms": pick(rng, [True, False]),
        "normalize": pick(rng, [True, False]),
        "box_size_scale": pick(rng, [1.0, 2.0]),
        "box_coordinate_scale": pick(rng, [1.0, 2.0]),
        "framework": pick(rng, ["", "tensorflow"]),
    }
    attributes |= {name: value for name, value in optional.items() if rng.random() < 0.5}
    count = len(attributes["ratio"]) * len(attributes["scale"])
    batches, height, width = int(rng.integers(1, 3)), *random_shape(rng, 2, 3, 5)
    inputs = [
        param(random_scores(rng, (batches, 2 * count, height, width), element), element),
        param(deltas(rng, (batches, 4 * count, height, width), element), element),
        param([40, 50, *pick(rng, [[1.0], [1.0, 2.0]])], element),
    ]
    compare = same_scored if attributes["min_size"] else same_proposals
    return Case("Proposal", version, inputs, attributes, 1 if version == "opset1" else 2, compare=compare)


@cases("ExperimentalDetectronGenerateProposalsSingleImage", "opset6")
def single_image(rng: Random, version: str) -> Case:
    element = et.f32
    count, height, width = random_shape(rng, 3, 1, 4)
    attributes = {
        "min_size": pick(rng, [0.0, 4.03, 12.03]),
        "nms_threshold": pick(rng, [0.301, 0.501, 0.701]),
        "post_nms_count": int(rng.integers(1, 12)),
        "pre_nms_count": pick(rng, [4, 10, 1000]),
    }
    inputs = [
        param([40, 50, 1.0], element),
        param(random_boxes(rng, (height * width * count,), element, scale=40), element),
        param(deltas(rng, (4 * count, height, width), element), element),
        param(random_scores(rng, (count, height, width), element), element),
    ]
    type = "ExperimentalDetectronGenerateProposalsSingleImage"
    return Case(type, version, inputs, attributes, 2, compare=same_scored if attributes["min_size"] else None)


@cases("GenerateProposals", "opset9")
def generate(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16))
    batches, count, height, width = random_shape(rng, 4, 1, 3)
    attributes: dict[str, Any] = {
        "min_size": pick(rng, [0.0, 4.03, 8.03]),
        "nms_threshold": pick(rng, [0.301, 0.501, 0.701]),
        "post_nms_count": int(rng.integers(1, 12)),
        "pre_nms_count": pick(rng, [4, 10, 1000]),
    }
    if rng.random() < 0.6:
        attributes |= {"normalized": pick(rng, [True, False]), "roi_num_type": pick(rng, INDICES)}
    scale = pick(rng, [[1.0], [0.5], [1.0, 2.0]])
    info = np.tile(np.array([[40, 50, *scale]]), (batches, 1)).astype(element.dtype)
    inputs = [
        param(info, element),
        param(random_boxes(rng, (height, width, count), element, scale=40), element),
        param(deltas(rng, (batches, 4 * count, height, width), element), element),
        param(random_scores(rng, (batches, count, height, width), element), element),
    ]
    return Case("GenerateProposals", version, inputs, attributes, 3)
