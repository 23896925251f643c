"""Small models to inspect: chains of layers, and the same chain as the body of each kind of control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import irload
from models.ir import Graph, Ref

Build = Callable[[Graph, Ref], Ref]
"""Appends layers to a tensor and returns the last."""


def binary(g: Graph, type: str, a: Ref, b: Ref, name: str) -> Ref:
    return g.layer(type, [a, b], [(a.element, a.dims)], name=name, attributes={"auto_broadcast": "numpy"})[0]


def with_constant(g: Graph, type: str, a: Ref, value: Any, name: str) -> Ref:
    """A binary layer whose second input is a constant, of the first one's type, named after the layer."""
    dtype = {"f16": np.float16, "f32": np.float32}[a.element]
    return binary(g, type, a, g.constant(np.asarray(value, dtype), f"{name}_c"), name)


def unary(g: Graph, type: str, a: Ref, name: str) -> Ref:
    return g.layer(type, [a], [(a.element, a.dims)], name=name)[0]


def model(g: Graph, out: Ref, **options: Any) -> irload.Model:
    g.result(out)
    xml = f'<net name="inside" version="11">{g.text()}</net>'
    return irload.read_model(xml.encode(), bytes(g.blob), **options)


def saved(folder: Path, xml_of: Graph, out: Ref) -> Path:
    xml_of.result(out)
    (folder / "model.xml").write_text(f'<net name="inside" version="11">{xml_of.text()}</net>', encoding="utf-8")
    (folder / "model.bin").write_bytes(bytes(xml_of.blob))
    return folder / "model.xml"


def plain(build: Build, element: str, dims: Sequence[int]) -> irload.Model:
    g = Graph()
    return model(g, build(g, g.parameter("x", element, dims)))


def looped(build: Build, element: str, dims: Sequence[int]) -> irload.Model:
    """Four iterations of a Loop named `loop`; the chain's result is the next iteration's input."""
    g = Graph()
    x = g.parameter("x", element, dims)
    body = g.body()
    value = body.parameter("value", element, dims)
    end = body.result(build(body, value), "end")
    condition = body.result(body.constant(np.array(True)), "condition")
    inner = (
        f'<port_map><input external_port_id="2" internal_layer_id="{value.layer}"/>'
        f'<output external_port_id="-1" internal_layer_id="{condition}" purpose="execution_condition"/>'
        f'<output external_port_id="3" internal_layer_id="{end}"/></port_map>'
        f'<back_edges><edge from-layer="{end}" to-layer="{value.layer}"/></back_edges><body>{body.text()}</body>'
    )
    ports = [g.constant(np.array(4)), g.constant(np.array(True)), x]
    return model(g, g.layer("Loop", ports, [(element, dims)], version="opset5", name="loop", inner=inner)[0])


def iterated(build: Build, element: str, dims: Sequence[int]) -> irload.Model:
    """A TensorIterator named `ti` over the rows of the input."""
    g = Graph()
    x = g.parameter("x", element, dims)
    body = g.body()
    row = body.parameter("row", element, [1, *dims[1:]])
    end = body.result(build(body, row), "end")
    inner = (
        f'<port_map><input external_port_id="0" internal_layer_id="{row.layer}" axis="0" start="0" end="-1"/>'
        f'<output external_port_id="1" internal_layer_id="{end}" axis="0" start="0" end="-1"/></port_map>'
        f"<back_edges></back_edges><body>{body.text()}</body>"
    )
    return model(g, g.layer("TensorIterator", [x], [(element, dims)], name="ti", inner=inner)[0])


def branched(build: Build, element: str, dims: Sequence[int]) -> irload.Model:
    """An If named `if` with this then_body."""
    g = Graph()
    x = g.parameter("x", element, dims)
    then, other = g.body(), g.body()
    inside = then.parameter("inside", element, dims)
    first = then.result(build(then, inside), "end")
    second = other.result(other.parameter("inside", element, dims), "end")

    def ports(inner: int, result: int) -> str:
        return (
            f'<input external_port_id="1" internal_layer_id="{inner}"/>'
            f'<output external_port_id="2" internal_layer_id="{result}"/>'
        )

    inner = (
        f"<then_port_map>{ports(inside.layer, first)}</then_port_map><then_body>{then.text()}</then_body>"
        f"<else_port_map>{ports(0, second)}</else_port_map><else_body>{other.text()}</else_body>"
    )
    condition = g.parameter("condition", "boolean", [1])
    return model(g, g.layer("If", [condition, x], [(element, dims)], version="opset8", name="if", inner=inner)[0])
