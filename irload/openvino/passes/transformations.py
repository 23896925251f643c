"""Passes on whole models: folding of constants, writing, state, half precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from irload import graph
from irload.core import element as et
from irload.core.shape import Shape
from irload.errors import IRError
from irload.openvino import adapters, authoring
from irload.openvino.attributes import with_attribute
from irload.openvino.bodies import loop, tensor_iterator
from irload.openvino.enums import Choice
from irload.openvino.errors import OpenVINOError, unsupported
from irload.openvino.model import Model
from irload.openvino.node import Node
from irload.openvino.passes.rewriting import ModelPass
from irload.openvino.ports import Output
from irload.openvino.saving import serialize

__all__ = [
    "ConstantFolding",
    "ConvertFP32ToFP16",
    "LowLatency2",
    "MakeStateful",
    "Serialize",
    "Version",
    "VisualizeTree",
]


class Version(Choice):
    """The version of the format."""

    UNSPECIFIED = 0
    IR_V10 = 10
    IR_V11 = 11


class Serialize(ModelPass):
    """Writes the model as IR: `Serialize(path_to_xml, path_to_bin)`."""

    def __init__(self, path_to_xml: Any, path_to_bin: Any = "", version: Any = None) -> None:
        if version is Version.IR_V10 or version == "IR_V10":
            unsupported("writing IR version 10", "write IR_V11")
        if isinstance(version, str) and version not in Version.__members__:
            raise OpenVINOError(f"'{version}' is not a version of IR; known are {', '.join(Version.__members__)}")
        self._paths = Path(path_to_xml), path_to_bin

    def run_on_model(self, model: Model) -> bool:
        """Write the model."""
        serialize(model, *self._paths)
        return False


class VisualizeTree(ModelPass):
    """Not supported: `irrun report` draws models."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse_drawing()


def _refuse_drawing() -> NoReturn:
    unsupported("VisualizeTree", "`irrun report` draws a model as a page")


class ConstantFolding(ModelPass):
    """Replaces nodes whose values are known by constants."""

    def run_on_model(self, model: Model) -> bool:
        """Fold. True if a node was replaced."""
        changed = False
        for node in model._graph.nodes:  # noqa: SLF001
            results = _folded(node)
            if results is None:
                continue
            for output, constant in zip(node.outputs, results, strict=True):
                constant.name = node.name if len(results) == 1 else f"{node.name}.{output.index}"
                Output(node, output.index).replace(adapters.adapter(constant).output(0))
            changed = True
        return changed


def _folded(node: graph.Node) -> list[graph.Node] | None:
    """The constants that replace a node, None if its values are unknown."""
    if node.type in ("Const", "Parameter", "Result") or not node.op.folds or not node.outputs:
        return None
    if all(o.type.value is not None and not o.type.shape.is_dynamic for o in node.outputs):
        return [authoring.constant(np.asarray(o.type.value), o.type.element) for o in node.outputs]
    if not node.inputs or any(source.node.type != "Const" for source in node.inputs):
        return None
    arrays = [source.node.op.attributes["data"]() for source in node.inputs]
    try:
        results = authoring.evaluated(node.op, arrays, [s.type.element for s in node.inputs])
    except IRError:
        return None
    return [authoring.constant(array, element) for array, element in results]


class ConvertFP32ToFP16(ModelPass):
    """Changes f32 constants, inputs and conversions to f16."""

    def run_on_model(self, model: Model) -> bool:
        """Convert. True if a node was changed."""
        changed = False
        for node in model._graph.nodes:  # noqa: SLF001
            op = node.op
            if node.type == "Const" and op.attributes["element_type"] is et.f32:
                values = op.attributes["data"]().astype(np.float16)
                node.op = authoring.constant(values, et.f16).op
            elif node.type == "Parameter" and op.attributes["element_type"] is et.f32:
                node.op = with_attribute(op, "element_type", "f16")
            elif node.type == "Convert" and op.attributes["destination_type"] is et.f32:
                node.op = with_attribute(op, "destination_type", "f16")
            else:
                continue
            changed = True
        if changed:
            adapters.edited()
        return changed


class MakeStateful(ModelPass):
    """Turns pairs of a Parameter and a Result into variables: a list of pairs of nodes, or a dict of tensor names."""

    def __init__(self, pairs_to_replace: Mapping[str, str] | Sequence[tuple[Node, Node]]) -> None:
        self._pairs = pairs_to_replace

    def run_on_model(self, model: Model) -> bool:
        """Replace the pairs."""
        if isinstance(self._pairs, Mapping):
            pairs = [(model.input(a).node, model.output(b).node) for a, b in self._pairs.items()]
        else:
            pairs = [*self._pairs]
        for parameter, result in pairs:
            self._replace(model, parameter._node, result._node)  # noqa: SLF001
        adapters.edited()
        return bool(pairs)

    @staticmethod
    def _replace(model: Model, parameter: graph.Node, result: graph.Node) -> None:
        ir_model = model._graph  # noqa: SLF001
        if parameter not in ir_model.parameters or result not in ir_model.results:
            raise OpenVINOError(f"'{parameter.name}' and '{result.name}' are not an input and an output of the model")
        tensor = parameter.outputs[0].type
        name = f"{parameter.name}{result.name}"
        read = _read(name, tensor.element.name, tensor.shape)
        source = result.inputs[0]
        assign = authoring.create("Assign", "opset6", [source], {"variable_id": name})
        for user, k in adapters.consumers(parameter):
            adapters.relink(user, k, read.outputs[0])
        ir_model.parameters.remove(parameter)
        ir_model.results.remove(result)
        ir_model.sinks.append(assign)


def _read(name: str, element: str, shape: Shape, initial: graph.Output | None = None) -> graph.Node:
    attributes = {"variable_id": name, "variable_type": element, "variable_shape": str(shape).strip("[]")}
    return authoring.create("ReadValue", "opset6", [] if initial is None else [initial], attributes)


class LowLatency2(ModelPass):
    """Keeps the values of the back edges of Loop and TensorIterator between inferences, as variables."""

    def __init__(self, use_const_initializer: bool = True) -> None:
        self._zeros = use_const_initializer

    def run_on_model(self, model: Model) -> bool:
        """Add the variables. True if there are any."""
        changed = False
        for node in model.get_ops():
            if isinstance(node, tensor_iterator | loop):
                changed |= self._add(model, node)
        return changed

    def _add(self, model: Model, node: tensor_iterator | loop) -> bool:
        body = node._node.op.attributes["body"]  # noqa: SLF001
        ports = {line.inner: line.port for line in body.inputs if line.port is not None}
        for result, parameter in body.back_edges:
            k = ports[parameter]
            initial = node.input_value(k)._source  # noqa: SLF001
            tensor = initial.type
            if self._zeros and tensor.shape.is_static:
                zeros = np.zeros(tensor.shape.static, tensor.element.dtype)
                initial = authoring.constant(zeros, tensor.element).outputs[0]
            name = f"{node.friendly_name}/{body.body.parameters[parameter].name}/variable_{k}"
            read = _read(name, tensor.element.name, tensor.shape, initial)
            last = node.get_iter_value(adapters.adapter(body.body.results[result]))
            node.input(k).replace_source_output(adapters.adapter(read).output(0))
            assign = authoring.create("Assign", "opset6", [last._source], {"variable_id": name})  # noqa: SLF001
            model._graph.sinks.append(assign)  # noqa: SLF001
        adapters.edited()
        return bool(body.back_edges)
