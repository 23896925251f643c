"""Random cases of recurrent cells and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import pick, random_array

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


def _attributes(rng: Random, kind: str, hidden: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {"hidden_size": hidden}
    if rng.random() < 0.6:
        attributes["activations"] = [pick(rng, ("sigmoid", "tanh", "relu")) for _ in range(ACTIVATIONS[kind])]
    if rng.random() < 0.4:
        attributes["clip"] = float(rng.uniform(0.2, 2))
    if kind == "GRU":
        attributes["linear_before_reset"] = rng.random() < 0.5
    return attributes


def _made(rng: Random, element: et.ElementType, *shape: int) -> Input:
    return param(random_array(rng, shape, element, -1, 1), element)


def _weights(
    rng: Random, element: et.ElementType, kind: str, attributes: dict[str, Any], size: int, *directions: int
) -> list[Input]:
    """W, R and B as constants, which the CPU plugin requires if it unrolls sequences."""
    hidden, rows = attributes["hidden_size"], GATES[kind] * attributes["hidden_size"]
    bias = rows + hidden if attributes.get("linear_before_reset") else rows
    shapes = ((*directions, rows, size), (*directions, rows, hidden), (*directions, bias))
    return [const(random_array(rng, shape, element, -1, 1), element) for shape in shapes]


@cases("RNNCell", "opset1")
@cases("GRUCell", "opset3")
@cases("LSTMCell", "opset4")
def cell(rng: Random, version: str) -> Case:
    kind = {"opset1": "RNN", "opset3": "GRU", "opset4": "LSTM"}[version]
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    batch, size, hidden = (int(n) for n in rng.integers(1, 5, 3))
    attributes = _attributes(rng, kind, hidden)
    states = [_made(rng, element, batch, hidden) for _ in range(2 if kind == "LSTM" else 1)]
    inputs = [_made(rng, element, batch, size), *states, *_weights(rng, element, kind, attributes, size)]
    outputs = len(states)
    return Case(f"{kind}Cell", version, inputs, attributes, outputs=outputs, rtol=1e-4, atol=1e-4)


@cases("LSTMCell", "opset1")
def old_cell(rng: Random, version: str) -> Case:
    element = et.f32
    batch, size, hidden = (int(n) for n in rng.integers(1, 5, 3))
    attributes = _attributes(rng, "LSTM", hidden)
    states = [_made(rng, element, batch, hidden) for _ in range(2)]
    weights = _weights(rng, element, "LSTM", attributes, size)[: int(rng.integers(2, 4))]
    if len(weights) == 3 and rng.random() < 0.4:
        weights.append(const(random_array(rng, (3 * hidden,), element, -1, 1), element))
    if rng.random() < 0.3:
        attributes["weights_format"] = pick(rng, ("fico", "ifco", "ICOF"))
    if rng.random() < 0.4:
        attributes["input_forget"] = pick(rng, (True, False))
    inputs = [_made(rng, element, batch, size), *states, *weights]
    return Case("LSTMCell", version, inputs, attributes, outputs=2, rtol=1e-4, atol=1e-4)


@cases("RNNSequence", "opset5")
def rnn_sequence(rng: Random, version: str) -> Case:
    return _sequence(rng, version, "RNN")


@cases("GRUSequence", "opset5")
def gru_sequence(rng: Random, version: str) -> Case:
    return _sequence(rng, version, "GRU")


@cases("LSTMSequence", "opset5")
def lstm_sequence(rng: Random, version: str) -> Case:
    return _sequence(rng, version, "LSTM")


def _sequence(rng: Random, version: str, kind: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16))
    batch, length, size, hidden = (int(n) for n in rng.integers(1, 5, 4))
    direction = pick(rng, ("forward", "reverse", "bidirectional"))
    directions = 2 if direction == "bidirectional" else 1
    attributes = _attributes(rng, kind, hidden)
    # If they are omitted, OpenVINO reads an empty list and fails; irload uses the specification's defaults.
    attributes.setdefault(
        "activations", {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"]}.get(kind, ["sigmoid", "tanh", "tanh"])
    )
    lengths = rng.integers(0, length + 1, batch) if rng.random() < 0.6 else np.full(batch, length)
    states = [_made(rng, element, batch, directions, hidden) for _ in range(2 if kind == "LSTM" else 1)]
    inputs = [
        _made(rng, element, batch, length, size),
        *states,
        pick(rng, (const, param))(lengths, pick(rng, (et.i32, et.i64))),
        *_weights(rng, element, kind, attributes, size, directions),
    ]
    attributes["direction"] = direction
    return Case(f"{kind}Sequence", version, inputs, attributes, outputs=1 + len(states), rtol=1e-4, atol=1e-4)
