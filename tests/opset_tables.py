"""Which operations each opset holds, asked of the real runtime: `python -m tests.opset_tables` prints disagreements.

A layer of every type in every version is read in child processes, as some of them crash the runtime: that tells, too,
that it knows them.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import openvino as ov

from irload.errors import UnknownOperation
from irload.ops.registry import LATEST, resolve
from tests.harness import runtime
from tests.harness.children import Died, in_children
from tests.harness.ir import layer_text

REFUSALS = ("unsupported opset", "doesn't contain the operation with type")
VERSIONS = [f"opset{n}" for n in range(LATEST + 2)] + ["experimental", "extension", "ie_internal_opset", "util", "none"]
LIST = Path(__file__).parent / "data" / "operations.csv"


def rows() -> list[tuple[str, str]]:
    """(type, version) of every public operation."""
    with open(LIST, encoding="utf-8") as file:
        return [(line["type"], line["version"]) for line in csv.DictReader(file)]


def known(type: str, version: str) -> bool:
    """Whether the runtime has the operation. What it makes of one without attributes and inputs does not matter."""
    layers = layer_text(0, "a", "Parameter", "opset1", '<data element_type="f32" shape="1"/>', 0, [("FP32", ())])
    layers += layer_text(1, "op", type, version, "", 1, [("FP32", ())]) + layer_text(
        2, "r", "Result", "opset1", "", 1, []
    )
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    edges += '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
    xml = f'<?xml version="1.0"?><net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    try:
        runtime.core().read_model(xml.encode(), ov.Tensor(np.zeros(1, np.uint8)))
    except RuntimeError as error:
        return not any(words in str(error) for words in REFUSALS)
    return True


def main() -> int:
    """Print each (type, version) that one knows and the other does not; return how many."""
    types = sorted({t for t, _ in rows()} - {"Parameter", "Result", "Const"})  # those need no asking
    pairs = [(t, v) for t in (*types, "relu", "CONVOLUTION", "LSTMSequence1", "RMS") for v in VERSIONS]
    differing = 0
    for pair, answer in zip(pairs, in_children(lambda k: known(*pairs[k]), len(pairs)), strict=True):
        try:
            ours, note = True, resolve(*pair)[1]
        except UnknownOperation:
            ours, note = False, None
        theirs = True if isinstance(answer, Died) else answer
        if ours != theirs and note is None:  # a note says that irload is more lenient here
            differing += 1
            print(f"{pair[0]} in {pair[1]}: irload {ours}, the runtime {theirs}")
    print(f"{len(pairs)} pairs, {differing} disagreements")
    return differing


if __name__ == "__main__":
    sys.exit(bool(main()))
