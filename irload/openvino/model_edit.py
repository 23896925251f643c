"""Editing of a Model: outputs, parameters, results, sinks and variables added or removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import irload.model
from irload import graph
from irload.openvino import adapters, authoring
from irload.openvino.errors import OpenVINOError
from irload.openvino.node import Node
from irload.openvino.ports import Output

__all__ = ["ModelEdit"]


class ModelEdit:
    """The editing side of a model."""

    _extra: list[Any]

    @property
    def _graph(self) -> irload.model.Model:
        raise NotImplementedError

    def add_outputs(self, outputs: Any) -> list[Output]:
        """Add outputs: tensors by name, outputs of nodes by (name, output index), or Outputs; one or a list.

        An output that the model returns already is not added again. Returns the outputs of the Results.
        """
        if not isinstance(outputs, list):
            return [self._add_output(self._located(outputs, ""))]
        items: list[Any] = outputs
        return [self._add_output(self._located(item, f" at index {k}")) for k, item in enumerate(items)]

    def _located(self, item: Any, position: str) -> graph.Output:
        if isinstance(item, Output):
            return item._source  # noqa: SLF001
        nodes = self._graph.nodes
        if isinstance(item, str):
            output = next((o for n in nodes for o in n.outputs if item in o.names), None)
            if output is None:
                raise OpenVINOError(f"Model::add_output. Tensor name '{item}' was not found.")
            return output
        if isinstance(item, tuple):
            pair: tuple[Any, ...] = item
            if len(pair) != 2:
                raise OpenVINOError(f"an output of a node is (name, index), found {item!r}")
            name, index = pair
            if not isinstance(name, str):
                raise TypeError(f"Incorrect type {type(name)} of a node's name; expected str")
            if not isinstance(index, int):
                raise TypeError(f"Incorrect type {type(index)} of an output's index; expected int")
            node = next((n for n in nodes if n.name == name), None)
            if node is None:
                raise OpenVINOError(f"Model::add_output. Operation with name '{name}' was not found.")
            if not 0 <= index < len(node.outputs):
                raise OpenVINOError(
                    f"Cannot add output {index}: operation {name} has only {len(node.outputs)} outputs."
                )
            return node.outputs[index]
        raise TypeError(
            f"Incorrect type of a value to add as output{position}. Expected str, tuple or Output, found {type(item)}"
        )

    def _add_output(self, source: graph.Output) -> Output:
        model = self._graph
        for node in model.results:
            if node.inputs[0] is source:
                return Output(node, 0)
        result = authoring.result(source)
        if not source.names:
            source.names = result.output_names = frozenset({result.name})
        model.results.append(result)
        adapters.edited()
        return Output(result, 0)

    def add_parameters(self, parameters: Iterable[Node]) -> None:
        """Add Parameters. Raises for one that the model has."""
        self._extend(self._graph.parameters, parameters, "Parameter")

    def add_results(self, results: Iterable[Node]) -> None:
        """Add Results. Raises for one that the model has."""
        self._extend(self._graph.results, results, "Result")

    def add_sinks(self, sinks: Iterable[Node]) -> None:
        """Add Assign nodes."""
        self._extend(self._graph.sinks, sinks, "Assign")

    def add_variables(self, variables: Iterable[Any]) -> None:
        """Add variables that no node reads or assigns yet."""
        known = {v.info.variable_id for v in self._extra}
        self._extra += [v for v in variables if v.info.variable_id not in known]

    def _extend(self, nodes: list[graph.Node], added: Iterable[Node], kind: str) -> None:
        new_nodes = [_node_of(item, kind) for item in added]
        if kind == "Parameter" and (set(new_nodes) & set(nodes) or len(set(new_nodes)) < len(new_nodes)):
            raise OpenVINOError("the model has a parameter that should be added")
        nodes += new_nodes
        adapters.edited()

    def remove_parameter(self, parameter: Node) -> None:
        """Remove a Parameter, if the model has it."""
        _remove(self._graph.parameters, _node_of(parameter, "Parameter"))

    def remove_result(self, result: Node) -> None:
        """Remove a Result, if the model has it."""
        _remove(self._graph.results, _node_of(result, "Result"))

    def remove_sink(self, sink: Any) -> None:
        """Remove an Assign node, if the model has it."""
        _remove(self._graph.sinks, _node_of(sink))

    def remove_variable(self, variable: Any) -> None:
        """Remove a variable that was added. A variable with ReadValue or Assign nodes stays as long as they do."""
        self._extra = [v for v in self._extra if v is not variable]

    def replace_parameter(self, parameter_index: int, parameter: Node) -> None:
        """Replace a Parameter by another, which feeds its consumers."""
        parameters = self._graph.parameters
        if not 0 <= parameter_index < len(parameters):
            raise OpenVINOError(f"there is no parameter {parameter_index}; the model has {len(parameters)}")
        node = _node_of(parameter, "Parameter")
        adapters.adapter(parameters[parameter_index]).output(0).replace(parameter.output(0))
        parameters[parameter_index] = node
        adapters.edited()


def _node_of(item: Any, kind: str = "") -> graph.Node:
    """The node of an adapter. Raises TypeError unless it has this type."""
    node = getattr(item.node if isinstance(item, Output) else item, "_node", None)
    if node is None or (kind and node.type != kind):
        raise TypeError(f"Incorrect type of {item!r}; expected {kind or 'a node'}")
    return node


def _remove(nodes: list[graph.Node], removed: graph.Node) -> None:
    if removed in nodes:
        nodes.remove(removed)
        adapters.edited()
