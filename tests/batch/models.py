"""Small models, each with one property, as XML."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NET = '<net name="m" version="11"><layers>{}</layers><edges>{}</edges></net>'


def _port(dims: str, tag: str = "output", id: int = 0) -> str:
    inner = "".join(f"<dim>{d if d.isdigit() else -1}</dim>" for d in dims.split(",") if d)
    name = ' names="y"' if tag == "output" and id else ""
    return f'<{tag}><port id="{id}" precision="FP32"{name}>{inner}</port></{tag}>'


def unary(
    path: Path, shape: str, type: str, attributes: str = "", out: str | None = None, opset: str = "opset1"
) -> Path:
    """x → one operation of one input → y. `shape` is the shape of x, `out` the shape of y."""
    layers = (
        f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{shape}" element_type="f32"/>'
        f"{_port(shape).replace('<port ', '<port names=' + chr(34) + 'x' + chr(34) + ' ')}</layer>"
        f'<layer id="1" name="op" type="{type}" version="{opset}"><data {attributes}/>{_port(shape, "input")}'
        f"{_port(out or shape, id=1)}</layer>"
        f'<layer id="2" name="r" type="Result" version="opset1">{_port(out or shape, "input")}</layer>'
    )
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    edges += '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
    path.write_text(NET.format(layers, edges))
    return path


def identity(path: Path, **inputs: str) -> Path:
    """A model that returns its inputs, f32, by name and shape."""
    layers, edges = "", ""
    for k, (name, shape) in enumerate(inputs.items()):
        layers += (
            f'<layer id="{k}" name="{name}" type="Parameter" version="opset1">'
            f'<data shape="{shape}" element_type="f32"/>'
            f'<output><port id="0" precision="FP32" names="{name}"/></output></layer>'
            f'<layer id="{100 + k}" name="r{k}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
        )
        edges += f'<edge from-layer="{k}" from-port="0" to-layer="{100 + k}" to-port="0"/>'
    path.write_text(NET.format(layers, edges))
    return path


def fixed(path: Path, count: int) -> Path:
    """x[count,4] → Reshape to [count,4], a constant → y: a model with a fixed number of samples."""
    shape = f"{count},4"
    xml = unary(path, shape, "Reshape", 'special_zero="false"').read_text()
    constant = (
        '<layer id="3" name="shape" type="Const" version="opset1">'
        '<data element_type="i64" shape="2" offset="0" size="16"/>'
        '<output><port id="0" precision="I64"><dim>2</dim></port></output></layer>'
    )
    second = '</port><port id="2" precision="I64"><dim>2</dim></port></input><output>'
    xml = xml.replace('<layer id="1"', f'{constant}<layer id="1"').replace("</port></input><output>", second, 1)
    edge = '<edge from-layer="3" from-port="0" to-layer="1" to-port="2"/>'
    path.write_text(xml.replace("<edges>", f"<edges>{edge}"))
    path.with_suffix(".bin").write_bytes(np.array([count, 4], "<i8").tobytes())
    return path
