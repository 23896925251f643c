"""Compares plain results with OpenVINO's runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov

from irload.model import Model
from tests.fuzz.programs.near import differs, scale
from tests.harness.case import Array
from tests.harness.runtime import array_of, core, tensor

ROUNDING = 2e-4
"""Share of an output's scale by which OpenVINO may differ: it approximates functions and adds in another order."""
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "ENABLE_MMAP": False}


def compare(xml: bytes, blob: bytes, model: Model, expected: Any) -> str:
    """ "agrees", or why OpenVINO was not compared. Raises Wrong if plain results differ from OpenVINO's.

    If the plugin differs, OpenVINO's reference kernels are tried; if these lack an operation, the plugin runs with
    every value as an output, because some of its fusions are wrong.
    """
    from tests.fuzz.programs.play import Wrong

    if b'levels="2"' in xml:
        return "bounds that meet"  # the plugin divides by input_high − input_low = 0 unless it fuses
    try:
        read = core().read_model(xml, ov.Tensor(np.frombuffer(blob or b"\0", np.uint8)))
        request = core().compile_model(read, "CPU", CONFIG).create_infer_request()
    except RuntimeError as error:
        return f"refused: {error}"
    stateful = any(True for graph in model.walk() for _ in graph.sinks)
    verdict = "agrees"
    for turn, (feed, plain) in enumerate(zip(expected.feeds, expected.results, strict=True)):
        if isinstance(plain, str):
            return "plain refused"
        inputs = [tensor(array, port.element_type) for array, port in zip(feed, model.inputs, strict=True)]
        try:
            for k, each in enumerate(inputs):
                request.set_input_tensor(k, each)
            request.infer()
        except RuntimeError as error:
            return f"failed: {error}"
        inferred = [ov.PartialShape(list(request.get_output_tensor(k).shape)) for k in range(len(plain))]
        if not all(o.partial_shape.compatible(shape) for o, shape in zip(read.outputs, inferred, strict=True)):
            return "contradicts its own shapes"  # the plugin wrongly fuses two convolutions with computed weights
        difference = _found(plain, [array_of(request.get_output_tensor(k)) for k in range(len(plain))], expected)
        if difference is not None and not stateful:
            theirs = _by_reference(read, inputs) or _unfused(read, inputs)
            difference = difference if theirs is None else _found(plain, theirs, expected)
            verdict = "agrees where nothing is fused"
        if difference is not None and stateful:
            return "differs in states"  # the plugin sometimes writes states before they are read
        if difference is not None:
            raise Wrong("runtime", f"inference {turn}: OpenVINO differs: {difference}")
    return verdict


def _found(plain: Sequence[Array], theirs: Sequence[Array], expected: Any) -> str | None:
    """How OpenVINO's results differ from the plain ones, or None."""
    for k, (ours, other) in enumerate(zip(plain, theirs, strict=True)):
        tolerance = max(ROUNDING * scale(ours), 2 * (expected.tolerances[k] or 0), 1e-6)
        difference = differs(ours, other, tolerance)
        if difference is not None:
            return f"output {k}: {difference}"
    return None


def _by_reference(read: ov.Model, tensors: Sequence[ov.Tensor]) -> list[Array] | None:
    """The results of the reference kernels, or None if they do not run the model."""
    outputs = [ov.Tensor(r.get_element_type(), ov.Shape([])) for r in read.get_results()]
    try:
        return [array_of(t) for t in outputs] if read.evaluate(outputs, list(tensors)) else None
    except RuntimeError:
        return None


def _unfused(read: ov.Model, tensors: Sequence[ov.Tensor]) -> list[Array] | None:
    """The plugin's results with every value as an output, or None if it does not run that model."""
    whole = read.clone()
    count = len(whole.outputs)
    computed = (op for op in whole.get_ordered_ops() if op.get_type_name() not in ("Parameter", "Constant", "Result"))
    try:
        whole.add_outputs([output for op in computed for output in op.outputs()])
        request = core().compile_model(whole, "CPU", CONFIG).create_infer_request()
        request.infer(list(tensors))
    except RuntimeError:
        return None
    return [array_of(request.get_output_tensor(k)) for k in range(count)]
