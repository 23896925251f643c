"""Normalization, reductions, MatMul and Einsum, attention, and recurrent sequences."""

from __future__ import annotations

import numpy as np

from models import ir
from tests.plan.graphs import Net
from tests.plan.lowering.nodes import (
    Build,
    attention,
    batch_norm,
    fake_convert,
    mvn,
    of,
    quantize,
    sequence,
    with_constant,
)


def einsum(equation: str, *shapes: tuple[int, ...], weights: bool = False) -> Build:
    """An Einsum of inputs; with `weights`, the last operand is constant."""

    def build(net: Net) -> ir.Ref:
        operands = [net.input(*shape) for shape in (shapes[:-1] if weights else shapes)]
        return net.op(
            "Einsum", *operands, *([net.weights(*shapes[-1])] if weights else []), version="opset7", equation=equation
        )

    return build


def group_norm(*shape: int) -> Build:
    """A GroupNormalization of six channels in three groups."""

    def build(net: Net) -> ir.Ref:
        x, scale, bias = net.input(*shape), net.weights(6), net.weights(6)
        return net.op("GroupNormalization", x, scale, bias, version="opset12", num_groups=3, epsilon=0.01)

    return build


CASES: dict[str, tuple[Build, list[str]]] = {
    "MVN": (mvn((2, 3, 5), [-1]), ["rows"]),
    "MVN of two axes": (mvn((2, 3, 5), [2, 1]), ["rows"]),
    "MVN of all axes": (mvn((2, 3), [0, 1]), ["rows"]),
    "MVN of the first axis": (mvn((2, 3, 5), [0]), ["rows"]),
    "MVN of the outer axes": (mvn((2, 3, 5), [0, 2]), ["rows"]),
    "MVN, mean only": (mvn((2, 3, 5), [1, 2], normalize_variance=False), ["mean of rows", "tiles"]),
    "MVN, mean only, outer axes": (mvn((2, 3, 5), [0, 2], normalize_variance=False), ["compute"]),
    "MVN, eps outside": (mvn((2, 3, 5), [2], eps=0.5, eps_mode="outside_sqrt"), ["rows"]),
    "MVN of opset1": (of("MVN", 2, 3, 4, 5, eps=1e-3, across_channels=False, normalize_variance=True), ["rows"]),
    "MVN of opset1, across channels": (
        of("MVN", 2, 3, 4, eps=1e-3, across_channels=True, normalize_variance=True),
        ["rows"],
    ),
    "MVN of opset1, rank 2": (of("MVN", 2, 3, eps=1e-3, across_channels=False, normalize_variance=True), ["compute"]),
    "MVN of opset2 with axes": (
        of("MVN", 2, 3, 4, version="opset2", eps=1e-3, reduction_axes="2", normalize_variance=True),
        ["rows"],
    ),
    "Einsum of a matmul": (einsum("ij,jk->ik", (3, 4), (4, 5)), ["matmul by columns"]),
    "Einsum with weights, transposed": (
        einsum("bhwc,hkc->bhwk", (2, 3, 4, 5), (3, 6, 5), weights=True),
        ["copy", "batched matmul"],
    ),
    "Einsum of two summed axes": (einsum("ibnd,hnd->ibh", (2, 3, 4, 5), (7, 4, 5)), ["matmul by columns"]),
    "Einsum of rows, columns and batches in any order": (
        einsum("ibnd,jbnd->bnij", (3, 2, 4, 5), (6, 2, 4, 5)),
        ["batched matmul"],
    ),
    "Einsum of weights first": (einsum("hk,bkd->dbh", (3, 4), (2, 4, 5)), ["copy", "matmul by columns"]),
    "Einsum without a sum": (einsum("i,j->ji", (3,), (4,)), ["matmul by columns"]),
    "Einsum with only batch and summed axes": (einsum("bk,bk->b", (3, 4), (3, 4)), ["batched matmul"]),
    "Einsum of one operand": (einsum("ijk->kij", (2, 3, 4)), []),
    "Einsum that sums an axis": (einsum("ijk->ik", (2, 3, 4)), ["compute"]),
    "Einsum that sums an axis of one operand": (einsum("ij,k->k", (2, 3), (4,)), ["compute"]),
    "Einsum of a diagonal": (einsum("ii,ij->j", (3, 3), (3, 4)), ["compute"]),
    "Einsum with an ellipsis": (einsum("...ij,jk->...ik", (2, 3, 4), (4, 5)), ["matmul by columns"]),
    "Einsum with ellipses": (einsum("...iaj,...jab->...bia", (2, 3, 2, 4), (2, 4, 2, 5)), ["batched matmul"]),
    "Einsum of elements": (einsum("...ij,...ji->...ij", (2, 3, 4), (2, 4, 3)), ["compute"]),
    "Einsum that broadcasts": (einsum("ij,jk->ik", (3, 4), (1, 5)), ["compute"]),
    "Einsum of three operands": (einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ["compute"]),
    "LogSoftmax": (
        of("LogSoftmax", 2, 7, version="opset5", axis=-1),
        ["max of rows", "tiles", "tiles", "sum of rows", "tiles"],
    ),
    "LogSoftmax of a middle axis": (
        of("LogSoftmax", 2, 3, 5, version="opset5", axis=1),
        ["max of rows", "tiles", "tiles", "sum of rows", "tiles"],
    ),
    "ReduceL1": (with_constant("ReduceL1", (2, 3, 5), [-1, 0], version="opset4", keep_dims=True), ["compute"]),
    "ReduceL2": (
        with_constant("ReduceL2", (2, 3, 5), [1], version="opset4", keep_dims=False),
        ["tiles", "sum of rows", "tiles"],
    ),
    "ReduceL2 without axes": (
        with_constant("ReduceL2", (2, 3), np.zeros(0, np.int64), version="opset4", keep_dims=False),
        ["compute"],
    ),
    "NormalizeL2": (
        with_constant("NormalizeL2", (2, 3, 5), [1], eps=1e-3, eps_mode="add"),
        ["tiles", "sum of rows", "tiles"],
    ),
    "NormalizeL2, max": (
        with_constant("NormalizeL2", (2, 3, 5), [1, 2], eps=4.0, eps_mode="max"),
        ["tiles", "sum of rows", "tiles"],
    ),
    "SoftMax": (of("SoftMax", 2, 3, 5, axis=2), ["rows"]),
    "SoftMax of a middle axis": (of("SoftMax", 2, 3, 5, axis=1), ["rows, moved"]),
    "SoftMax-8 from the end": (of("SoftMax", 2, 3, 5, axis=-3, version="opset8"), ["rows, moved"]),
    **{
        f"{type} {axes} {keep}": (with_constant(type, (2, 3, 4, 5), list(axes), keep_dims=keep), [f"{kind} of rows"])
        for type, kind in {"ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "max", "ReduceMin": "min"}.items()
        for axes, keep in (((0,), True), ((2, 1), False), ((-1,), False), ((0, 1, 2, 3), False), ((2, 3), True))
    },
    "ReduceMean of non-adjacent axes": (with_constant("ReduceMean", (2, 3, 4), [0, 2], keep_dims=True), ["compute"]),
    "ReduceProd": (with_constant("ReduceProd", (2, 3, 4), [1], keep_dims=True), ["compute"]),
    "GroupNormalization": (group_norm(2, 6, 4, 5), ["groups"]),
    "GroupNormalization of rank 2": (group_norm(2, 6), ["compute"]),
    "BatchNormInference-1": (batch_norm("opset1", (2, 3, 4)), ["tiles"]),
    "BatchNormInference-5": (batch_norm("opset5", (2, 3, 4, 5)), ["tiles"]),
    "BatchNormInference-5 of rank 2": (batch_norm("opset5", (2, 3)), ["tiles"]),
    "BatchNormInference with a negative variance": (batch_norm("opset5", (2, 3), -1.0), ["compute"]),
    **{
        f"FakeConvert to {to}, {'scale and shift' if shift else 'scale'}": (
            fake_convert(to, [[3], [0.5], [200]], *shift),
            ["tiles"],
        )
        for to in ("f8e4m3", "f8e5m2")
        for shift in ([], [[[0], [0.25], [-1]]])
    },
    "FakeQuantize": (quantize(-1, 1, -1, 1, levels=17), ["tiles"]),
    "FakeQuantize, input bounds per channel": (
        quantize([[-1], [0], [-2]], [[1], [2], [3]], -1, 1, levels=17),
        ["tiles"],
    ),
    "FakeQuantize from zero": (quantize(0, 1, 0, 2, levels=5), ["tiles"]),
    "FakeQuantize, output bounds per channel": (
        quantize(-1, 1, [[-1], [0], [-2]], [[1], [2], [3]], levels=9),
        ["tiles"],
    ),
    "FakeQuantize, bounds of a higher rank": (
        quantize([[[[-1]]]], [[[[1]]]], [[[[0]]]], [[[[1]]]], levels=9),
        ["tiles"],
    ),
    "FakeQuantize, equal input bounds": (quantize(0.25, 0.25, -1, 1, levels=2), ["compute"]),
    "FakeQuantize, reversed input bounds": (quantize(1, -1, -1, 1, levels=9), ["compute"]),
    "FakeQuantize, pdpd": (quantize([-1, 0], [1, 2], [-1, -1], [1, 1], levels=9, auto_broadcast="pdpd"), ["compute"]),
    "FakeQuantize, computed bounds": (
        lambda net: net.op(
            "FakeQuantize",
            net.input(2, 3),
            net.constant(np.float32(-1)),
            net.op("Exp", net.input(1)),
            net.constant(np.float32(-1)),
            net.constant(np.float32(1)),
            levels=9,
        ),
        ["tiles", "compute"],
    ),
    "MatMul": (
        with_constant("MatMul", (3, 4), np.ones((4, 2), np.float32), transpose_a=False, transpose_b=False),
        ["matmul by columns"],
    ),
    "MatMul by a vector": (
        with_constant("MatMul", (3, 4), np.ones(4, np.float32), transpose_a=False, transpose_b=False),
        ["compute"],
    ),
    "MatMul of a vector": (
        with_constant("MatMul", (4,), np.ones((4, 2), np.float32), transpose_a=False, transpose_b=False),
        ["compute"],
    ),
    "MatMul with an empty inner axis": (
        with_constant("MatMul", (3, 0), np.ones((0, 2), np.float32), transpose_a=False, transpose_b=False),
        ["compute"],
    ),
    "attention": (attention(), ["head by head"]),
    "attention, causal": (attention(causal=True), ["head by head"]),
    "attention with a mask": (attention(lambda net: net.weights(4, 4)), ["head by head"]),
    "attention with a computed mask": (attention(lambda net: net.input(2, 1, 4, 4)), ["head by head"]),
    "attention with a boolean mask": (attention(lambda net: net.constant(np.tri(4, dtype=bool))), ["head by head"]),
    "attention with a scalar mask": (attention(lambda net: net.constant(np.float32(0))), ["head by head"]),
    "attention with a mask and a scale": (
        attention(lambda net: net.weights(4, 4), lambda net: net.constant(np.float32(0.3))),
        ["head by head"],
    ),
    "attention with a scale of one axis": (
        attention(lambda net: net.weights(4, 4), lambda net: net.constant(np.float32([0.3]))),
        ["head by head"],
    ),
    "attention with a computed scale": (
        attention(lambda net: net.weights(4, 4), lambda net: net.input(1)),
        ["compute"],
    ),
    "LSTMSequence": (sequence("LSTMSequence", 4), ["a matmul, then step by step", "slices"]),
    "LSTMSequence, bidirectional": (
        sequence("LSTMSequence", 4, directions=2),
        ["a matmul, then step by step", "slices"],
    ),
    "GRUSequence": (sequence("GRUSequence", 3, bias=3), ["a matmul, then step by step", "slices"]),
    "GRUSequence, linear_before_reset": (
        sequence("GRUSequence", 3, bias=4, linear_before_reset=True),
        ["a matmul, then step by step", "slices"],
    ),
    "RNNSequence": (sequence("RNNSequence", 1), ["a matmul, then step by step", "slices"]),
    "RNNSequence, explicit tanh": (
        sequence("RNNSequence", 1, activations="tanh"),
        ["a matmul, then step by step", "slices"],
    ),
    "RNNSequence, relu": (
        sequence("RNNSequence", 1, activations="relu"),
        ["a matmul, then step by step", "slices"],
    ),
    "RNNSequence, sigmoid": (sequence("RNNSequence", 1, activations="sigmoid"), ["compute", "slices"]),
    "LSTMSequence, clipped": (sequence("LSTMSequence", 4, clip=0.5), ["compute", "slices"]),
    "LSTMSequence, shorter lengths": (sequence("LSTMSequence", 4, lengths=3), ["compute", "slices"]),
}
