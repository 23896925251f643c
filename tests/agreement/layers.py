"""Compares the types that irload infers for each layer with OpenVINO's, unchanged and with dynamic inputs."""

from __future__ import annotations

from pathlib import Path

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


def compare_relaxed(file: Path) -> tuple[int, list[str]]:
    """Compare the model with dynamic inputs. Returns (layers compared, descriptions of the layers that differ)."""
    compared, differing = 0, list[str]()
    for title, shapes in relaxed_shapes(irload.read_model(file)):
        theirs = core().read_model(file)
        try:
            theirs.reshape({k: ov.PartialShape(str(s)) for k, s in shapes.items()})
        except RuntimeError:
            continue  # OpenVINO cannot represent these shapes
        count, lines = compare_layers(irload.read_model(file).reshape(shapes), theirs)
        compared += count
        differing += [f"{title}: {line}" for line in lines]
    return compared, differing


def compare_layers(model: irload.Model, theirs: ov.Model) -> tuple[int, list[str]]:
    """Compare each layer's outputs. Returns (layers compared, descriptions of the layers that differ)."""
    ours = {n.name: n for n in model.nodes}
    shown = {p.node: p.element_type for p in model.inputs}  # IR v10 declares some types differently
    compared, differing = 0, list[str]()
    for op in theirs.get_ops():
        node = ours.get(op.get_friendly_name())
        if node is None or op.get_type_name() == "Result" or node.type != _written(op.get_type_name()):
            continue
        compared += 1
        outputs = [(o.get_element_type().get_type_name(), shape_of(o.get_partial_shape())) for o in op.outputs()]
        mine = [(shown.get(node, o.type.element).name, o.type.shape) for o in node.outputs][: len(outputs)]
        if mine != outputs[: len(mine)]:
            differing.append(f"{node}: {_text(mine)}, OpenVINO {_text(outputs)}")
    return compared, differing


def _written(kind: str) -> str:
    """A type of OpenVINO as files write it. (OpenVINO gives inserted Converts the names of layers, too.)"""
    return {"Constant": "Const"}.get(kind, kind)


def _text(outputs: list[tuple[str, irload.Shape]]) -> str:
    return ", ".join(f"{element}{shape}" for element, shape in outputs)
