"""Model: a graph with inputs, outputs and metadata, as scripts for OpenVINO read, reshape and edit it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import irload.model
from irload import graph
from irload.errors import IRError
from irload.openvino import adapters, authoring, copies
from irload.openvino.errors import OpenVINOError, raising
from irload.openvino.model_edit import ModelEdit
from irload.openvino.model_info import ModelInfo
from irload.openvino.node import Node, as_output
from irload.openvino.nodes import Result
from irload.openvino.reshape import shapes_by_parameter
from irload.openvino.tensors import Tensor
from irload.openvino.variables import Variable

__all__ = ["Model"]


class Model(ModelEdit, ModelInfo):
    """A model: `Model(results, parameters, name)`, `Model(results, sinks, parameters, name)`, or from `read_model`.

    Results are nodes, outputs, or Result nodes; a single one may be passed without a list.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        if len(given) == 1 and isinstance(given[0], Model):
            self._wrap(copies.clone(given[0]._graph))  # noqa: SLF001
            return
        results, sinks, parameters, name = _parts(given, named)
        self._wrap(_built(results, sinks, parameters, name))

    @classmethod
    def _from_graph(cls, model: irload.model.Model) -> Self:
        wrapper = cls.__new__(cls)
        wrapper._wrap(model)  # noqa: SLF001
        return wrapper

    def _wrap(self, model: irload.model.Model) -> None:
        self._model = model
        self._seen = -1
        self._linked = False
        self._extra = []
        self._number = adapters.number_of(graph.Node(-1, "", _NOTHING))

    @property
    def _graph(self) -> irload.model.Model:
        """irload's model, with the nodes that edits have connected, without disconnected nodes."""
        if self._model is None:
            raise AttributeError("the model is no longer accessible after its `with` statement")
        if self._seen != adapters.edits():
            self._collect()
        return self._model

    def _collect(self) -> None:
        model = self._model
        if not self._linked:
            adapters.link(model.nodes)
            self._linked = True
        unused = [n for n in model.nodes if not n.reachable]
        nodes = copies.collect([*model.parameters, *model.results, *model.sinks])
        present = set(nodes)
        nodes += [n for n in unused if n not in present]
        if set(nodes) != set(model.nodes) or graph.topological(model.nodes) != model.nodes:
            model.nodes = nodes
            model.inferred = None
            adapters.link(nodes)
        self._seen = adapters.edits()

    # -- copies --------------------------------------------------------------------------------------------------------

    def clone(self) -> Model:
        """A copy that can be edited independently. Constants are shared."""
        return Model._from_graph(copies.clone(self._graph))

    def __copy__(self) -> Model:
        raise TypeError("Cannot copy 'openvino.Model'. Please, use deepcopy instead.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.clone()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self._model = None  # pyrefly: ignore[bad-assignment]

    # -- shapes --------------------------------------------------------------------------------------------------------

    @raising
    def reshape(self, partial_shape: Any, variables_shapes: Mapping[str, Any] | None = None) -> None:
        """Give inputs other shapes and infer the model again.

        One shape for a model of one input, or a dict by name, index or port. A shape is a PartialShape, a list, a tuple
        or a text. `variables_shapes`: shapes of variables by id. The model is unchanged if that fails.
        """
        model = self._graph
        shapes = shapes_by_parameter(model, partial_shape)
        reads = self._reads(variables_shapes or {})
        before = {node: node.op for node in (*shapes, *reads)}
        try:
            for node, shape in shapes.items():
                node.op = type(node.op)(**{**node.op.attributes, "shape": shape})
            for node, shape in reads.items():
                node.op = type(node.op)(**{**node.op.attributes, "variable_shape": shape})
            irload.model.infer(model)
        except BaseException:
            for node, op in before.items():
                node.op = op
            irload.model.infer(model)
            raise

    @raising
    def validate_nodes_and_infer_types(self) -> None:
        """Infer the types and shapes of all nodes. Raises for the first that its inputs do not fit."""
        irload.model.infer(self._graph)

    @raising
    def evaluate(self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], context: Any = None) -> bool:
        """Compute the outputs for these inputs, each operation by its reference implementation. Returns True."""
        from irload.runtime.compiled_model import CompiledModel

        compiled = CompiledModel(copies.clone(self._graph), optimize=False)
        if len(output_tensors) < len(compiled.outputs):
            raise IndexError(f"the model has {len(compiled.outputs)} outputs, found {len(output_tensors)} tensors")
        given = [tensor._element for tensor in input_tensors]  # noqa: SLF001
        if given != (expected := [port.element_type for port in compiled.inputs]):
            raise OpenVINOError(f"Cannot evaluate model! It takes tensors of {expected}, found {given}")
        try:
            results = compiled([tensor._value() for tensor in input_tensors])  # noqa: SLF001
        except IRError as error:
            raise OpenVINOError(f"Cannot evaluate model! {error}") from error
        for k, tensor in enumerate(output_tensors[: len(compiled.outputs)]):
            result = Tensor._from_array(results[k], compiled.outputs[k].element_type)  # noqa: SLF001
            tensor.copy_from(result)
        return True

    def _get_raw_address(self) -> int:
        return id(self._model)

    def __repr__(self) -> str:
        def listed(ports: Iterable[Any]) -> str:
            return ",\n".join(f"<ConstOutput{repr(p)[len('<Output') :]}" for p in ports)

        return (
            f"<Model: '{self.friendly_name}'\ninputs[\n{listed(self.inputs)}\n]\noutputs[\n{listed(self.outputs)}\n]>"
        )


class _Nothing(authoring.Op):
    """Stands for the model in the numbering of nodes."""

    type = "Model"


_NOTHING = _Nothing()


def _parts(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any], str]:
    """Results, sinks, parameters and the name, from the arguments of Model."""
    rest = [*given]
    name = named.get("name", "")
    if rest and isinstance(rest[-1], str):
        name = rest.pop()
    if rest and _is_list(rest[-1]) and len(rest) > 2 and rest[-1] and isinstance(rest[-1][0], Variable):
        rest.pop()
    results = rest.pop(0) if rest else named.get("results", named.get("result", []))
    if "parameters" in named:
        parameters, sinks = named["parameters"], rest[0] if rest else named.get("sinks", [])
    elif len(rest) == 1:
        parameters, sinks = rest[0], named.get("sinks", [])
    elif len(rest) >= 2:
        sinks, parameters = rest[0], rest[1]
    else:
        parameters, sinks = [], []
    if not _is_list(parameters) or not _is_list(sinks):
        raise TypeError("Model() takes results, optional sinks, and parameters as lists")
    return (list(results) if _is_list(results) else [results]), list(sinks), list(parameters), name


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _built(results: list[Any], sinks: list[Any], parameters: list[Any], name: str) -> irload.model.Model:
    ends = [_result(item) for r in results for item in (r.outputs() if _has_outputs(r) else [r])]
    assigns = [_graph_node(sink) for sink in sinks]
    inputs = [_graph_node(p) for p in parameters]
    nodes = copies.collect([*inputs, *ends, *assigns])
    missing = [n for n in nodes if n.type == "Parameter" and n not in inputs]
    if missing:
        raise OpenVINOError(f"Model references undeclared parameters: {', '.join(n.name for n in missing)}")
    if any(n.type != "Parameter" for n in inputs):
        raise TypeError("the parameters of a Model are Parameter nodes")
    model = irload.model.Model(nodes, inputs, ends, assigns, name=name)
    for node in inputs:
        if not node.outputs[0].names:
            node.outputs[0].names = frozenset({node.name})
    for node in ends:
        if node.output_names is None and not node.inputs[0].names:
            node.output_names = frozenset({node.name})
            node.inputs[0].names = node.output_names
    return model


def _has_outputs(result: Any) -> bool:
    return isinstance(result, Node) and not isinstance(result, Result)


def _result(item: Any) -> graph.Node:
    if isinstance(item, Result):
        return item._node  # noqa: SLF001
    return authoring.result(as_output(item))


def _graph_node(item: Any) -> graph.Node:
    node = getattr(item, "_node", None)
    if not isinstance(node, graph.Node):
        raise TypeError(f"expected a node, found {type(item).__name__}")
    return node
