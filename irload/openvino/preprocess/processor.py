"""PrePostProcessor: builds declared steps into a model, as operations that are saved with it."""

from __future__ import annotations

import irload.model
from irload import graph
from irload.core.shape import ANY, Dim, Shape
from irload.openvino import authoring, faces
from irload.openvino.errors import OpenVINOError, raising
from irload.openvino.keys import first_of
from irload.openvino.layouts import Layout
from irload.openvino.model import Model
from irload.openvino.nodes import layout_of, set_layout_of
from irload.openvino.preprocess.axes import axis_of, permutation
from irload.openvino.preprocess.formats import PLANES, ColorFormat, plane_shapes
from irload.openvino.preprocess.info import InputInfo, InputTensorInfo, OutputInfo
from irload.openvino.preprocess.state import State
from irload.openvino.reshape import input_of

__all__ = ["PrePostProcessor"]


class PrePostProcessor:
    """Declares how tensors of the user differ from the ports of a model; `build` adds the operations between them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._inputs = {node: InputInfo() for node in model._graph.parameters}  # pyright: ignore[reportPrivateUsage]
        self._outputs = {node: OutputInfo() for node in model._graph.results}  # pyright: ignore[reportPrivateUsage]

    def input(
        self, key: int | str | None = None, *, input_index: int | None = None, tensor_name: str | None = None
    ) -> InputInfo:
        """An input by index or tensor name; without either the only one."""
        key = first_of(key, input_index, tensor_name)
        if key is None:
            if len(self._inputs) != 1:
                raise OpenVINOError(f"the model has {len(self._inputs)} inputs; select one by index or name")
            key = 0
        if isinstance(key, int) and not 0 <= key < len(self._inputs):
            raise OpenVINOError(f"there is no input {key}; the model has {len(self._inputs)}")
        return self._inputs[input_of(self._model._graph, key)]  # pyright: ignore[reportPrivateUsage]

    def output(
        self, key: int | str | None = None, *, output_index: int | None = None, tensor_name: str | None = None
    ) -> OutputInfo:
        """An output by index or tensor name; without either the only one."""
        key = first_of(key, output_index, tensor_name)
        if isinstance(key, int) and not 0 <= key < len(self._outputs):
            raise OpenVINOError(f"there is no output {key}; the model has {len(self._outputs)}")
        return self._outputs[self._model.output(key)._node]  # pyright: ignore[reportPrivateUsage]

    @raising
    def build(self) -> Model:
        """Add the operations to the model, and return it. Raises for steps that do not fit."""
        model = self._model._graph  # pyright: ignore[reportPrivateUsage]
        for node, info in self._inputs.items():
            _build_input(model, node, info)
        for node, info in self._outputs.items():
            _build_output(node, info)
        faces.edited()
        irload.model.infer(self._model._graph)  # pyright: ignore[reportPrivateUsage]
        return self._model

    def __str__(self) -> str:
        lines: list[str] = []
        for node, info in self._inputs.items():
            tensor = info.tensor()
            name = min(node.outputs[0].names, default=node.name)
            lines.append(f'Input "{name}":')
            lines.append(
                f"    User's input tensor: {tensor.layout or '<no layout>'}, {tensor.element or 'as the model'}"
            )
            lines.append(
                f"    Model's expected tensor: {node.outputs[0].type.shape}, {info.model().layout or '<no layout>'}"
            )
            lines += [f"      {text}" for text, _ in info.preprocess().steps]
        for node, output in self._outputs.items():
            lines.append(f'Output "{min(node.inputs[0].names, default=node.name)}":')
            lines += [f"      {text}" for text, _ in output.postprocess().steps]
        return "\n".join(lines)


def _build_input(model: irload.model.Model, node: graph.Node, info: InputInfo) -> None:
    """Replace a Parameter by one or several of the user's tensors, with the steps to the type that it had."""
    old = node.outputs[0]
    tensor, expected = info.tensor(), old.type
    model_layout = info.model().layout or layout_of(old)
    implied = Layout() if info.preprocess().converts_layout else model_layout
    tensor_layout = tensor.layout or (Layout("NHWC") if tensor.color is not ColorFormat.UNDEFINED else implied)
    shape = _tensor_shape(info, expected.shape, tensor_layout, model_layout)
    element = tensor.element or expected.element
    whole = tensor.shape is not None and tensor.color not in PLANES
    shapes = [shape] if whole else plane_shapes(tensor.color, shape, tensor_layout)
    parameters = [authoring.parameter(element, plane) for plane in shapes]
    _name(parameters, node, tensor)
    for made in parameters:
        set_layout_of(made.outputs[0], tensor_layout if not tensor_layout.empty else model_layout)
    state = State(
        [p.outputs[0] for p in parameters], tensor_layout, tensor.color, model_layout, expected.element, expected.shape
    )
    for _, step in info.preprocess().steps:
        step(state)
    state.convert(expected.element)
    if not state.layout.empty and not model_layout.empty:
        state.convert_layout(model_layout)
    if expected.shape.meet(state.shape) is None:
        raise OpenVINOError(
            f"Resulting shape '{state.shape}' after preprocessing is not aligned with original parameter's shape: "
            f"{expected.shape}, input parameter: {node.name}"
        )
    for user, k in faces.consumers(node):
        if user.inputs[k] is old and user is not state.output.node:
            faces.relink(user, k, state.output)
    at = model.parameters.index(node)
    model.parameters[at : at + 1] = parameters


def _tensor_shape(info: InputInfo, shape: Shape, tensor_layout: Layout, model_layout: Layout) -> Shape:
    """The shape of the user's tensor: as declared, or that of the model with its axes in the order of the tensor."""
    tensor = info.tensor()
    if tensor.shape is not None:
        shape = tensor.shape
    elif not tensor_layout.empty and not model_layout.empty and shape.rank is not None:
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
        for name, size, what in zip("HW", tensor.spatial, ("height", "width"), strict=True):
            axis = axis_of(tensor_layout, name, shape, what)
            shape = shape.with_dim(axis, ANY if size is None else Dim(size, size))
    return shape


def _name(parameters: list[graph.Node], old: graph.Node, tensor: InputTensorInfo) -> None:
    """Give the new Parameters the names of the old one, with the names of the planes behind them."""
    names = old.outputs[0].names
    old.outputs[0].names = frozenset()
    if len(parameters) == 1 and not tensor.sub_names:
        parameters[0].name, parameters[0].outputs[0].names = old.name, names
        return
    for made, suffix in zip(parameters, tensor.sub_names, strict=False):
        made.name = f"{old.name}/{suffix}"
        made.outputs[0].names = frozenset(f"{name}/{suffix}" for name in names)


def _build_output(node: graph.Node, info: OutputInfo) -> None:
    """Add the steps before a Result."""
    source, tensor = node.inputs[0], info.tensor()
    layout = info.model().layout or layout_of(source)
    state = State([source], layout, target_layout=tensor.layout or Layout())
    state.target_element = tensor.element or source.type.element
    for _, step in info.postprocess().steps:
        step(state)
    if tensor.element is not None:
        state.convert(tensor.element)
    if tensor.layout is not None and not state.layout.empty:
        state.convert_layout(tensor.layout)
    elif tensor.layout is not None:
        state.layout = tensor.layout
    made = state.output
    if made is not source:
        names = node.output_names if node.output_names is not None else source.names
        source.names = source.names - names
        made.names = made.names | names
        made.node.name = f"{source.node.name}.{source.index}"
        faces.relink(node, 0, made)
    if not state.layout.empty:
        set_layout_of(made, state.layout)
