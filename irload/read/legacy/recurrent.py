"""Recurrent cells, sequences and TensorIterator."""

from __future__ import annotations

import numpy as np

from irload.errors import AttributeInvalid, ReadError
from irload.read.legacy.layer import LegacyLayer, Wire
from irload.read.legacy.table import rewrites

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_OPSETS = {"LSTM": "opset4", "GRU": "opset3", "RNN": "opset1"}
_NAMES = ("activations", "activations_alpha", "activations_beta", "clip")


@rewrites("LSTMCell", "GRUCell", "RNNCell")
def cell(layer: LegacyLayer) -> list[Wire]:
    """The cell. The blob has the weights of the input and of the hidden state, concatenated along axis 1."""
    kind = layer.type.removesuffix("Cell")
    hidden = layer.integer("hidden_size")
    rows, length = _GATES[kind] * hidden, layer.input_dims()[-1]
    weights = layer.blob("weights", [rows, length + hidden])
    if weights is None:
        raise ReadError("has no weights")
    axis, lengths = layer.constant("axis", 1), layer.constant("lengths", [length, hidden])
    parts = layer.op("VariadicSplit", weights, axis, lengths, outputs=2, name="split")
    data = {"hidden_size": str(hidden)} | layer.copied(*_NAMES)
    biases_first = layer.flag("linear_before_reset", False) if kind == "GRU" else False
    if biases_first:
        data["linear_before_reset"] = "true"
    shape = [rows + hidden * biases_first]
    biases = layer.blob("biases", shape) or layer.constant("biases", np.zeros(shape), np.float32)
    inputs = [*layer.inputs, parts, Wire(parts.source, 1), biases]
    count = 2 if kind == "LSTM" else 1
    output = layer.op(layer.type, *inputs, data=data, opset=_OPSETS[kind], outputs=count)
    return [Wire(output.source, k) for k in range(count)]


@rewrites("TensorIterator")
def tensor_iterator(layer: LegacyLayer) -> list[Wire]:
    """TensorIterator. Its body has already been rewritten."""
    ports = {port.id: k for k, port in enumerate(layer.raw.inputs)}
    count = len(layer.raw.outputs)
    first = 1 + max((port.id for port in layer.raw.outputs), default=-1)
    output = layer.op("TensorIterator", *layer.inputs, outputs=count)
    operation = layer.operations[-1]
    operation.bodies, operation.maps = layer.raw.bodies, layer.raw.maps
    for line in operation.maps.get("port_map", []):
        if line["tag"] == "input":
            line["external_port_id"] = str(first + _position(line, ports))
    return [Wire(output.source, k) for k in range(count)]


def _position(line: dict[str, str], ports: dict[int, int]) -> int:
    text = line.get("external_port_id", "")
    if not text.isdecimal() or int(text) not in ports:
        raise AttributeInvalid(f"the port map names external port {text[:40]}, which the layer does not have")
    return ports[int(text)]
