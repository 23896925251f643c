"""Matmul and attention."""

from __future__ import annotations

import numpy as np

from irload.graph import Node
from irload.plan.lowering import all_f32, lowers
from irload.plan.program import Step, Value
from irload.plan.steps import Attention, Product


@lowers("MatMul")
def matmul(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """MatMul of two tensors of rank 2 and above."""
    a, b = inputs
    if min(len(a.shape), len(b.shape)) < 2 or not all_f32([*inputs, *outputs]) or not outputs[0].size or not a.size:
        return None
    attributes = node.op.attributes
    return Product(inputs, outputs, transpose_a=attributes["transpose_a"], transpose_b=attributes["transpose_b"])


@lowers("ScaledDotProductAttention")
def attention(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """ScaledDotProductAttention of one head count, masked by addition."""
    q, k, v, *rest = inputs
    if len(rest) > 2 or node.op.attributes["causal"] or not all_f32([q, k, v, *outputs]):
        return None
    if not outputs[0].size or not k.size:
        return None
    lead = q.shape[:-2]
    if k.shape[:-2] != lead or v.shape[:-2] != lead:
        return None
    scale = float(q.shape[-1] ** -0.5)
    if len(rest) > 1:
        if rest[1].constant is None:
            return None
        scale = float(rest[1].constant.reshape(-1)[0])
    mask = [rest[0]] if rest and not _is_no_mask(rest[0]) else []
    if any(m.dtype != np.float32 for m in mask):
        return None
    return Attention([q, k, v, *mask], outputs, scale=scale)


def _is_no_mask(mask: Value) -> bool:
    """A scalar zero stands for no mask."""
    return mask.constant is not None and mask.constant.ndim == 0 and not float(mask.constant)
