"""Stores weights in fewer bits: f16, bf16, or integers of 8 or 4 bits with scales."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np

from irload.core import element as et
from irload.core.tensor import Array
from irload.edit.chain import Chain
from irload.edit.draft import Draft
from irload.edit.layers import Layers
from irload.edit.quantization import MODES, Mode, quantized
from irload.edit.weights import WeightConstant, weights_of
from irload.errors import InputInvalid
from irload.graph import Output
from irload.model import Model
from irload.write.compress import Shorten, bfloats, halves, is_compressed, replacements

__all__ = ["FORMATS", "convert"]

SHORT = {"fp16": halves, "bf16": bfloats}
"""The formats of 16 bits, with the functions that round constants."""
ALIASES = {"int8": "int8_asym", "int4": "int4_sym"}
FORMATS = (*SHORT, *ALIASES, *MODES)
GROUPED = tuple(name for name in (*ALIASES, *MODES) if MODES[ALIASES.get(name, name)].element.bits < 8)
"""The formats with a scale per group of weights, to which `group_size` and `all_layers` apply."""
BACKUP = MODES["int8_asym"]
"""The mode of weights that need 8 bits even in 4-bit formats, or whose size is not a multiple of the group size."""

LEAST = 8
"""Minimum number of elements that share a scale. Quantizing fewer, such as frequencies, only loses precision."""


def convert(model: Model, format: str, *, group_size: int | None = 128, all_layers: bool = False) -> Model:
    """The model with weights in fewer bits, and layers that restore them, a form that OpenVINO's runtime supports.

    `format` is one of:
    - "fp16", "bf16": the constants that OpenVINO's `save_model` selects are stored in 16 bits. A quantized model is
      unchanged.
    - "int8_asym" (or "int8"), "int8_sym": the weights of matrix products, convolutions and embeddings are stored in 8
      bits with one scale per output channel, as by NNCF's `compress_weights` without data.
    - "int4_sym" (or "int4"), "int4_asym": the same weights are stored in 4 bits, with one scale per `group_size`
      elements of a channel, or per channel if that is None. Convolutions, embeddings, the last matrix product and
      weights that the group size does not divide get 8 bits (int8_asym); with `all_layers=True`, embeddings and the
      last product get 4 bits.

    Compressed weights and weights that would not become smaller are unchanged. Raises InputInvalid for an unknown
    format or group size, and the errors of reading weights.
    """
    draft = Draft(model)
    mode = MODES.get(ALIASES.get(format, format))
    if mode is not None:
        if group_size is not None and group_size < 1:
            raise InputInvalid(f"group_size must be positive, or None for one scale per channel, found {group_size}")
        _quantize(draft, mode, group_size, all_layers=all_layers)
    elif format in SHORT:
        _shorten(draft.model, SHORT[format])
    else:
        raise InputInvalid(f"format must be one of {', '.join(FORMATS)}, found '{format}'")
    return draft.finished()


def _shorten(model: Model, shorten: Shorten) -> None:
    """Store the constants of all graphs in 16 bits."""
    for graph in () if is_compressed(model) else list(model.walk()):
        replaced = replacements(graph, shorten)
        graph.nodes = [n for node in graph.nodes for n in replaced.get(node, (node,))]
        moved = {node.outputs[0]: pair[1].outputs[0] for node, pair in replaced.items()}
        for node in graph.nodes:
            node.inputs = [moved.get(i, i) for i in node.inputs]


def _quantize(draft: Draft, mode: Mode, group_size: int | None, *, all_layers: bool) -> None:
    """Store the weights of all graphs as integers."""
    for layers in draft.all_layers():
        every = weights_of(layers.graph)
        last = next((w for w in reversed(every) if layers is draft and "MatMul" in w.kinds), None)
        moved: dict[Output, Output] = {}
        for weights in every:
            precise = not all_layers and ("Gather" in weights.kinds or weights is last)
            chosen, size = _choice(weights, mode, group_size, precise=precise)
            shape = weights.constant.outputs[0].type.shape.static
            shared = prod(shape[k] for k in weights.axes) if size is None else size
            if shared >= LEAST and _is_smaller(weights, chosen, shared):
                moved[weights.output] = _restored(layers, weights, chosen, size)
        layers.rewire(moved)


def _choice(weights: WeightConstant, mode: Mode, group_size: int | None, *, precise: bool) -> tuple[Mode, int | None]:
    """The mode for weights, and the size of groups, None for one scale per channel."""
    if mode.element.bits == 8:
        return mode, None
    size = weights.constant.outputs[0].type.shape[weights.axes[0]].size
    if precise or not weights.kinds <= {"MatMul", "Gather"} or size % (group_size or size):
        return BACKUP, None
    return mode, group_size


def _is_smaller(weights: WeightConstant, mode: Mode, shared: int) -> bool:
    """True if codes, scales and zero points take fewer bits than the constant."""
    factors = 16 + (0 if mode.symmetric else mode.element.bits)
    return mode.element.bits + factors / shared < weights.constant.outputs[0].type.element.bits


def _restored(layers: Layers, weights: WeightConstant, mode: Mode, group_size: int | None) -> Output:
    """Add the quantized weights, and the layers that restore them. Returns the restored tensor."""
    values = cast(Array, weights.constant.op.compute())
    shape, axes, final = values.shape, weights.axes, weights.output
    if group_size is not None:
        (axis,) = axes
        values = values.reshape(*shape[:axis], -1, group_size, *shape[axis + 1 :])
        axes = (axis + 1,)
    compressed = quantized(values, mode, axes)
    name = f"{final.node.name}_compressed"
    codes = layers.constant(compressed.codes, name, mode.element)
    chain = Chain(layers, codes)
    chain.add("Convert", "convert", destination_type=et.f16)
    if compressed.zero_point is not None:
        zero = Chain(layers, layers.constant(compressed.zero_point, f"{name}/zero_point", mode.element))
        zero.add("Convert", "convert", destination_type=et.f16)
        chain.join("Subtract", "subtract_zero_point", zero.end)
    chain.join("Multiply", "multiply_scale", layers.constant(compressed.scale, f"{name}/scale"))
    if group_size is not None:
        chain.add("Reshape", "reshape", np.array(shape, np.int64), special_zero=False)
    if final.type.element is not et.f16:
        chain.add("Convert", "restore", destination_type=final.type.element)
        chain.end.node.rt_info = [{"name": "decompression", "version": "0"}]
    chain.end.names, final.names = final.names, frozenset()
    return chain.end
