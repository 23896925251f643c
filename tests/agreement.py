"""Whole models against the real runtime: `python -m tests.agreement DIR…`, a line a model.

Each DIR holds model.xml, model.bin and inputs in_0.npy, in_1.npy, …; with out_0.npy, … the outputs are compared with
those instead of with what OpenVINO computes. Printed: layers whose inferred type and shape were compared and how many
differ, as the file has them and with inputs made dynamic in three ways; the largest output difference relative to the
standard deviation of the output; and the seconds of one run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import openvino as ov

import irload
from tests.harness.runtime import core, shape_of


def relaxed_shapes(model: irload.Model) -> list[tuple[str, dict[int, irload.Shape]]]:
    """Ways to make the inputs of a model dynamic: the first dim any, the first dim bounded, every dim any."""
    inputs = [(k, p.partial_shape) for k, p in enumerate(model.inputs) if p.partial_shape.rank]
    return [
        ("batch any", {k: s.with_dim(0, irload.Dim()) for k, s in inputs}),
        ("batch 1..8", {k: s.with_dim(0, irload.Dim(1, 8)) for k, s in inputs}),
        ("all any", {k: irload.Shape.any(s.rank) for k, s in inputs}),
    ]


def compare_relaxed(folder: Path) -> tuple[int, list[str]]:
    """(layers compared, descriptions of those that differ) on the model with dynamic inputs."""
    compared, differing = 0, []
    for title, shapes in relaxed_shapes(irload.read_model(folder / "model.xml")):
        theirs = core().read_model(folder / "model.xml")
        try:
            theirs.reshape({k: ov.PartialShape(str(s)) for k, s in shapes.items()})
        except RuntimeError:
            continue  # the runtime cannot hold these shapes
        count, found = compare_layers(irload.read_model(folder / "model.xml").reshape(shapes), theirs)
        compared += count
        differing += [f"{title}: {line}" for line in found]
    return compared, differing


def compare_layers(model: irload.Model, theirs: ov.Model) -> tuple[int, list[str]]:
    """(layers compared, descriptions of those that differ)."""
    ours = {n.name: n for n in model.nodes}
    compared, differing = 0, []
    for op in theirs.get_ops():
        node = ours.get(op.get_friendly_name())
        if node is None or op.get_type_name() == "Result":
            continue
        compared += 1
        theirs = [(o.get_element_type().get_type_name(), shape_of(o.get_partial_shape())) for o in op.outputs()]
        mine = [(o.type.element.name, o.type.shape) for o in node.outputs][: len(theirs)]
        if mine != theirs[: len(mine)]:
            differing.append(f"{node}: {mine}, the runtime {theirs}")
    return compared, differing


def compare_outputs(folder: Path) -> tuple[float, float]:
    """(largest |difference| / std of the output, seconds of one run of irload)."""
    given = [np.load(p) for p in sorted(folder.glob("in_*.npy"), key=lambda p: int(p.stem[3:]))]
    stored = sorted(folder.glob("out_*.npy"), key=lambda p: int(p.stem[4:]))
    if stored:
        expected = [np.load(p) for p in stored]
    else:
        # Without the last entry the CPU plugin rounds the activations of compressed models to 8 bits.
        config = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": 2,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        }
        got = core().compile_model(core().read_model(folder / "model.xml"), "CPU", config)(given)
        expected = [np.array(v) for v in got.values()]
    compiled = irload.compile_model(folder / "model.xml")
    start = time.perf_counter()
    result = compiled(given)
    seconds = time.perf_counter() - start
    worst = 0.0
    for mine, theirs in zip(result.values(), expected, strict=True):
        assert mine.shape == theirs.shape, (mine.shape, theirs.shape)
        scale = float(np.std(theirs.astype(np.float64))) or 1.0
        difference = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
        worst = max(worst, float(difference.max()) / scale)
    return worst, seconds


def main(folders: list[str]) -> int:
    """Compare every model; 1 when a layer's shape differs or a model fails."""
    failed = False
    for folder in map(Path, folders):
        try:
            compared, differing = compare_layers(
                irload.read_model(folder / "model.xml"), core().read_model(folder / "model.xml")
            )
            relaxed, differing_relaxed = compare_relaxed(folder)
            worst, seconds = compare_outputs(folder)
        except (irload.IRError, AssertionError) as error:
            print(f"{folder.name:28} {type(error).__name__}: {error}", flush=True)
            failed = True
            continue
        failed |= bool(differing or differing_relaxed)
        print(
            f"{folder.name:28} layers {compared:4} differing {len(differing):3}"
            f"  dynamic {relaxed:4} differing {len(differing_relaxed):3}"
            f"  max diff/std {worst:.2e}  {seconds:6.2f} s"
        )
        for line in [*differing[:5], *differing_relaxed[:5]]:
            print("   ", line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
