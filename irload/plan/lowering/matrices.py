"""Lowerings of MatMul, of the products of experts, and of ScaledDotProductAttention."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.cached_attention import averages_empty_rows
from irload.plan.ir.expert_sums import sum_experts
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import AttentionStep, ExpertMatMulStep, ExpertOrderStep, MatMulStep
from irload.plan.lowering.values import all_f32


def matmul(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a MatMul of two tensors of rank 2 or more."""
    a, b = inputs
    if min(len(a.shape), len(b.shape)) < 2 or not all_f32([*inputs, *outputs]):
        return None
    attributes = node.op.attributes
    return MatMulStep(inputs, outputs, transpose_a=attributes["transpose_a"], transpose_b=attributes["transpose_b"])


def expert_matmul(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower the products of experts with constant weights."""
    if not all_f32([inputs[0], *inputs[2:], *outputs]) or not all(w.is_constant for w in inputs[2:]):
        return None
    return ExpertMatMulStep(inputs, outputs, transpose=node.op.attributes["transpose"])


def expert_order(node: Node, inputs: list[Value], outputs: list[Value]) -> Step:
    """Lower the order of rows by expert."""
    return ExpertOrderStep(inputs, outputs)


def expert_sum(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower the weighted sums of the results of experts."""
    results, positions, weights = inputs
    return sum_experts(results, positions, weights, *outputs) if all_f32([results, weights]) else None


def attention(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower ScaledDotProductAttention with a constant scale, over at least one feature."""
    q, k, v, *rest = inputs
    sink = rest[2:]
    if not all_f32([q, k, v, *sink, *outputs]) or not q.shape[-1]:
        return None
    scale = float(q.shape[-1] ** -0.5)
    if len(rest) > 1:
        if rest[1].constant is None:
            return None
        scale = float(rest[1].constant.reshape(-1)[0])
    causal = bool(node.op.attributes["causal"])
    mask = [m for m in rest[:1] if m.shape and not causal]  # a scalar means no mask
    if any(m.dtype.name not in ("float32", "bool") for m in mask):
        return None
    inputs = [q, k, v, *mask, *sink]
    return AttentionStep(
        inputs,
        outputs,
        scale=1.0,
        query_scale=scale,
        causal=causal,
        has_sink=bool(sink),
        averages=averages_empty_rows(node),
    )
