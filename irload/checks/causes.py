"""Causes of inferred shapes and types: the inputs or attributes that determine a dimension.

Each input is relaxed in turn: its dims, or its value, become unknown. If less of the result is then known, the input is
a cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.checks.subject import Scope
from irload.core.op import infer_outputs
from irload.core.shape import ANY
from irload.core.tensor import TensorType
from irload.errors import IRError
from irload.graph import Node, UnknownOp
from irload.inference import Inference

GEOMETRY = (
    *("strides", "pads_begin", "pads_end", "dilations", "auto_pad", "kernel", "rounding_type", "output_padding"),
    *("axis", "transpose_a", "transpose_b", "keep_dims", "num_splits", "block_size", "mode", "batch_dims"),
    *("special_zero", "destination_type", "element_type", "shape", "hidden_size", "direction", "output_type"),
)
"""Attributes that determine shapes or types, which causes show beside the inputs."""


def why_shape(scope: Scope, node: Node, output: int, axis: int | None) -> str:
    """The inputs and attributes that determine axis `axis` of an output (None: its rank)."""
    inputs = [scope.type(i) for i in node.inputs]
    if not inputs:
        return _from_attributes(node, ("shape",))
    causes = [
        text
        for k, tensor in enumerate(inputs)
        if (text := _cause(scope, node, inputs, k, tensor, output, axis)) is not None
    ]
    text = "; ".join(causes or [_named(node, k, str(t.without_value())) for k, t in enumerate(inputs[:4])])
    attributes = _from_attributes(node, GEOMETRY)
    return f"{text}; {attributes}" if attributes else text


def why_type(scope: Scope, node: Node) -> str:
    """The inputs or the attribute that determine the element type of an output."""
    cause = _from_attributes(node, ("element_type", "destination_type", "output_type", "index_element_type"))
    if cause or not node.inputs:
        return cause
    return _named(node, 0, f"is of type {scope.type(node.inputs[0]).element}")


def _cause(
    scope: Scope, node: Node, inputs: Sequence[TensorType], k: int, tensor: TensorType, output: int, axis: int | None
) -> str | None:
    if (tensor.value is not None or tensor.bounds is not None) and _matters(
        node, inputs, k, tensor.without_value(), output, axis
    ):
        value = "" if tensor.value is None else f" {_short(tensor.value.ravel().tolist())}"
        return _named(node, k, f"holds{value}" if value else "has known bounds")
    if tensor.rank is None or not tensor.rank:
        return None
    for d in range(tensor.rank):
        relaxed = replace(tensor.without_value(), shape=tensor.shape.with_dim(d, ANY))
        if _matters(node, inputs, k, relaxed, output, axis):
            return _named(node, k, f"{'are' if _plural(node, k) else 'is'} {tensor.shape}")
    return None


def _matters(
    node: Node, inputs: Sequence[TensorType], k: int, relaxed: TensorType, output: int, axis: int | None
) -> bool:
    """True if less of the result is known after input `k` is replaced by `relaxed`."""
    if isinstance(node.op, UnknownOp) or not node.op.folds:
        return False
    changed = [*inputs[:k], relaxed, *inputs[k + 1 :]]
    try:
        was = infer_outputs(node.op, inputs, Inference())[output].shape
        now = infer_outputs(node.op, changed, Inference())[output].shape
    except (IRError, IndexError):
        return False
    if axis is None or now.rank != was.rank:
        return now.rank != was.rank
    return axis < (was.rank or 0) and now[axis] != was[axis]


def _named(node: Node, k: int, text: str) -> str:
    source = node.inputs[k].node
    name = "input" if isinstance(node.op, UnknownOp) else node.op.signature.name(k)
    return f"{name} '{source.name}' (id {source.id}) {text}"


def _plural(node: Node, k: int) -> bool:
    return not isinstance(node.op, UnknownOp) and node.op.signature.name(k).endswith("s")


def _from_attributes(node: Node, names: Sequence[str]) -> str:
    return ", ".join(f'{name}="{node.text[name]}"' for name in names if name in node.text)


def _short(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:8]))
    return f"[{shown}{', …' if len(values) > 8 else ''}]"
