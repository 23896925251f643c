"""`python -m benchmarks.prepare DIR NAME`: writes an architecture as ONNX, as IR of the same weights, and an input."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import openvino as ov
import torch

from benchmarks.peers import build


def prepare(folder: Path, name: str) -> None:
    """Create the missing files."""
    if (folder / "model.xml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    module, example = build(name)
    np.save(folder / "in_0.npy", example.numpy())
    with torch.no_grad():
        program = torch.onnx.export(module, (example,), dynamo=True, opset_version=18, verbose=False)
    program.save(str(folder / "model.onnx"), external_data=True)
    ov.save_model(ov.convert_model(folder / "model.onnx"), folder / "model.xml", compress_to_fp16=True)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), sys.argv[2])
