"""The operations of each opset of OpenVINO's runtime: `python -m tests.opset_tables` writes tests/data/opsets.csv.

A layer of every type in every version is read in child processes. A crash of OpenVINO counts as support, too. The
suite compares irload with the file, the nightly run the file with OpenVINO.
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
RECORD = LIST.with_name("opsets.csv")


def rows() -> list[tuple[str, str]]:
    """(type, version) of every public operation."""
    with open(LIST, encoding="utf-8") as file:
        return [(line["type"], line["version"]) for line in csv.DictReader(file)]


def known(type: str, version: str) -> bool:
    """True if OpenVINO has the operation. Errors for missing attributes and inputs are ignored."""
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


def pairs() -> list[tuple[str, str]]:
    """Every (type, version) that is tried, including names in other case and versions that no specification lists."""
    types = sorted({t for t, _ in rows()} - {"Parameter", "Result", "Const"})  # in the model around the layer
    return [(t, v) for t in (*types, "relu", "CONVOLUTION", "LSTMSequence1", "RMS") for v in VERSIONS]


def of_the_runtime() -> dict[str, list[str]]:
    """The versions in which OpenVINO supports each type."""
    tried = pairs()
    answers = in_children(lambda k: known(*tried[k]), len(tried))
    types: dict[str, list[str]] = {type: [] for type, _ in tried}
    for (type, version), answer in zip(tried, answers, strict=True):
        if isinstance(answer, Died) or answer:
            types[type].append(version)
    return types


def recorded() -> dict[str, list[str]]:
    """The versions of each type in the file."""
    with open(RECORD, encoding="utf-8", newline="") as file:
        return {type: versions.split() for type, versions in csv.reader(file)}


def disagreements() -> list[str]:
    """Each (type, version) that only one of irload and the recorded runtime supports."""
    table = recorded()
    differences: list[str] = []
    for type, version in pairs():
        try:
            ours, note = True, resolve(type, version)[1]
        except UnknownOperation:
            ours, note = False, None
        if ours != (version in table[type]) and note is None:  # a note documents that irload is more lenient here
            differences.append(f"{type} in {version}: irload {ours}, OpenVINO {not ours}")
    return differences


def main() -> int:
    """Write the file; `--check` compares it with OpenVINO instead."""
    table = of_the_runtime()
    if "--check" in sys.argv:
        return int(table != recorded())
    with open(RECORD, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows((type, " ".join(table[type])) for type in sorted(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
