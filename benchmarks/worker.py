"""One peer in a separate process: `python -m benchmarks.worker PEER FOLDER THREADS [once]`.

Without `once` it answers each number N on stdin with a line of JSON, the mean seconds of N inferences.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Run = Callable[[], Any]


def compiled_by_irload(file: Path, threads: int, **options: Any) -> Any:
    """Return irload's compiled model."""
    from irload.diagnostics.config import blas_hint

    if blas_hint():
        os.environ.setdefault("OPENBLAS_CORETYPE", blas_hint() or "")  # before NumPy loads, as in irrun
    from irload import compile_model

    return compile_model(file, threads, **options)


def compiled_by_openvino(file: Path, threads: int, **options: Any) -> Any:
    """Return OpenVINO's compiled model."""
    import openvino as ov

    how = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads}
    return ov.Core().compile_model(str(file), "CPU", {**how, **options})


def irload(folder: Path, threads: int, **options: Any) -> Run:
    compiled = compiled_by_irload(folder / "model.xml", threads, **options)
    values = inputs(folder)
    return lambda: compiled(values)


def openvino(folder: Path, threads: int, **options: Any) -> Run:
    request = compiled_by_openvino(folder / "model.xml", threads, **options).create_infer_request()
    values = inputs(folder)
    return lambda: request.infer(values)


def onnxruntime(folder: Path, threads: int) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    feed = dict(zip([i.name for i in session.get_inputs()], inputs(folder), strict=True))
    return lambda: session.run(None, feed)


def torch(folder: Path, threads: int) -> Run:
    import torch as library

    from benchmarks.peers import build

    library.set_num_threads(threads)
    module, _ = build(folder.name)
    values = [library.from_numpy(v) for v in inputs(folder)]

    def run() -> Any:
        with library.inference_mode():
            return module(*values).numpy()

    return run


def onnx_reference(folder: Path, threads: int) -> Run:
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    from onnx.reference import ReferenceEvaluator

    model = ReferenceEvaluator(str(folder / "model.onnx"))
    feed = dict(zip(model.input_names, inputs(folder), strict=True))
    return lambda: model.run(None, feed)


@dataclass(frozen=True)
class Peer:
    """A way to run models.

    `module`: the package that must be installed. `run`: prepares inferences; its arguments are a folder, the number of
    threads and `options`. `compile`: returns the compiled model of a file; None for peers that do not read IR.
    `baseline`: for a way to run irload, the name of the peer that it is compared with. `in_workloads`: measured in
    workloads with changing shapes. `beside_busy`: measured beside a busy process.
    """

    module: str
    run: Callable[..., Run]
    compile: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    baseline: str = ""
    in_workloads: bool = False
    beside_busy: bool = False


F32 = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0, "KV_CACHE_PRECISION": "f32"}
"""The options of OpenVINO at f32, which must quantize neither activations nor KV caches."""
PEERS: dict[str, Peer] = {
    "NumPy": Peer("numpy", irload, compiled_by_irload, {"jit": False}, "OpenVINO"),
    "jit": Peer("llvmlite", irload, compiled_by_irload, {"jit": True}, "OpenVINO", in_workloads=True, beside_busy=True),
    "OpenVINO": Peer("openvino", openvino, compiled_by_openvino, F32, in_workloads=True, beside_busy=True),
    "jit auto": Peer(
        "llvmlite",
        irload,
        compiled_by_irload,
        {"jit": True, "precision": "auto"},
        "OpenVINO default",
        in_workloads=True,
    ),
    "OpenVINO default": Peer("openvino", openvino, compiled_by_openvino, in_workloads=True),
    "ONNX Runtime": Peer("onnxruntime", onnxruntime),
    "torch": Peer("torch", torch),
    "onnx.reference": Peer("onnx", onnx_reference),
}
"""All peers, by their names in the results."""


def inputs(folder: Path) -> list[Any]:
    """Return the arrays of in_0.npy, in_1.npy …, or input_0.npy … as in this repository, else random ones."""
    import numpy as np

    files = sorted(folder.glob("in_*.npy")) or sorted(folder.glob("input_*.npy")) or sorted(folder.glob("*.npy"))[:1]
    return [np.load(f) for f in files] or random_inputs(folder)


def random_inputs(folder: Path) -> list[Any]:
    """Return seeded inputs of the declared shapes."""
    import numpy as np

    from irload import read_model

    rng = np.random.default_rng(0)
    ports = read_model(folder / "model.xml").inputs
    return [rng.uniform(0, 255, [d.lo for d in p.partial_shape]).astype(p.element_type.dtype) for p in ports]


def first(result: Any) -> Any:
    """Return the first output of any peer."""
    return (
        next(iter(result.values())) if hasattr(result, "values") else result[0] if isinstance(result, list) else result
    )


def main() -> None:
    peer, folder, threads, *once = sys.argv[1:]
    run = PEERS[peer].run(Path(folder), int(threads), **PEERS[peer].options)
    result = first(run())
    if once:
        print(result.ravel()[:8].tolist())
        return
    print(json.dumps(result.ravel()[:64].astype(float).tolist()), flush=True)
    for line in sys.stdin:
        count = int(line)
        start = time.perf_counter()
        for _ in range(count):
            run()
        print(json.dumps((time.perf_counter() - start) / count), flush=True)


if __name__ == "__main__":
    main()
