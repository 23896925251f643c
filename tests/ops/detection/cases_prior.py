"""Random cases of PriorBox, PriorBoxClustered and ExperimentalDetectronPriorGridGenerator."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape
from tests.ops.detection.material import random_boxes


def some(rng: Random, **attributes: Any) -> dict[str, Any]:
    """A random selection of the attributes."""
    return {name: value for name, value in attributes.items() if rng.random() < 0.6}


def sizes(rng: Random, version: str) -> list[Input]:
    """(height, width) of a grid and of its image. OpenVINO accepts run-time sizes only in opset1: see deviations."""
    index = pick(rng, (*INDICES, et.u16, et.u64))
    make = pick(rng, (const, const, param)) if version == "opset1" else const
    return [make(rng.integers(1, 5, 2), index), make(rng.integers(40, 90, 2), index)]


def variances(rng: Random) -> list[float]:
    """An empty list, or one or four variances."""
    return pick(rng, [[], [0.2], [0.1, 0.1, 0.2, 0.25]])


@cases("PriorBox", "opset1", "opset8")
def prior_box(rng: Random, version: str) -> Case:
    attributes = some(
        rng,
        clip=pick(rng, [True, False]),
        flip=pick(rng, [True, False]),
        step=pick(rng, [0.0, 8.5]),
        offset=pick(rng, [0.0, 0.5]),
        variance=variances(rng),
        aspect_ratio=pick(rng, [[2.0], [2.0, 3.0], [1.0, 1.5], [2.0, 0.25]]),
    )
    if version == "opset8" and rng.random() < 0.7:
        attributes["min_max_aspect_ratios_order"] = pick(rng, [True, False])
    kind = pick(rng, ["sizes", "fractions", "fixed", "ratios"])
    if kind in ("fixed", "ratios"):
        count = int(rng.integers(1, 3))
        # Odd sizes only for constants, because OpenVINO folds constants by its reference kernels: see deviations.
        inputs = sizes(rng, version)
        attributes["fixed_size"] = [pick(rng, [8, 15 if inputs[0].constant else 16, 20.5]) for _ in range(count)]
        attributes["density"] = [int(rng.integers(1, 4)) for _ in range(count)]
        if kind == "ratios":
            # If there are fewer boxes than the output has room for, OpenVINO does not initialize the rest: see
            # deviations.
            attributes.pop("aspect_ratio", None)
            attributes["fixed_ratio"] = [1.0, 2.0, 0.5][: int(rng.integers(1, 4))]
        return Case("PriorBox", version, inputs, attributes, oracle="cpu")
    count = int(rng.integers(1, 4))
    unit = 1 if kind == "sizes" else 0.02
    attributes["min_size"] = [round(float(rng.uniform(5, 30)) * unit, 4) for _ in range(count)]
    if kind == "sizes":
        most = int(rng.integers(0, count + 1))
        attributes["max_size"] = [round(float(rng.uniform(30, 60)), 3) for _ in range(most)]
    else:
        attributes["scale_all_sizes"] = False
        attributes["step"] = pick(rng, [-1, 0.1, 0.0])
        if rng.random() < 0.4:
            attributes["max_size"] = [round(float(rng.uniform(30, 60)), 3)]
    return Case("PriorBox", version, sizes(rng, version), attributes, oracle="cpu")


@cases("PriorBoxClustered", "opset1")
def clustered(rng: Random, version: str) -> Case:
    count = int(rng.integers(1, 4))
    attributes: dict[str, Any] = {
        "width": [round(float(v), 3) for v in rng.uniform(3, 40, count)],
        "height": [round(float(v), 3) for v in rng.uniform(3, 40, count)],
        **some(rng, clip=pick(rng, [True, False]), offset=pick(rng, [0.0, 0.5]), variance=variances(rng)),
    }
    attributes |= pick(rng, [{}, {"step": 8.0}, {"step_w": 7.5, "step_h": 9.0}])
    return Case("PriorBoxClustered", version, sizes(rng, version), attributes, oracle="cpu")


@cases("ExperimentalDetectronPriorGridGenerator", "opset6")
def prior_grid(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16))
    batches = int(rng.integers(1, 3))
    grid = random_shape(rng, 2, 1, 5)
    attributes: dict[str, Any] = some(
        rng, flatten=pick(rng, [True, False]), stride_x=pick(rng, [0.0, 4.0]), stride_y=pick(rng, [0.0, 8.0])
    )
    if rng.random() < 0.3:
        attributes |= {"h": grid[0], "w": grid[1]}
    inputs = [
        param(random_boxes(rng, (int(rng.integers(1, 4)),), element, scale=20), element),
        param(random_array(rng, (batches, 2, *grid), element), element),
        param(np.zeros((batches, 3, *random_shape(rng, 2, 20, 60)), element.dtype), element),
    ]
    return Case("ExperimentalDetectronPriorGridGenerator", version, inputs, attributes)
