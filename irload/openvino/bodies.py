"""if_op, loop and tensor_iterator: operations whose bodies are models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import irload.model
from irload import graph
from irload.core.op import Op
from irload.core.subgraph import PortMap, Subgraph
from irload.openvino import adapters, authoring
from irload.openvino.descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    OutputDescription,
    SliceInputDescription,
)
from irload.openvino.errors import OpenVINOError, raising
from irload.openvino.model import Model
from irload.openvino.node import Node, as_output
from irload.openvino.ports import Output
from irload.ops.registry import resolve

__all__ = ["if_op", "loop", "tensor_iterator"]

EMPTY = Subgraph(graph.Graph([], [], [], []), (), ())


class _WithBodies(Node):
    """A node that is wired to its bodies step by step. It infers as soon as the wiring is complete."""

    _type = ""
    _opset = ""
    _names: Sequence[str] = ("body",)
    _models: Mapping[str, Model] = MappingProxyType({})
    """The models that were set as bodies."""

    def _begin(self, inputs: Sequence[Any]) -> None:
        cls, _ = resolve(self._type, self._opset)
        node = graph.Node(-1, "", cls(**dict.fromkeys(self._names, EMPTY)), [as_output(i) for i in inputs])
        node.id = adapters.number_of(node)
        node.version = node.op.opset
        node.name = authoring.unique_name(node)
        adapters.link([node])
        self._adopt(node)

    def _subgraph(self, name: str) -> Subgraph:
        return self._node.op.attributes[name]

    def _body(self, name: str) -> Model:
        if name in self._models:
            return self._models[name]
        body = cast(graph.Graph, self._subgraph(name).body)
        model = irload.model.Model(body.nodes, body.parameters, body.results, body.sinks, body.file)
        return Model._from_graph(model)  # noqa: SLF001

    def _set(self, name: str, **changed: Any) -> None:
        old = self._subgraph(name)
        values = {k: getattr(old, k) for k in ("body", "inputs", "outputs", "back_edges")} | changed
        op = self._node.op
        self._node.op = type(op)(**{**op.attributes, name: Subgraph(**values)})
        adapters.edited()

    def _set_body(self, name: str, body: Model) -> None:
        model = body._graph  # noqa: SLF001
        self._models = {**self._models, name: body}
        self._set(name, body=graph.Graph(model.nodes, model.parameters, model.results, model.sinks, model.file))

    def _add_input(self, value: Any) -> int:
        """Add an input that the value feeds. Returns its index."""
        self._node.inputs.append(as_output(value))
        adapters.link([self._node])
        return len(self._node.inputs) - 1

    def _parameter(self, name: str, parameter: Node) -> int:
        parameters = cast(graph.Graph, self._subgraph(name).body).parameters
        node = parameter._node  # noqa: SLF001
        if node not in parameters:
            raise OpenVINOError(f"{parameter!r} is not a parameter of the body")
        return parameters.index(node)

    def _result(self, name: str, value: Node | Output) -> int:
        results = cast(graph.Graph, self._subgraph(name).body).results
        node = value._node  # noqa: SLF001
        if node in results:
            return results.index(node)
        source = as_output(value)
        for k, result in enumerate(results):
            if result.inputs[0] is source:
                return k
        raise OpenVINOError(f"{value!r} is not a result of the body")

    def _outputs(self, name: str) -> int:
        return sum(line.port is not None for line in self._subgraph(name).outputs)

    @raising
    def validate_and_infer_types(self) -> None:
        """Infer the outputs. Raises if the bodies do not fit the inputs."""
        op = self._node.op
        self._node.op = self._op_to_infer()
        try:
            authoring.infer_node(self._node)
        finally:
            self._node.op = op

    def _infer(self) -> Output:
        self.validate_and_infer_types()
        return self.output(len(self._node.outputs) - 1)

    def _op_to_infer(self) -> Op:
        return self._node.op


class if_op(_WithBodies):  # noqa: N801 - OpenVINO's name
    """A condition with one body for true and one for false."""

    _type, _opset, _names = "If", "opset8", ("then_body", "else_body")

    def __init__(self, execution_condition: Any = None) -> None:
        self._begin([] if execution_condition is None else [execution_condition])

    def set_then_body(self, body: Model) -> None:
        """Set the body for true."""
        self._set_body("then_body", body)

    def set_else_body(self, body: Model) -> None:
        """Set the body for false."""
        self._set_body("else_body", body)

    def get_then_body(self) -> Model:
        """The body for true."""
        return self._body("then_body")

    def get_else_body(self) -> Model:
        """The body for false."""
        return self._body("else_body")

    def get_function(self, index: int) -> Model:
        """A body: 0 for true, 1 for false."""
        return self._body(self._names[index])

    def set_function(self, index: int, func: Model) -> None:
        """Set a body: 0 for true, 1 for false."""
        self._set_body(self._names[index], func)

    def set_input(self, value: Any, then_parameter: Node | None, else_parameter: Node | None) -> None:
        """Feed a parameter of either body, or of both."""
        port = self._add_input(value)
        for name, parameter in zip(self._names, (then_parameter, else_parameter), strict=True):
            if parameter is not None:
                line = PortMap(port, self._parameter(name, parameter))
                self._set(name, inputs=(*self._subgraph(name).inputs, line))

    @raising
    def set_output(self, then_result: Node, else_result: Node) -> Output:
        """Add an output, a result of either body."""
        for name, result in zip(self._names, (then_result, else_result), strict=True):
            line = PortMap(self._outputs(name), self._result(name, result))
            self._set(name, outputs=(*self._subgraph(name).outputs, line))
        return self._infer()

    def get_input_descriptions(self, index: int) -> list[InputDescription]:
        """The inputs of a body."""
        return _inputs(self._subgraph(self._names[index]))

    def get_output_descriptions(self, index: int) -> list[OutputDescription]:
        """The outputs of a body."""
        return _described(self._subgraph(self._names[index]))

    def set_input_descriptions(self, index: int, inputs: Sequence[InputDescription]) -> None:
        """Set the inputs of a body."""
        self._set(self._names[index], inputs=tuple(i.map() for i in inputs))

    def set_output_descriptions(self, index: int, outputs: Sequence[OutputDescription]) -> None:
        """Set the outputs of a body."""
        self._set(self._names[index], outputs=tuple(o.map() for o in outputs))


class _Iterating(_WithBodies):
    """A body that runs once per iteration."""

    def set_function(self, func: Model) -> None:
        """Set the body, a Model that runs in each iteration."""
        self._set_body("body", func)

    def get_function(self) -> Model:
        """The body as a Model."""
        return self._body("body")

    def set_invariant_input(self, body_parameter: Node, value: Any) -> None:
        """Feed a parameter with the same tensor in every iteration."""
        self._map(PortMap(self._add_input(value), self._parameter("body", body_parameter)))

    def set_merged_input(self, body_parameter: Node, initial_value: Any, successive_value: Node | Output) -> None:
        """Feed a parameter with an initial value, then with a result of the body."""
        inner = self._parameter("body", body_parameter)
        self._map(PortMap(self._add_input(initial_value), inner))
        edges = self._subgraph("body").back_edges
        self._set("body", back_edges=(*edges, (self._result("body", successive_value), inner)))

    def set_sliced_input(
        self, parameter: Node, value: Any, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> None:
        """Feed a parameter with the next part of a tensor in every iteration."""
        inner = self._parameter("body", parameter)
        self._map(PortMap(self._add_input(value), inner, axis, start, end, stride, part_size))

    def _map(self, line: PortMap) -> None:
        self._set("body", inputs=(*self._subgraph("body").inputs, line))

    def _op_to_infer(self) -> Op:
        """The operation, in which parameters without an input have their declared types."""
        body, op = self._subgraph("body"), self._node.op
        unfed = set(range(len(cast(graph.Graph, body.body).parameters))) - {line.inner for line in body.inputs}
        inputs = (*body.inputs, *(PortMap(None, inner) for inner in sorted(unfed)))
        subgraph = Subgraph(body.body, inputs, body.outputs, body.back_edges)
        return type(op)(**{**op.attributes, "body": subgraph}) if unfed else op

    @raising
    def get_iter_value(self, body_value: Node | Output, iteration: int = -1) -> Output:
        """Add an output: a result of the last iteration."""
        return self._add_output(PortMap(self._outputs("body"), self._result("body", body_value)))

    @raising
    def get_concatenated_slices(
        self, value: Node | Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> Output:
        """Add an output: the results of all iterations, concatenated."""
        inner = self._result("body", value)
        return self._add_output(PortMap(self._outputs("body"), inner, axis, start, end, stride, part_size))

    def _add_output(self, line: PortMap) -> Output:
        self._set("body", outputs=(*self._subgraph("body").outputs, line))
        return self._infer()

    def get_input_descriptions(self) -> list[InputDescription]:
        """The inputs of the body."""
        return _inputs(self._subgraph("body"))

    def get_output_descriptions(self) -> list[OutputDescription]:
        """The outputs of the body."""
        return _described(self._subgraph("body"))

    def set_input_descriptions(self, inputs: Sequence[InputDescription]) -> None:
        """Set the inputs of the body."""
        special = tuple(line for line in self._subgraph("body").inputs if line.port is None)
        edges = tuple(
            (i.body_value_index, i.body_parameter_index) for i in inputs if isinstance(i, MergedInputDescription)
        )
        self._set("body", inputs=(*(i.map() for i in inputs), *special), back_edges=edges)

    def set_output_descriptions(self, outputs: Sequence[OutputDescription]) -> None:
        """Set the outputs of the body."""
        special = tuple(line for line in self._subgraph("body").outputs if line.port is None)
        self._set("body", outputs=(*(o.map() for o in outputs), *special))


class tensor_iterator(_Iterating):  # noqa: N801 - OpenVINO's name
    """A body that runs for each part of its sliced inputs."""

    _type, _opset = "TensorIterator", "opset1"

    def __init__(self) -> None:
        self._begin([])

    def get_num_iterations(self) -> int:
        """The number of iterations, −1 if it is unknown."""
        count = getattr(self._node.op, "_count", None)
        iterations = None if count is None else count([source.type.shape for source in self._node.inputs])
        return -1 if iterations is None else iterations

    def set_body(self, body: Model) -> None:
        """Set the body; the same as `set_function`."""
        self._set_body("body", body)

    def get_body(self) -> Model:
        """The body; the same as `get_function`."""
        return self._body("body")


class loop(_Iterating):  # noqa: N801 - OpenVINO's name
    """A body that runs until a number of iterations or a condition ends it."""

    _type, _opset = "Loop", "opset5"

    def __init__(self, trip_count: Any = None, execution_condition: Any = None) -> None:
        self._begin([i for i in (trip_count, execution_condition) if i is not None])

    def set_special_body_ports(self, special_body_ports: Sequence[int]) -> None:
        """Set the parameter with the number of the iteration, −1 for none, and the result that is the condition."""
        iteration, condition = special_body_ports
        body = self._subgraph("body")
        inputs = [line for line in body.inputs if line.port is not None]
        outputs = [line for line in body.outputs if line.purpose != "execution_condition"]
        if iteration >= 0:
            inputs.append(PortMap(None, iteration, purpose="current_iteration"))
        outputs.append(PortMap(None, condition, purpose="execution_condition"))
        self._set("body", inputs=tuple(inputs), outputs=tuple(outputs))

    def get_special_body_ports(self) -> list[int]:
        """The parameter with the number of the iteration, and the result that is the condition; −1 for none."""
        body = self._subgraph("body")
        iteration = next((line.inner for line in body.inputs if line.purpose == "current_iteration"), -1)
        return [iteration, next((line.inner for line in body.outputs if line.purpose == "execution_condition"), -1)]

    def get_num_iterations(self) -> int:
        """1 if the body's condition is always false, the trip count if it is always true; −1 if that is unknown."""
        condition = self.get_special_body_ports()[1]
        if not self._node.outputs or condition < 0:
            return -1
        going = cast(graph.Graph, self._subgraph("body").body).results[condition].inputs[0].type.value
        if going is None:
            return -1
        trips = self._node.inputs[0].type.ints
        return 1 if not going.all() else -1 if trips is None else max(trips[0], -1)


def _inputs(subgraph: Subgraph) -> list[InputDescription]:
    merged = {parameter: result for result, parameter in subgraph.back_edges}
    descriptions: list[InputDescription] = []
    for line in subgraph.inputs:
        if line.port is None:
            continue
        if line.axis is not None:
            part = line.start, line.stride, line.part_size, line.end, line.axis
            descriptions.append(SliceInputDescription(line.port, line.inner, *part))
        elif line.inner in merged:
            descriptions.append(MergedInputDescription(line.port, line.inner, merged[line.inner]))
        else:
            descriptions.append(InvariantInputDescription(line.port, line.inner))
    return descriptions


def _described(subgraph: Subgraph) -> list[OutputDescription]:
    descriptions: list[OutputDescription] = []
    for line in subgraph.outputs:
        if line.port is None:
            continue
        if line.axis is not None:
            part = line.start, line.stride, line.part_size, line.end, line.axis
            descriptions.append(ConcatOutputDescription(line.inner, line.port, *part))
        else:
            descriptions.append(BodyOutputDescription(line.inner, line.port))
    return descriptions


adapters.kinds.update({"If": if_op, "Loop": loop, "TensorIterator": tensor_iterator})
