"""The read side of Model: its inputs, outputs, nodes, variables and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import irload.model
from irload import graph
from irload.openvino import adapters, copies
from irload.openvino.dimensions import PartialShape
from irload.openvino.errors import OpenVINOError
from irload.openvino.keys import first_of, port_named
from irload.openvino.node import Node
from irload.openvino.nodes import Parameter
from irload.openvino.ports import ConstOutput, Output
from irload.openvino.reshape import shape_value
from irload.openvino.rt_info import OVAny, RTMap, plain
from irload.openvino.types import Type
from irload.openvino.variables import Variable, VariableInfo
from irload.openvino.vectors import Shape

__all__ = ["ModelInfo"]


class ModelInfo:
    """The read side of a model."""

    _model: irload.model.Model
    _number: int
    _extra: list[Variable]
    """Variables that were added without nodes that read or assign them."""

    @property
    def _graph(self) -> irload.model.Model:
        raise NotImplementedError

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def friendly_name(self) -> str:
        """The name; assign to rename the model."""
        return self._graph.name or self.name

    @friendly_name.setter
    def friendly_name(self, name: str) -> None:
        self._graph.name = name

    @property
    def name(self) -> str:
        """The unique name."""
        return f"Model{self._number}"

    def get_friendly_name(self) -> str:
        """`friendly_name`."""
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        """Rename the model."""
        self.friendly_name = name

    def get_name(self) -> str:
        """`name`."""
        return self.name

    # -- ports ---------------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[Output]:
        """The outputs of the Parameters."""
        return [Output(n, 0) for n in self._graph.parameters]

    @property
    def outputs(self) -> list[Output]:
        """The outputs of the Results."""
        return [Output(n, 0) for n in self._graph.results]

    def input(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> Output:
        """An input by index or tensor name; by default the only input."""
        return _port(self.inputs, first_of(key, index, tensor_name), "input")

    def output(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> Output:
        """An output by index or tensor name; by default the only output."""
        return _port(self.outputs, first_of(key, index, tensor_name), "output")

    @property
    def parameters(self) -> list[Node]:
        """The Parameter nodes."""
        return [adapters.adapter(n) for n in self._graph.parameters]

    @property
    def results(self) -> list[Node]:
        """The Result nodes."""
        return [adapters.adapter(n) for n in self._graph.results]

    @property
    def sinks(self) -> list[Node]:
        """The Assign nodes."""
        return [adapters.adapter(n) for n in self._graph.sinks]

    @property
    def result(self) -> Node:
        """The only Result."""
        return self.get_result()

    def get_parameters(self) -> list[Node]:
        """`parameters`."""
        return self.parameters

    def get_results(self) -> list[Node]:
        """`results`."""
        return self.results

    def get_sinks(self) -> list[Node]:
        """`sinks`."""
        return self.sinks

    def get_result(self) -> Node:
        """The only Result. Raises if there are several."""
        results = self.results
        if len(results) != 1:
            raise OpenVINOError(f"get_result() must be called on a model with exactly one result, found {len(results)}")
        return results[0]

    def get_output_size(self) -> int:
        """The number of outputs."""
        return len(self._graph.results)

    def get_output_op(self, index: int) -> Node:
        """The Result of an output."""
        return self.results[_position(index, len(self._graph.results), "output")]

    def get_output_element_type(self, index: int) -> Type:
        """The element type of an output."""
        return self.get_output_op(index).output(0).element_type

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """The shape of an output, which may be dynamic."""
        return self.get_output_op(index).output(0).partial_shape

    def get_output_shape(self, index: int) -> Shape:
        """The static shape of an output."""
        return self.get_output_op(index).output(0).shape

    def get_parameter_index(self, parameter: Node) -> int:
        """The position of a Parameter, −1 for one of another model."""
        if not isinstance(parameter, Parameter):
            raise TypeError(f"Incorrect argument type. A Parameter is expected, found {parameter!r}.")
        return _index(self._graph.parameters, parameter)

    def get_result_index(self, value: Node | ConstOutput) -> int:
        """The position of a Result, or of the Result of an output, −1 if there is none."""
        if not isinstance(value, Node | ConstOutput):
            raise TypeError(f"Incorrect argument type. A node or an output is expected, found {value!r}.")
        if isinstance(value, ConstOutput) and value._node.type != "Result":  # noqa: SLF001
            sources = [r.inputs[0] for r in self._graph.results]
            source = value._source  # noqa: SLF001
            return sources.index(source) if source in sources else -1
        return _index(self._graph.results, value.node if isinstance(value, ConstOutput) else value)

    def get_sink_index(self, value: Node | ConstOutput) -> int:
        """The position of a sink, −1 for another node."""
        node = value.node if isinstance(value, ConstOutput) else value
        if not isinstance(node, Node):
            raise TypeError("Incorrect argument type. Sink node is expected as argument.")
        return _index(self._graph.sinks, node)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def get_ordered_ops(self) -> list[Node]:
        """The nodes in topological order."""
        model = self._graph
        ends = [*model.results, *model.sinks, *model.parameters]
        return [adapters.adapter(n) for n in copies.collect(ends[::-1])]  # OpenVINO's order

    def get_ops(self) -> list[Node]:
        """The nodes, Parameters and Results first."""
        model = self._graph
        first = [*model.parameters, *model.results]
        rest = [n for n in reversed(model.nodes) if n.reachable and n.type not in ("Parameter", "Result")]
        return [adapters.adapter(n) for n in (*first, *rest)]

    @property
    def dynamic(self) -> bool:
        """True if some output of a node has a dynamic shape."""
        return any(not o.type.shape.is_static for n in self._graph.nodes if n.reachable for o in n.outputs)

    def is_dynamic(self) -> bool:
        """`dynamic`."""
        return self.dynamic

    # -- variables -----------------------------------------------------------------------------------------------------

    def _reads(self, shapes: Mapping[str, Any]) -> dict[graph.Node, Any]:
        """The new shapes of the ReadValue nodes of variables by id."""
        if any(not isinstance(name, str) for name in shapes):
            wrong = next(name for name in shapes if not isinstance(name, str))
            raise TypeError(f"Incorrect key type {type(wrong)} to reshape a model, expected values as str.")
        reads = {n.op.attributes["variable_id"]: n for n in self._graph.nodes if n.type == "ReadValue"}
        unknown = sorted(shapes.keys() - reads.keys())
        if unknown:
            raise OpenVINOError(
                f"the model has no variable '{unknown[0]}'; it has {', '.join(sorted(reads)) or 'none'}"
            )
        return {reads[name]: shape_value(shape) for name, shape in shapes.items()}

    def get_variables(self) -> list[Variable]:
        """The variables of ReadValue and Assign nodes, then variables that were added."""
        names: dict[str, VariableInfo] = {}
        for node in self._graph.nodes:
            if node.type in ("ReadValue", "Assign"):
                name = node.op.attributes["variable_id"]
                source = node.outputs[0].type if node.outputs else node.inputs[0].type
                if name not in names or node.type == "ReadValue":
                    names[name] = VariableInfo._from_type(name, source)  # noqa: SLF001
        return [*map(Variable, names.values()), *self._extra]

    variables = property(get_variables, doc="The variables.")

    def get_variable_by_id(self, variable_id: str) -> Variable | None:
        """A variable, None if there is none of this id."""
        return next((v for v in self.get_variables() if v.info.variable_id == variable_id), None)

    # -- metadata ------------------------------------------------------------------------------------------------------

    @property
    def rt_info(self) -> RTMap:
        """The metadata of the model."""
        return RTMap(self._graph.rt_info)

    def get_rt_info(self, path: Any = None) -> Any:
        """The metadata, or an entry by key or path of keys. Raises for an entry that does not exist."""
        if path is None:
            return self.rt_info
        entry: Any = self._graph.rt_info
        for key in [path] if isinstance(path, str) else path:
            if not isinstance(entry, dict) or key not in entry:
                # Libraries match this text.
                raise OpenVINOError(
                    f"Cannot get runtime attribute. Path to runtime attribute is incorrect. There is no {path}."
                )
            entry = entry[key]
        return OVAny(entry)

    def has_rt_info(self, path: Any) -> bool:
        """True if the entry exists."""
        try:
            self.get_rt_info(path)
        except OpenVINOError:
            return False
        return True

    def set_rt_info(self, obj: Any, path: Any) -> None:
        """Set an entry by key or path of keys."""
        *outer, last = [path] if isinstance(path, str) else path
        at: Any = self._graph.rt_info
        for key in outer:
            if not isinstance(at.get(key), dict):
                at[key] = {}
            at = at[key]
        at[last] = plain(obj)


def _port(ports: list[Output], key: Any, kind: str) -> Output:
    if key is None:
        if len(ports) != 1:
            raise OpenVINOError(f"{kind}() must be called on a model with exactly one {kind}, found {len(ports)}")
        return ports[0]
    if isinstance(key, str):
        return port_named(ports, key, kind)
    return ports[_position(key, len(ports), kind)]


def _position(index: int, count: int, kind: str) -> int:
    if not 0 <= index < count:
        raise IndexError(f"there is no {kind} {index}; the model has {count}")
    return index


def _index(nodes: list[graph.Node], value: Node) -> int:
    node = value._node  # noqa: SLF001
    return nodes.index(node) if node in nodes else -1
