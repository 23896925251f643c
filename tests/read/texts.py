"""Small IR texts for the tests of the reader: a ReLU between a Parameter and a Result, and pieces to edit it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov

import irload
from irload.errors import IRError
from irload.model import Model
from irload.read import read_graph
from tests.harness.runtime import core, shape_of

PARAMETER = (
    '<layer id="0" name="in" type="Parameter" version="opset1"><data shape="1,3" element_type="f32"/>'
    '<output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>3</dim></port></output></layer>'
)
RELU = (
    '<layer id="1" name="relu" type="ReLU" version="opset1"><input><port id="0" precision="FP32"><dim>1</dim>'
    '<dim>3</dim></port></input><output><port id="1" precision="FP32" names="y"><dim>1</dim><dim>3</dim></port>'
    "</output></layer>"
)
RESULT = '<layer id="2" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>'
EDGES = (
    '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
)


def net(layers: str = PARAMETER + RELU + RESULT, edges: str = EDGES, tail: str = "", version: str = "11") -> str:
    """The text of a file."""
    return (
        f'<?xml version="1.0"?><net name="m" version="{version}"><layers>{layers}</layers>'
        f"<edges>{edges}</edges>{tail}</net>"
    )


BASE = net()


def changed(old: str, new: str, text: str = BASE) -> str:
    """A text with one piece replaced; raises if the piece does not occur."""
    assert old in text, old
    return text.replace(old, new, 1)


def const_net(data: str, precision: str = "FP32", extra: str = "") -> str:
    """A file that returns one constant."""
    const = (
        f'<layer id="0" name="c" type="Const" version="opset1"><data {data}/>'
        f'<output><port id="0" precision="{precision}"/></output></layer>'
    )
    return net(const + RESULT + extra, '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>')


@dataclass(frozen=True)
class Interface:
    """The public interface of a model: names, shape and type of each input and output."""

    inputs: list[tuple[set[str], str, str]]
    outputs: list[tuple[set[str], str, str]]


def ours(text: str | bytes, weights: bytes = b"") -> Interface:
    """The interface in irload."""
    model = irload.read_model(text if isinstance(text, bytes) else text.encode(), weights)
    ports = [
        [(set(p.names), str(p.partial_shape), p.element_type.name) for p in side]
        for side in (model.inputs, model.outputs)
    ]
    return Interface(*ports)


def theirs(text: str | bytes, weights: bytes = b"") -> Interface:
    """The interface in OpenVINO. Raises RuntimeError if it rejects the text."""
    model = runtime_model(text, weights)
    ports = [
        [(set(p.names), str(shape_of(p.get_partial_shape())), p.get_element_type().get_type_name()) for p in side]
        for side in (model.inputs, model.outputs)
    ]
    return Interface(*ports)


def runtime_model(text: str | bytes, weights: bytes = b"") -> Any:
    """OpenVINO's model."""
    xml = text if isinstance(text, bytes) else text.encode()
    return core().read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))


def faults(text: str | bytes, weights: bytes | None = b"") -> tuple[Model, list[str]]:
    """The model as far as it can be read, and every fault of the file."""
    errors: list[IRError] = []
    model = read_graph(text if isinstance(text, bytes) else text.encode(), weights, errors.append)
    return model, [str(e) for e in errors]
