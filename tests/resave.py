"""Saved models against their originals: `python -m tests.resave DIR…` prints a line per model.

Each DIR contains model.xml, model.bin and inputs in_0.npy, in_1.npy, …. The model is read and saved by irload; OpenVINO
and irload then run both files. Prints the largest difference of an output, by OpenVINO and by irload, and the seconds
that saving took. `--fp16` saves with compress_to_fp16 and compares with OpenVINO's `save_model`: the constants that are
f16, and the outputs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import irload
from tests.agreement.feeding import stored
from tests.agreement.judging import EXACT
from tests.harness.runtime import core


def by_runtime(file: Path, inputs: Sequence[Any]) -> list[Any]:
    """The outputs by OpenVINO."""
    result = core().compile_model(core().read_model(file), "CPU", EXACT)(inputs)
    return [np.array(v) for v in result.values()]


def by_irload(file: Path, inputs: Sequence[Any]) -> list[Any]:
    """The outputs by irload."""
    return list(irload.compile_model(file)(inputs).values())


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """The largest difference of an element; infinite if the shapes or the types differ."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return float("inf")
        if a.dtype.kind in "biufc" and a.size:
            worst = max(worst, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()))
        elif a.tolist() != b.tolist():
            return float("inf")
    return worst


def halved(file: Path) -> set[str]:
    """The names of the f16 constants with a decompressing Convert."""
    return {
        node.name
        for graph in irload.read_model(file).walk()
        for node in graph.nodes
        if node.type == "Convert" and any(entry.get("name") == "decompression" for entry in node.rt_info)
    }


def resave(folder: Path, into: Path, *, fp16: bool) -> str:
    """Save one model and compare. Returns the line to print; raises on failure."""
    original, saved = folder / "model.xml", into / "model.xml"
    inputs = stored(original)
    model = irload.read_model(original)
    start = time.perf_counter()
    irload.save_model(model, saved, compress_to_fp16=fp16)
    seconds = time.perf_counter() - start
    differences = ""
    if fp16:
        original = into / "theirs.xml"
        ov.save_model(core().read_model(folder / "model.xml"), original)
        ours, theirs = halved(saved), halved(original)
        differences = (
            f"  f16 {len(ours)}, only ours {sorted(ours - theirs)[:3]}, only theirs {sorted(theirs - ours)[:3]}"
        )
    runtime = difference(by_runtime(saved, inputs), by_runtime(original, inputs))
    own = difference(by_irload(saved, inputs), by_irload(original, inputs))
    return f"OpenVINO {runtime:.1e}  irload {own:.1e}  saved in {seconds:5.2f} s{differences}"


def main(words: list[str]) -> int:
    """Resave every model. Returns 1 if one fails or differs by more than 1e-6."""
    failed = False
    for folder in (Path(w) for w in words if w != "--fp16"):
        with tempfile.TemporaryDirectory() as into:
            try:
                line = resave(folder, Path(into), fp16="--fp16" in words)
            except (irload.IRError, RuntimeError, ValueError) as error:
                line, failed = f"{type(error).__name__}: {error}", True
        print(f"{folder.name:28} {line}", flush=True)
        failed |= any(float(line.split(word)[1].split()[0]) > 1e-6 for word in ("OpenVINO ", "irload ") if word in line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
