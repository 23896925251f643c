"""Creation of graph nodes from Python: operations by type and opset, with inferred outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload import graph
from irload.core.element import ElementType, dynamic, string
from irload.core.op import Op, evaluate, infer_outputs
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.inference import Inference
from irload.openvino import adapters, attributes
from irload.openvino.errors import OVTypeError, raising
from irload.openvino.strings import as_strings
from irload.openvino.types import element_of
from irload.ops.registry import resolve

__all__ = [
    "as_input",
    "constant",
    "create",
    "evaluated",
    "infer_node",
    "new_node",
    "parameter",
    "result",
    "unwired",
    "variables",
]

UNCHECKED = frozenset({"BinaryConvolution", "CTCGreedyDecoder", "DeformablePSROIPooling", "Proposal", "RegionYolo"})
"""Operations for which OpenVINO checks neither element types nor channels (axis 1) when it creates a node."""

variables: dict[str, TensorType] = {}
"""The types of the variables that ReadValue nodes created from Python declare."""


@raising
def create(
    type: str,
    opset: str,
    inputs: Sequence[graph.Output] = (),
    given: Mapping[str, Any] | None = None,
    supplied: Mapping[str, Any] | None = None,
) -> graph.Node:
    """A node of an operation with these inputs and attributes. Raises if they do not fit."""
    cls, _ = resolve(attributes.XML_NAMES.get(type, type), opset)
    op, _ = cls.parse(attributes.named(cls, given or {}), **(supplied or {}))
    return new_node(op, inputs)


def new_node(op: Op, inputs: Sequence[graph.Output] = (), name: str = "") -> graph.Node:
    """A node with inferred outputs. Without a name it is named by type and number."""
    node = graph.Node(-1, name, op, list(inputs))
    node.id = adapters.number_of(node)
    node.name = name or unique_name(node)
    node.version = op.opset
    infer_node(node)
    adapters.link([node])
    return node


def unwired(type: str, opset: str, given: Mapping[str, Any]) -> graph.Node:
    """A node without inputs, which gets them later."""
    cls, _ = resolve(attributes.XML_NAMES.get(type, type), opset)
    op, _ = cls.parse(attributes.named(cls, given))
    node = graph.Node(-1, "", op)
    node.id, node.name, node.version = adapters.number_of(node), unique_name(node), op.opset
    node.outputs = [graph.Output(node, 0)]
    adapters.link([node])
    return node


def unique_name(node: graph.Node) -> str:
    """The name by type and number."""
    return f"{attributes.TYPE_NAMES.get(node.type, node.type)}_{adapters.number_of(node)}"


class _Creation(Inference):
    """Inference with only those checks that OpenVINO performs when it creates a node. Compilation performs all."""

    def outputs(self, node: graph.Node, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        try:
            return super().outputs(node, inputs)
        except (ShapeMismatch, TypeMismatch) as error:
            if node.type not in UNCHECKED:
                raise
            untyped = [replace(t, element=dynamic, value=None, bounds=None) for t in inputs]
            given = untyped if isinstance(error, TypeMismatch) else list(map(_without_channels, untyped))
            inferred = super().outputs(node, given)
            return tuple(replace(t, element=inputs[0].element) if t.element is dynamic else t for t in inferred)

    @staticmethod
    def fold(node: graph.Node, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        # A shape that only values determine stays dynamic, except for two operations.
        folds = node.type in ("NonZero", "Unique") or all(t.is_static for t in outputs)
        return Inference.fold(node, inputs, outputs) if folds else tuple(outputs)


def _without_channels(tensor: TensorType) -> TensorType:
    return tensor if tensor.rank is None or tensor.rank < 2 else replace(tensor, shape=tensor.shape.with_dim(1, ANY))


def infer_node(node: graph.Node) -> None:
    """Infer the outputs of a node from the types of its inputs, and create or update them."""
    if node.type == "Result":
        node.outputs = []
        return
    run = _Creation()
    run.variables = variables
    types = run.outputs(node, [source.type for source in node.inputs])
    for k, tensor in enumerate(types):
        if k < len(node.outputs):
            node.outputs[k].type = tensor
        else:
            node.outputs.append(graph.Output(node, k, type=tensor))


def parameter(element: ElementType, shape: Shape, name: str = "") -> graph.Node:
    """A Parameter."""
    return new_node(resolve("Parameter", "opset1")[0](element_type=element, shape=shape), (), name)


def constant(values: Array, element: ElementType, name: str = "") -> graph.Node:
    """A constant of values in irload's storage dtype. The array is referenced, not copied."""
    cls = resolve("Const", "opset1")[0]
    count = int(np.prod(values.shape, dtype=np.int64))
    size = element.bytes_for(count)
    op = cls(element_type=element, shape=Shape(*values.shape), offset=0, size=size, data=lambda: values)
    return new_node(op, (), name)


def as_input(value: Any, user: str = "") -> graph.Output:
    """The output of a node, or of a new constant of numbers or strings. `user`: prefix of the constant's name."""
    if hasattr(value, "_graph_output"):
        return value._graph_output()  # noqa: SLF001
    array = np.asarray(value)
    if array.dtype == object:
        raise OVTypeError(f"an input of an operation is a node, an output, or numbers; found {type(value).__name__}")
    if array.dtype.kind in "US":
        array = as_strings(array)
        node = constant(array, string)
    else:
        node = constant(array, element_of(array.dtype))
    if user:
        node.name = f"{user}/{node.name}"
    return node.outputs[0]


def result(source: graph.Output, name: str = "") -> graph.Node:
    """A Result of an output."""
    return new_node(resolve("Result", "opset1")[0](), [source], name)


def evaluated(op: Op, arrays: Sequence[Array], elements: Sequence[ElementType]) -> list[tuple[Array, ElementType]]:
    """The results of an operation on arrays, with their element types."""
    given = [TensorType(e, Shape(*a.shape), a) for e, a in zip(elements, arrays, strict=True)]
    types = infer_outputs(op, given, Inference())
    results = evaluate(op, arrays, types)
    return [(a, t.element) for a, t in zip(results, types, strict=True)]
