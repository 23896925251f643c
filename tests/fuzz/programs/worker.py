"""Runs the programs of a seed in child processes, shrinks failures, and writes a line of JSON for each.

python -m tests.fuzz.programs.worker SEED FIRST STOP STEP SHARE PRECISION FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.programs.graph import Graph, ir
from tests.fuzz.programs.make import make
from tests.fuzz.programs.play import Wrong, play
from tests.fuzz.programs.shrink import shrunk
from tests.harness.children import Died, in_children, preload

SECONDS = 120
"""Seconds after which a program counts as hanging. The slowest takes a few; a busy machine takes longer."""
MEMORY = 1 << 32
"""Bytes of address space that a child may add."""


def outcome(graph: Graph, *, runtime: bool = False) -> dict[str, Any]:
    """The outcome of a program: kind "ok", or the category of the failure and its message."""
    try:
        played = play(*ir(graph), runtime=runtime)
    except Wrong as wrong:
        return {"kind": wrong.kind, "words": str(wrong)}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return {"kind": "exception", "words": words}
    return {"kind": "ok", **vars(played)}


def guarded(graph: Graph, *, runtime: bool = False) -> dict[str, Any]:
    """`outcome`, computed in a separate process."""
    (result,) = in_children(lambda _: outcome(graph, runtime=runtime), 1, SECONDS, MEMORY)
    return _died(result) if isinstance(result, Died) else result


def _died(died: Died) -> dict[str, Any]:
    return {"kind": "hang" if "no result" in died.how else "crash", "words": died.how}


def uses_runtime(seed: int, index: int, share: float) -> bool:
    """Whether a program is compared with OpenVINO's runtime, too."""
    return zlib.crc32(f"{seed} {index}".encode()) % 1000 < share * 1000


def serve(seed: int, indices: range, share: float, precision: str, folder: Path) -> Iterator[dict[str, Any]]:
    """The outcomes of these programs; the files of failures are saved unchanged and shrunk."""
    preload()

    def task(k: int) -> dict[str, Any]:
        began = time.process_time()
        graph = make(seed, indices[k], precision)
        verdict = outcome(graph, runtime=uses_runtime(seed, indices[k], share))
        return verdict | {
            "layers": graph.work,
            "types": sorted({x.type for x in graph.layers}),
            "seconds": time.process_time() - began,
        }

    for k, answer in enumerate(in_children(task, len(indices), SECONDS, MEMORY)):
        result = _died(answer) if isinstance(answer, Died) else answer
        if result["kind"] != "ok":
            result |= write_failure(make(seed, indices[k], precision), folder / f"{seed}_{indices[k]}", result["kind"])
        yield {"index": indices[k]} | result


def write_failure(graph: Graph, file: Path, kind: str) -> dict[str, Any]:
    """Write a failing program, shrunk. A difference to OpenVINO's runtime is shrunk with OpenVINO."""
    runtime = kind == "runtime"
    small = shrunk(graph, lambda g: guarded(g, runtime=runtime)["kind"] == kind)
    for name, each in (("whole", graph), ("small", small)):
        xml, blob = ir(each)
        target = file.with_name(f"{file.name}_{name}.xml")
        target.write_bytes(xml)
        target.with_suffix(".bin").write_bytes(blob)
    verdict = guarded(small, runtime=runtime)
    types = [layer.type for layer in small.layers if layer.type not in ("Parameter", "Const")]
    return {"file": str(file), "small": types, "small_words": verdict.get("words", "")}


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    seed, first, stop, step = map(int, sys.argv[1:5])
    for result in serve(seed, range(first, stop, step), float(sys.argv[5]), sys.argv[6], Path(sys.argv[7])):
        print(json.dumps(result), flush=True)
