"""Changes the batch size of a model, including constants that contain the old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from irload.core.element import i64
from irload.core.shape import Dim, Shape
from irload.core.tensor import TensorType
from irload.edit.draft import Draft
from irload.edit.layouts import batch_axis
from irload.errors import InputInvalid, ShapeMismatch
from irload.graph import Node, Output, Port
from irload.inference import Inference
from irload.model import Model

__all__ = ["set_batch"]


def set_batch(
    model: Model,
    size: Dim | int | tuple[int | None, int | None] | None,
    axes: Mapping[str | int | Port, int] | None = None,
) -> Model:
    """The model for another batch size.

    `size`: the number of samples; None for any number, a pair for bounds. `axes`: the batch axis of each input that has
    one; by default the axis N of inputs with a layout in rt_info, and axis 0 of other inputs of at least two axes.

    Constant targets of Reshapes that contain the old batch size are changed. Tensors of one sample are broadcast if
    they are initial states of recurrent layers, or are concatenated with samples, such as class tokens. Raises
    InputInvalid if no input has a batch or an axis does not exist, ShapeMismatch for a Reshape that mixes the batch
    with other axes, and the error of the first layer that is invalid for the new size.
    """
    draft = Draft(model)
    if axes is None:
        chosen = {p.node: axis for p in draft.model.inputs if (axis := batch_axis(p)) is not None}
    else:
        chosen = {draft.input(key).node: axis for key, axis in axes.items()}
    if not chosen:
        raise InputInvalid("no input has a batch axis; select one, for example axes={'input': 0}")
    change = _Change(draft)
    for node, axis in chosen.items():
        shape = node.outputs[0].type.shape
        if shape.rank is None or not 0 <= axis < shape.rank:
            raise InputInvalid(f"input '{node.name}' has shape {shape}, which has no axis {axis}")
        dims = [Dim.of(size) if k == axis else d for k, d in enumerate(shape)]
        node.op = type(node.op)(**(node.op.attributes | {"shape": Shape(*dims)}))
    for node in list(draft.model.nodes):
        change.infer(node)
    return draft.finished()


_STATES = {"LSTMSequence": 3, "GRUSequence": 2, "RNNSequence": 2, "LSTMCell": 2, "GRUCell": 1, "RNNCell": 1}
"""Type of recurrent layer → k: the first axis of inputs 1 to k is the batch."""


class _Change:
    """Infers the layers for the new size one by one, and changes layers that depend on the old size.

    `old` has the types before; an Output has its new type once its node is inferred.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.old: dict[Output, TensorType] = {o: o.type for n in draft.model.nodes for o in n.outputs}
        self._inference = Inference(limits=draft.model.limits)

    def infer(self, node: Node) -> None:
        """Change the node if required, and infer it."""
        if node.type == "Reshape":
            self._reshape(node)
        elif node.type == "Concat":
            self._concat(node)
        elif node.type in _STATES:
            self._states(node)
        elif node.type == "Assign":
            self._require_room(node)
        self._inference.node(node)
        for output in node.outputs:
            output.type = self._inference.types.get(output, output.type)

    def _axes(self, output: Output) -> list[int]:
        """The axes of a tensor whose sizes have changed."""
        old, new = self.old[output].shape, output.type.shape
        if old.rank is None or old.rank != new.rank:
            return []
        return [k for k, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]

    def _reshape(self, node: Node) -> None:
        """Change the constant target of a Reshape: -1 at the axis that has the batch."""
        data, target = node.inputs
        axes, pattern, old = self._axes(data), target.type.ints, self.old[data].shape
        if not axes or pattern is None or target.node not in self.draft.constant_nodes:
            return
        copied = (-1, 0) if node.op.attributes["special_zero"] else (-1,)
        if axes[0] == 0 and pattern and pattern[0] in copied:
            return
        result = self.old[node.outputs[0]].shape
        at = _axis_after(old.dims[: axes[0]], result) if len(axes) == 1 else None
        fact = f"reshapes {old} to {list(pattern)}"
        if at is None:
            raise ShapeMismatch(f"{fact}, which mixes the batch with other axes", node.where(None))
        copies = node.op.attributes["special_zero"] and at == axes[0]
        if pattern[at] == -1 or (copies and pattern[at] == 0):
            return
        sizes = [d.size if n == -1 and d.is_static else n for n, d in zip(pattern, result, strict=True)]
        if -1 in sizes and not copies:
            raise ShapeMismatch(f"{fact}, whose -1 is unknown; reshape the model first", node.where(None))
        sizes[at] = 0 if -1 in sizes else -1
        node.inputs = [data, self._constant(sizes, f"{node.name}/shape")]

    def _concat(self, node: Node) -> None:
        """Broadcast the inputs of a Concat that have no batch to the batch size of the others."""
        axes = {axis for source in node.inputs for axis in self._axes(source)}
        rank = node.inputs[0].type.rank
        if len(axes) != 1 or rank is None or axes == {node.op.attributes["axis"] % rank}:
            return
        (axis,) = axes
        batched = next(source for source in node.inputs if self._axes(source))
        for k, source in enumerate(node.inputs):
            if not self._axes(source) and source.type.shape[axis] == Dim.of(1):
                node.inputs[k] = self._broadcast(node, source, batched, axis)

    def _states(self, node: Node) -> None:
        """Broadcast the initial states and lengths of a recurrent layer to the batch size of its data."""
        if 0 not in self._axes(node.inputs[0]):
            return
        for k in range(1, min(_STATES[node.type] + 1, len(node.inputs))):
            source = node.inputs[k]
            if not self._axes(source) and source.type.rank and source.type.shape[0] == Dim.of(1):
                node.inputs = [*node.inputs]
                node.inputs[k] = self._broadcast(node, source, node.inputs[0], 0)

    def _broadcast(self, node: Node, source: Output, batched: Output, axis: int) -> Output:
        """A tensor of one sample, repeated for the batch of another tensor."""
        target = self._batch_shape(batched, axis, source.type.rank or 1, node.name)
        wide = self._add("Broadcast", [source, target], f"{node.name}/batch", "opset3", mode="bidirectional")
        self.old[wide] = source.type
        return wide

    def _require_room(self, node: Node) -> None:
        """Raise ShapeMismatch for a variable of fixed size: its initial value would have to change as well."""
        name = node.op.attributes.get("variable_id", "")
        variable, stored = self._inference.variable(name), node.inputs[0].type.shape
        if variable is not None and not variable.shape.contains(stored):
            fact = f"the variable '{name}' has shape {variable.shape}, the value to store {stored}"
            raise ShapeMismatch(f"{fact}; the batch size of a variable cannot be changed", node.where(None))

    def _batch_shape(self, batched: Output, axis: int, rank: int, name: str) -> Output:
        """A shape of ones with the size of the batch at an axis: a constant if the size is known."""
        size = batched.type.shape[axis]
        if size.is_static:
            return self._constant([size.size if k == axis else 1 for k in range(rank)], f"{name}/batch_shape")
        sizes = self._add("ShapeOf", [batched], f"{name}/sizes", "opset3", output_type=i64)
        at, zero = self._constant([axis], f"{name}/axis"), self._constant(0, f"{name}/zero")
        parts = [self._add("Gather", [sizes, at, zero], f"{name}/size", "opset8")]
        if axis:
            parts.insert(0, self._constant([1] * axis, f"{name}/before"))
        if axis < rank - 1:
            parts.append(self._constant([1] * (rank - axis - 1), f"{name}/after"))
        return self._add("Concat", parts, f"{name}/batch_shape", axis=0)

    def _constant(self, values: Sequence[int] | int, name: str) -> Output:
        return self._known(self.draft.constant(np.asarray(values, np.int64), name))

    def _add(
        self, type: str, inputs: Sequence[Output], name: str, opset: str = "opset1", **attributes: object
    ) -> Output:
        return self._known(self.draft.add(type, inputs, name, opset, **attributes).outputs[0])

    def _known(self, output: Output) -> Output:
        """Record the type of a new tensor as both its old and its new type."""
        self._inference.types[output] = self.old[output] = output.type
        return output


def _axis_after(before: Sequence[Dim], result: Shape) -> int | None:
    """The axis k with prod(result[:k]) equal to the product of the dims `before`; None if there is none."""
    if result.rank is None or not all(d.is_static for d in before):
        return None
    count = prod(d.size for d in before)
    for k in range(result.rank):
        if not all(d.is_static for d in result.dims[:k]):
            break
        if prod(d.size for d in result.dims[:k]) == count:
            return k
    return None
