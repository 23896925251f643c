"""The description of a model in a cached plan, as JSON: inputs, outputs, warnings and differences, but no graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irload.core.element import element
from irload.core.legacy import as_it_is, v10_input, v10_output
from irload.core.shape import Dim, Shape
from irload.core.tensor import TensorType
from irload.errors import DeclaredDiffers, Where
from irload.graph import Declared, Node, Output, Port, UnknownOp
from irload.model import Model
from irload.runtime.variables import read_nodes

Document = Mapping[str, Any]


def described(model: Model) -> Document:
    """Return the document of a model: its inputs, outputs, warnings and differences."""
    return {
        "version": model.ir_version,
        "inputs": [_described(p) for p in model.inputs],
        "outputs": [_described(p) for p in model.outputs],
        "warnings": _without_file(model),
        "differences": [_of_difference(d) for d in model.differences],
    }


def described_dynamic(model: Model) -> Document:
    """Return the document of a model with dynamic shapes, with the declarations of its Parameters and its variables."""
    return {
        **described(model),
        "declared": [_declaration(port.output.declared) for port in model.inputs],
        "variables": [
            (node.op.attributes["variable_id"], *_type(node.outputs[0].type), model.nodes.index(node))
            for node in read_nodes(model)
        ],
    }


def light_model(document: Document, inputs: Sequence[Port], file: str | None) -> tuple[Model, list[Node]]:
    """Return (model, reads): a model of the Parameters and the ReadValues of the variables, and these ReadValues."""
    from irload.ops.infrastructure.state import ReadValue3  # not needed by plans of static shapes

    for port, declared in zip(inputs, document["declared"], strict=True):
        if declared is not None:
            name, dims, line, number = declared
            kind, sizes = None if name is None else element(name), None if dims is None else tuple(dims)
            port.output.declared = Declared(kind, sizes, line, number)
    reads: list[Node] = []
    for variable, name, shape, number in document["variables"]:
        node = Node(number, variable, ReadValue3(variable_id=variable))
        node.outputs.append(Output(node, 0, type=TensorType(element(name), shape_of(shape))))
        reads.append(node)
    parameters = [port.node for port in inputs]
    return Model([*parameters, *reads], parameters, [], [], file), reads


def inputs_of(document: Document) -> list[Port]:
    """Return the ports of the Parameters."""
    return _ports(document["inputs"], "Parameter", as_it_is if document["version"] > 10 else v10_input)


def outputs_of(document: Document) -> list[Port]:
    """Return the ports of the Results."""
    return _ports(document["outputs"], "Result", as_it_is if document["version"] > 10 else v10_output)


def differences_of(document: Document, file: str | None) -> list[DeclaredDiffers]:
    """Return the differences between declared and inferred types."""
    return [DeclaredDiffers(d["message"], Where(file, *d["layer"]), d["port"]) for d in document["differences"]]


def warnings_of(document: Document, file: str | None) -> list[str]:
    """Return the warnings. A warning with a location starts with the name of the file."""
    return [f"{Where(file)}{text}" if is_placed else text for is_placed, text in document["warnings"]]


def _without_file(model: Model) -> list[tuple[bool, str]]:
    name = str(Where(model.file))
    return [(w.startswith(f"{name}:"), w.removeprefix(name) if w.startswith(f"{name}:") else w) for w in model.warnings]


def _of_difference(difference: DeclaredDiffers) -> Document:
    where = difference.where or Where()
    layer = where.line, where.layer_id, where.layer_name, where.layer_type
    return {"message": difference.message, "layer": layer, "port": difference.port}


def _described(port: Port) -> Document:
    node = port.node
    name, shape = _type(port.output.type)
    return {
        "id": node.id,
        "name": node.name,
        "line": node.line,
        "version": node.version,
        "names": sorted(port.names),
        "element": name,
        "shape": shape,
    }


def _type(tensor: TensorType) -> tuple[str, Sequence[tuple[int, int | None]] | None]:
    shape = tensor.shape
    return tensor.element.name, None if shape.rank is None else [(dim.lo, dim.hi) for dim in shape]


def _declaration(declared: Declared | None) -> Sequence[Any] | None:
    if declared is None:
        return None
    return declared.element and declared.element.name, declared.dims, declared.line, declared.port


def shape_of(document: Sequence[Sequence[int | None]] | None) -> Shape:
    """Return the shape whose dims have these (lower, upper) bounds; the shape of unknown rank for None."""
    return Shape.unranked() if document is None else Shape(*[Dim(lo or 0, hi) for lo, hi in document])


def _ports(document: Sequence[Document], type: str, shown: Any) -> list[Port]:
    ports: list[Port] = []
    for k, each in enumerate(document):
        node = Node(each["id"], each["name"], UnknownOp(type, "opset1", {}), line=each["line"], version=each["version"])
        tensor = TensorType(element(each["element"]), shape_of(each["shape"]))
        output = Output(node, 0, frozenset(each["names"]), type=tensor)
        (node.outputs if type == "Parameter" else node.inputs).append(output)
        ports.append(Port(node, output, k, output.names, shown))
    return ports
