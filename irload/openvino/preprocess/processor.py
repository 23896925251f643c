"""PrePostProcessor: builds declared steps into a model, as operations that are saved with it."""

from __future__ import annotations

from collections.abc import Sequence

import irload.model
from irload import graph
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import TensorType
from irload.errors import IRError
from irload.openvino import adapters, authoring
from irload.openvino.errors import OpenVINOError, raising
from irload.openvino.keys import first_of
from irload.openvino.layouts import Layout
from irload.openvino.model import Model
from irload.openvino.nodes import layout_of, set_layout_of
from irload.openvino.preprocess.axes import axis_of, permutation, permuted
from irload.openvino.preprocess.formats import PLANES, ColorFormat, plane_shapes
from irload.openvino.preprocess.info import InputInfo, InputTensorInfo, OutputInfo
from irload.openvino.preprocess.state import State
from irload.openvino.preprocess.trace import StepTrace, color_name, data_type
from irload.openvino.reshape import input_of

__all__ = ["PrePostProcessor"]


class PrePostProcessor:
    """Declares how tensors of the user differ from the ports of a model; `build` adds the operations between them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._inputs = {node: InputInfo() for node in model._graph.parameters}  # noqa: SLF001
        self._outputs = {node: OutputInfo() for node in model._graph.results}  # noqa: SLF001

    def input(
        self, key: int | str | None = None, *, input_index: int | None = None, tensor_name: str | None = None
    ) -> InputInfo:
        """An input by index or tensor name; by default the only input."""
        key = first_of(key, input_index, tensor_name)
        if key is None:
            if len(self._inputs) != 1:
                raise OpenVINOError(f"the model has {len(self._inputs)} inputs; select one by index or name")
            key = 0
        if isinstance(key, int) and not 0 <= key < len(self._inputs):
            raise OpenVINOError(f"there is no input {key}; the model has {len(self._inputs)}")
        return self._inputs[input_of(self._model._graph, key)]  # noqa: SLF001

    def output(
        self, key: int | str | None = None, *, output_index: int | None = None, tensor_name: str | None = None
    ) -> OutputInfo:
        """An output by index or tensor name; by default the only output."""
        key = first_of(key, output_index, tensor_name)
        if isinstance(key, int) and not 0 <= key < len(self._outputs):
            raise OpenVINOError(f"there is no output {key}; the model has {len(self._outputs)}")
        return self._outputs[self._model.output(key)._node]  # noqa: SLF001

    @raising
    def build(self) -> Model:
        """Add the operations to the model, and return it. Raises for steps that do not fit."""
        model = self._model._graph  # noqa: SLF001
        for node, info in self._inputs.items():
            _build_input(model, node, info)
        for node, info in self._outputs.items():
            _build_output(node, info)
        adapters.edited()
        irload.model.infer(self._model._graph)  # noqa: SLF001
        return self._model

    def __str__(self) -> str:
        lines: list[str] = []
        trace, titles = StepTrace(), ("Pre-processing steps", "Implicit pre-processing steps")
        try:
            for node, info in self._inputs.items():
                trace = StepTrace()
                _planned_input(node, info, trace)
                lines += trace.lines(*titles)
            titles = ("Post-processing steps", "Post-processing implicit steps")
            for node, info in self._outputs.items():
                trace = StepTrace()
                source = node.inputs[0]
                copy = authoring.parameter(source.type.element, source.type.shape).outputs[0]
                _planned_output(node, copy, info, trace)
                lines += trace.lines(*titles)
        except IRError as error:
            lines += [*trace.lines(*titles), f"Error occurred: {error.message}"]
        return "".join(f"{line}\n" for line in lines)


def _build_input(model: irload.model.Model, node: graph.Node, info: InputInfo) -> None:
    """Replace a Parameter by one or several of the user's tensors, with the steps to the type that it had."""
    old = node.outputs[0]
    state, parameters = _planned_input(node, info, StepTrace())
    if old.type.shape.meet(state.shape) is None:
        raise OpenVINOError(
            f"Resulting shape '{state.shape}' after preprocessing is not aligned with original parameter's shape: "
            f"{old.type.shape}, input parameter: {node.name}"
        )
    _name(parameters, node, info.tensor())
    for user, k in adapters.consumers(node):
        if user.inputs[k] is old and user is not state.output.node:
            adapters.relink(user, k, state.output)
    at = model.parameters.index(node)
    model.parameters[at : at + 1] = parameters


def _planned_input(node: graph.Node, info: InputInfo, trace: StepTrace) -> tuple[State, list[graph.Node]]:
    """The state after the steps between new Parameters and the input of the model, and these Parameters."""
    old = node.outputs[0]
    tensor, expected = info.tensor(), old.type
    model_layout = info.model().layout or layout_of(old)
    implied = model_layout
    for order in reversed(info.preprocess().orders):
        implied = permuted(implied, [order.index(k) for k in range(len(order))])
    tensor_layout = tensor.layout or (Layout("NHWC") if tensor.color is not ColorFormat.UNDEFINED else implied)
    if model_layout.empty and tensor.layout is not None:
        model_layout = _converted(tensor_layout, info.preprocess().layouts)
    shape = _tensor_shape(info, expected.shape, tensor_layout, model_layout)
    element = tensor.element or expected.element
    whole = tensor.shape is not None and tensor.color not in PLANES
    shapes = [shape] if whole else plane_shapes(tensor.color, shape, tensor_layout)
    parameters = [authoring.parameter(element, plane) for plane in shapes]
    for parameter in parameters:
        set_layout_of(parameter.outputs[0], tensor_layout if not tensor_layout.empty else model_layout)
        if tensor.memory_type is not None:
            parameter.outputs[0].rt_info.append({"name": "memory_type", "version": "0", "value": tensor.memory_type})
    state = State(
        [p.outputs[0] for p in parameters], tensor_layout, tensor.color, model_layout, expected.element, expected.shape
    )
    _describe(trace, info.tensor(), min(old.names, default=node.name), parameters, model_layout, expected)
    trace.apply(state, info.preprocess().steps)
    if state.planes[0].type.element is not expected.element:
        trace.apply(
            state, [(f"convert type ({expected.element})", lambda s: s.convert(expected.element))], implied=True
        )
    if not state.layout.empty and not model_layout.empty and state.layout != model_layout:
        trace.apply(state, [(f"convert layout {model_layout}", lambda s: s.convert_layout(model_layout))], implied=True)
    return state, parameters


def _converted(layout: Layout, conversions: Sequence[Layout | list[int]]) -> Layout:
    """The layout after conversions."""
    for conversion in conversions:
        layout = conversion if isinstance(conversion, Layout) else permuted(layout, conversion)
    return layout


def _describe(
    trace: StepTrace,
    tensor: InputTensorInfo,
    name: str,
    parameters: Sequence[graph.Node],
    layout: Layout,
    expected: TensorType,
) -> None:
    """Describe the tensors of the user, and the input of the model with its layout."""
    planes = [
        data_type(p.outputs[0].type.shape, layout_of(p.outputs[0]), p.outputs[0].type.element) for p in parameters
    ]
    color = f" (color {color_name(tensor.color)})" if tensor.color is not ColorFormat.UNDEFINED else ""
    memory = f" memory type={tensor.memory_type}" if tensor.memory_type is not None else ""
    trace.above = [f'Input "{name}"{color}{memory}:']
    if len(planes) == 1:
        trace.above.append(f"    User's input tensor: {planes[0]}")
    else:
        trace.above.append(f"    {len(planes)} user's tensors expected for each plane:")
        names = [f"{name}/{sub} " for sub in tensor.sub_names] or [""] * len(planes)
        trace.above += [f"       {k}: {names[k]}{plane}" for k, plane in enumerate(planes)]
    first = parameters[0].outputs[0]
    trace.above.append(f"    Model's expected tensor: {data_type(expected.shape, layout, expected.element)}")
    trace.declared = bool(color or memory) or not layout.empty or first.type.shape != expected.shape


def _tensor_shape(info: InputInfo, shape: Shape, tensor_layout: Layout, model_layout: Layout) -> Shape:
    """Return the shape of the user's tensor: declared, or the model's shape with axes in the order of the tensor."""
    tensor = info.tensor()
    if tensor.shape is not None:
        shape = tensor.shape
    elif (
        not tensor_layout.empty and not model_layout.empty and shape.rank is not None and tensor_layout != model_layout
    ):
        rank = tensor_layout.rank
        if rank is not None and model_layout.rank is not None and rank < model_layout.rank:
            names = model_layout.names
            shape = Shape(*(shape[names.index(name)] for name in tensor_layout.names))
        else:
            order = permutation(model_layout, tensor_layout, shape.rank)
            shape = Shape(*(shape[k] for k in order)) if order else shape
    elif shape.rank is not None:
        for order in reversed(info.preprocess().orders):
            shape = Shape(*(shape[order.index(k)] for k in range(len(order))))
    if tensor.spatial is not None:
        for name, size, label in zip("HW", tensor.spatial, ("height", "width"), strict=True):
            axis = axis_of(tensor_layout, name, shape, label)
            shape = shape.with_dim(axis, ANY if size is None else Dim(size, size))
    return shape


def _name(parameters: list[graph.Node], old: graph.Node, tensor: InputTensorInfo) -> None:
    """Give the new Parameters the names of the old one, followed by the names of the planes."""
    names = old.outputs[0].names
    old.outputs[0].names = frozenset()
    if len(parameters) == 1 and not tensor.sub_names:
        parameters[0].name, parameters[0].outputs[0].names = old.name, names
        return
    for parameter, suffix in zip(parameters, tensor.sub_names, strict=False):
        parameter.name = f"{old.name}/{suffix}"
        parameter.outputs[0].names = frozenset(f"{name}/{suffix}" for name in names)


def _build_output(node: graph.Node, info: OutputInfo) -> None:
    """Add the steps before a Result."""
    source = node.inputs[0]
    state = _planned_output(node, source, info, StepTrace())
    output = state.output
    if output is not source:
        names = node.output_names if node.output_names is not None else source.names
        source.names = source.names - names
        output.names = output.names | names
        output.node.name = f"{source.node.name}.{source.index}"
        adapters.relink(node, 0, output)
    if not state.layout.empty:
        set_layout_of(output, state.layout)


def _planned_output(node: graph.Node, source: graph.Output, info: OutputInfo, trace: StepTrace) -> State:
    """The state after the steps between an output of the model and the tensor of the user."""
    tensor = info.tensor()
    layout = info.model().layout or layout_of(node.inputs[0])
    state = State([source], layout, target_layout=tensor.layout or Layout())
    state.target_element = tensor.element or source.type.element
    names = node.output_names if node.output_names is not None else node.inputs[0].names
    trace.above = [
        f'Output "{min(names, default=node.name)}":',
        f"    Model's data tensor: {data_type(source.type.shape, layout, source.type.element)}",
    ]
    trace.apply(state, info.postprocess().steps)
    element = tensor.element
    if element is not None and state.output.type.element is not element:
        trace.apply(state, [(f"convert type ({element})", lambda s: s.convert(element))], implied=True)
    target = tensor.layout
    if target is not None and state.layout != target:
        trace.apply(state, [(f"convert layout {target}", lambda s: s.convert_layout(target))], implied=True)
    final = state.output.type
    trace.below = [f"    User's output tensor: {data_type(final.shape, state.layout, final.element)}"]
    return state
