"""A model without its graph: its inputs, outputs and differences, as binding and results need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irload.core.element import element
from irload.core.legacy import as_it_is, v10_input, v10_output
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import DeclaredDiffers, Where
from irload.graph import Node, Output, Port, UnknownOp
from irload.model import Model

Said = Mapping[str, Any]


def described(model: Model) -> Said:
    """A model's ports, all of static shape, its warnings and differences, as JSON."""
    return {
        "version": model.ir_version,
        "inputs": [_described(p) for p in model.inputs],
        "outputs": [_described(p) for p in model.outputs],
        "warnings": _without_file(model),
        "differences": [_of_difference(d) for d in model.differences],
    }


def inputs_of(said: Said) -> list[Port]:
    """The ports of the Parameters."""
    return _ports(said["inputs"], "Parameter", as_it_is if said["version"] > 10 else v10_input)


def outputs_of(said: Said) -> list[Port]:
    """The ports of the Results."""
    return _ports(said["outputs"], "Result", as_it_is if said["version"] > 10 else v10_output)


def differences_of(said: Said, file: str | None) -> list[DeclaredDiffers]:
    """The ports whose declaration differs from the inferred type."""
    return [DeclaredDiffers(d["message"], Where(file, *d["layer"]), d["port"]) for d in said["differences"]]


def warnings_of(said: Said, file: str | None) -> list[str]:
    """The warnings; a warning with a location starts with the name of the file."""
    return [f"{Where(file)}{text}" if is_placed else text for is_placed, text in said["warnings"]]


def _without_file(model: Model) -> list[tuple[bool, str]]:
    name = str(Where(model.file))
    return [(w.startswith(f"{name}:"), w.removeprefix(name) if w.startswith(f"{name}:") else w) for w in model.warnings]


def _of_difference(difference: DeclaredDiffers) -> Said:
    where = difference.where or Where()
    layer = where.line, where.layer_id, where.layer_name, where.layer_type
    return {"message": difference.message, "layer": layer, "port": difference.port}


def _described(port: Port) -> Said:
    node, type = port.node, port.output.type
    return {
        "id": node.id,
        "name": node.name,
        "line": node.line,
        "version": node.version,
        "names": sorted(port.names),
        "element": type.element.name,
        "shape": type.shape.static,
    }


def _ports(said: Sequence[Said], type: str, shown: Any) -> list[Port]:
    found: list[Port] = []
    for k, each in enumerate(said):
        node = Node(each["id"], each["name"], UnknownOp(type, "opset1", {}), line=each["line"], version=each["version"])
        tensor = TensorType(element(each["element"]), Shape(*each["shape"]))
        output = Output(node, 0, frozenset(each["names"]), type=tensor)
        (node.outputs if type == "Parameter" else node.inputs).append(output)
        found.append(Port(node, output, k, output.names, shown))
    return found
