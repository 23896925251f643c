"""Writes the int8 digits of docs/tutorials/debug-a-conversion.md: `python docs/hunt/make.py [FOLDER]`.

FakeQuantize quantizes the input of every convolution and matmul to 256 levels, and its weights to 255 per channel.
Ranges are measured on some images, except for the mistake: conv1 has the range of conv0's input.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import irload
from irload.core.element import f32
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.graph import Node, Output, topological
from irload.ops.registry import resolve

HERE = Path(__file__).parent
DIGITS = HERE.parents[1] / "models" / "digits"
INPUTS = {"conv0": "scaled", "conv1": "pool0", "dense": "flat"}
"""The quantized layers, and the tensor that feeds each."""


def ranges(model: irload.Model) -> dict[str, float]:
    """The greatest value of each of these tensors over the images; the least is 0, because ReLUs compute them."""
    compiled = irload.compile_model(model)
    found = dict.fromkeys(INPUTS.values(), 0.0)
    for image in sorted(DIGITS.glob("digit_*.npy")):
        for name, array in compiled.intermediates(np.load(image), layers=list(found)):
            found[name] = max(found[name], round(float(array.max()), 3))
    return found


def constant(name: str, value: np.ndarray) -> Node:
    """A constant of f32."""
    value = value.astype(np.float32)
    kind, shape = resolve("Const", "opset1")[0], Shape(*value.shape)
    node = Node(-1, name, kind(element_type=f32, shape=shape, offset=0, size=value.nbytes, data=lambda: value))
    node.outputs = [Output(node, 0, type=TensorType(f32, shape))]
    return node


def quantized(source: Output, name: str, low: np.ndarray, high: np.ndarray, levels: int) -> list[Node]:
    """Constants and the FakeQuantize of a tensor, which is the last."""
    ends = [constant(f"{name}/low", low), constant(f"{name}/high", high)]
    kind = resolve("FakeQuantize", "opset1")[0]
    node = Node(-1, name, kind(levels=levels), [source, *(e.outputs[0] for e in (*ends, *ends))])
    node.outputs = [Output(node, 0, type=source.type)]
    return [*ends, node]


def int8(model: irload.Model, wide: dict[str, float]) -> irload.Model:
    """The model with FakeQuantize; `wide` has the upper end of the range of each input."""
    made: list[Node] = []
    for node in [n for n in model.nodes if n.name in INPUTS]:
        data, weights = node.inputs
        values = weights.node.op.attributes["data"]()
        span = np.abs(values).max(axis=tuple(range(1, values.ndim)), keepdims=True)
        end = np.array(wide[node.name])
        made += quantized(data, f"{node.name}/fq_input", np.zeros_like(end), end, 256)
        node.inputs[0] = made[-1].outputs[0]
        made += quantized(weights, f"{node.name}/fq_weights", -span, span, 255)
        node.inputs[1] = made[-1].outputs[0]
    model.nodes = topological([*model.nodes, *made])
    for node in made:
        node.reachable = True
    model.name = "digits_int8"
    return irload.infer(model)


def make(folder: Path) -> None:
    """Write the model with its mistake."""
    found = ranges(irload.read_model(DIGITS / "model.xml"))
    wide = {layer: found[source] for layer, source in INPUTS.items()}
    wide["conv1"] = wide["conv0"]  # the mistake
    irload.save_model(int8(irload.read_model(DIGITS / "model.xml"), wide), folder / "digits_int8.xml")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
