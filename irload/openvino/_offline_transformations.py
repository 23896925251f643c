"""`openvino._offline_transformations`: transformations that libraries call although their name is internal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.element import f32
from irload.openvino import adapters, authoring
from irload.openvino.errors import not_here
from irload.openvino.model import Model
from irload.openvino.node import Node
from irload.openvino.passes.transformations import ConstantFolding, LowLatency2, MakeStateful
from irload.openvino.ports import Output
from irload.openvino.version import get_version
from irload.write.compress import replacements

__all__ = [
    "apply_fused_names_cleanup",
    "apply_low_latency_transformation",
    "apply_make_stateful_transformation",
    "apply_moc_transformations",
    "apply_pruning_transformation",
    "compress_model_transformation",
    "compress_quantize_weights_transformation",
    "convert_sequence_to_tensor_iterator_transformation",
    "get_version",
    "paged_attention_transformation",
    "stateful_to_stateless_transformation",
]


def apply_moc_transformations(model: Model, cf: bool = False, smart_reshape: bool = False) -> None:
    """Fold constants with `cf`, and flush subnormal f32 constants. Compilation does the other simplifications."""
    if cf:
        ConstantFolding().run_on_model(model)
    smallest = np.finfo(np.float32).tiny
    for node in model._graph.nodes:  # noqa: SLF001
        if node.type == "Const" and node.op.attributes["element_type"] is f32:
            values = node.op.attributes["data"]()
            subnormal = (np.abs(values) < smallest) & (values != 0)
            if subnormal.any():
                node.op = authoring.constant(np.where(subnormal, np.float32(0), values), f32).op
                adapters.edited()


def apply_low_latency_transformation(model: Model, use_const_initializer: bool = True) -> None:
    """`passes.LowLatency2`."""
    LowLatency2(use_const_initializer).run_on_model(model)


def apply_make_stateful_transformation(
    model: Model, pairs: Mapping[str, str] | Sequence[tuple[Node, Node]] | None = None, **named: Any
) -> None:
    """`passes.MakeStateful`: `pairs` is a dict of tensor names (param_res_names) or a list (pairs_to_replace)."""
    MakeStateful(pairs if pairs is not None else next(iter(named.values()))).run_on_model(model)


def compress_model_transformation(model: Model) -> None:
    """Convert f32 constants to f16 followed by a Convert, as `save_model` does."""
    for old, pair in replacements(model._graph).items():  # noqa: SLF001
        adapters.link(pair)
        Output(old, 0).replace(adapters.adapter(pair[1]).output(0))


def apply_fused_names_cleanup(model: Model) -> None:
    """Remove the metadata `fused_names` of all nodes. irload itself records no names of fused operations."""
    for node in model.get_ops():
        for key in [key for key in node.rt_info if key.startswith("fused_names")]:
            del node.rt_info[key]


apply_pruning_transformation = not_here("pruning")
compress_quantize_weights_transformation = not_here("compression of the weights of FakeQuantize")
convert_sequence_to_tensor_iterator_transformation = not_here("conversion of sequences to TensorIterator")
paged_attention_transformation = not_here("conversion to paged attention")
stateful_to_stateless_transformation = not_here("conversion of state to inputs and outputs")
