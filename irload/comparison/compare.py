"""Compares layer by layer: the error of each layer on equal inputs, and the error accumulated since the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irload.comparison.folded import clear_folded, clear_unreturned
from irload.comparison.judging import Judging
from irload.comparison.layer_error import Comparison, LayerError
from irload.comparison.paired import PairedRun
from irload.comparison.rounding import clear_rounding
from irload.comparison.sides import WAYS, Sides
from irload.comparison.sources import run_plain
from irload.comparison.tolerances import TOLERANCES
from irload.errors import InputInvalid
from irload.model import Model
from irload.runtime.inputs import bind_typed
from irload.runtime.observation import as_patterns, unmatched
from irload.safety.limits import DEFAULT, Limits

__all__ = ["TOLERANCES", "WAYS", "Comparison", "LayerError", "compare"]

INT8 = """\
OpenVINO multiplies the quantized layers of this model in int8; on x86-64 processors without VNNI, sums of two \
products saturate at ±32768"""
"""Note on a divergence that irload cannot avoid: it has no int8 transformations, so it quantizes at other layers."""


def compare(
    a: Model | str | Path,
    b: Model | str | Path,
    inputs: Any = None,
    *,
    model: Model | str | Path | None = None,
    tolerances: Mapping[str, float] | None = None,
    layers: str | Sequence[str] = (),
    limits: Limits = DEFAULT,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Compare two sides layer by layer and find the first layer whose local error exceeds its tolerance.

    - `a`, `b`: each is one of
      - a Model or its path, run layer by layer without fusions;
      - a way to run the model of the other side, or `model`: `plain`, `fast` (planned, in NumPy), `jit` (planned, with
        compiled kernels), `openvino`, `openvino:bf16` or `openvino:f16`;
      - a folder or an .npz with outputs by name, as written by `dump_intermediates`;
      - an ONNX file, run by ONNX Runtime, with layers matched by the names of tensors.
    - `inputs`: as for a call of a compiled model.
    - `tolerances`: numbers by element type, as in `TOLERANCES`, or by name pattern.
    - `layers`: name patterns of the layers to compare.
    - `limits`: for reading. `threads`: for `fast`, `jit` and `openvino`.
    - `progress`: called with the number of outputs compared so far.

    Layers of two models are matched by structure. Every layer also runs on the other side's inputs, which separates
    the error of the layer from the error of its inputs. An output of the model beyond its tolerance fails the
    comparison. Raises InputInvalid if there is no model, no layer matches, a tolerance applies to no layer, or `jit` is
    unavailable, Unsupported if OpenVINO or ONNX Runtime is missing, and the errors of reading and running.
    """
    sides = Sides(a, b, model, limits, threads)
    given, _ = bind_typed(sides.runner.inputs, inputs)  # without `wide`: f32 arrays for f16 inputs are converted
    other = sides.other(given)
    judging = Judging(sides, other, dict(tolerances or {}), as_patterns(layers), progress)
    comparison = judging.comparison
    comparison.a, comparison.b = sides.shown(a), sides.shown(b)
    runs: list[PairedRun] = []

    def paired(compiled: Any) -> PairedRun:
        runs.append(PairedRun(compiled, judging, sides.names))
        return runs[0]

    try:
        with np.errstate(all="ignore"):
            run_plain(sides.runner, given, paired)
            judging.outputs(runs[0].free_results)
            if sides.may_fold:
                clear_folded(sides.runner, comparison, judging.nodes)
            if sides.rounds_elsewhere:
                clear_rounding(sides, given, comparison)
            if sides.is_openvino:
                clear_unreturned(comparison)
    finally:
        other.close()
    if not comparison.layers and not comparison.outputs:
        if not judging.has_chosen:
            raise unmatched(judging.patterns)
        raise InputInvalid(f"no layer of {comparison.a} matches one of {comparison.b}")
    for pattern in sorted(judging.unused):
        raise InputInvalid(
            f"tolerances (irrun --tolerance): '{pattern}' is neither an element type nor a pattern that matches a layer"
        )
    if sides.is_openvino and not comparison.passed and any(n.type == "FakeQuantize" for n in sides.runner.nodes):
        comparison.notes.append(INT8)
    for element, count in sorted(judging.constants.roundings.items()):
        difference = "weights differ" if sides.is_of_other_weights else f"{count} constants differ"
        comparison.notes.append(f"{difference} by rounding to {element}")
    return comparison
