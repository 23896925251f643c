"""Small models for tests of plans."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import irload
from irload.model import Model


def convolutions(*channels: int, size: int | str = 24) -> Model:
    """Consecutive 3×3 convolutions of stride 1, each with a ReLU: `channels` from the input to the output."""
    layers = [_layer(0, "x", "Parameter", f'element_type="f32" shape="1,{channels[0]},{size},{size}"', 0)]
    edges: list[str] = []
    blob = b""
    rng = np.random.default_rng(0)
    last = 0
    for k, (c, o) in enumerate(pairwise(channels)):
        weights = rng.standard_normal((o, c, 3, 3)).astype(np.float32) / np.float32(3 * c**0.5)
        where = f'element_type="f32" shape="{o},{c},3,3" offset="{len(blob)}" size="{weights.nbytes}"'
        blob += weights.tobytes()
        pads = 'strides="1,1" pads_begin="1,1" pads_end="1,1" dilations="1,1"'
        first = 3 * k + 1
        layers += [
            _layer(first, f"w{k}", "Const", where, 0),
            _layer(first + 1, f"conv{k}", "Convolution", pads, 2),
            _layer(first + 2, f"relu{k}", "ReLU", "", 1),
        ]
        edges += [_edge(last, first + 1, 0), _edge(first, first + 1, 1), _edge(first + 1, first + 2, 0)]
        last = first + 2
    layers.append(_layer(last + 1, "y", "Result", "", 1))
    edges.append(_edge(last, last + 1, 0))
    text = f'<net name="n" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'
    return irload.read_model(text.encode(), blob)


def _layer(id: int, name: str, type: str, data: str, inputs: int) -> str:
    ports = "".join(f'<port id="{k}" precision="FP32"/>' for k in range(inputs))
    input_text = f"<input>{ports}</input>" if inputs else ""
    ports_text = "" if type == "Result" else f'<output><port id="{inputs}" precision="FP32"/></output>'
    return (
        f'<layer id="{id}" name="{name}" type="{type}" version="opset1"><data {data}/>{input_text}{ports_text}</layer>'
    )


def _edge(source: int, target: int, port: int) -> str:
    from_port = 0 if source % 3 == 1 or source == 0 else 1 if source % 3 == 0 else 2
    return f'<edge from-layer="{source}" from-port="{from_port}" to-layer="{target}" to-port="{port}"/>'
