"""The real runtime as a judge of plain results."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov

from irload.graph import Model
from tests.fuzz.programs.near import differs, spread
from tests.harness.case import Array
from tests.harness.runtime import array_of, core, tensor

ROUNDING = 2e-4
"""Share of an output's spread by which the runtime may differ: it approximates functions, and adds up otherwise."""
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "ENABLE_MMAP": False}


def compare(xml: bytes, blob: bytes, model: Model, expected: Any) -> str:
    """ "agrees", or why the runtime could not be asked. Raises Wrong where plain results are not the runtime's."""
    from tests.fuzz.programs.play import Wrong

    try:
        read = core().read_model(xml, ov.Tensor(np.frombuffer(blob or b"\0", np.uint8)))
        request = core().compile_model(read, "CPU", CONFIG).create_infer_request()
    except RuntimeError as error:
        return f"refused: {error}"
    for turn, (feed, plain) in enumerate(zip(expected.feeds, expected.results, strict=True)):
        if isinstance(plain, str):
            return "plain refused"
        try:
            for k, (array, port) in enumerate(zip(feed, model.inputs, strict=True)):
                request.set_input_tensor(k, tensor(array, port.element_type))
            request.infer()
        except RuntimeError as error:
            return f"failed: {error}"
        for k, result in enumerate(plain):
            theirs: Array = array_of(request.get_output_tensor(k))
            tolerance = max(ROUNDING * spread(result), 2 * (expected.tolerances[k] or 0), 1e-6)
            found = differs(result, theirs, tolerance)
            if found is not None:
                raise Wrong("runtime", f"inference {turn}, output {k}: the runtime gives another: {found}")
    return "agrees"
