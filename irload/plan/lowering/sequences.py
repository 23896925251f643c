"""Lowerings of LSTMSequence, GRUSequence and RNNSequence."""

from __future__ import annotations

import numpy as np

from irload.core.element import i64
from irload.core.op import Op, Signature
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.graph import Node
from irload.ops.sequence.sequences import require_lengths
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ComputeStep, RecurrentStep
from irload.plan.lowering.values import all_f32

_CELLS = {"LSTMSequence": "lstm", "GRUSequence": "gru", "RNNSequence": "rnn"}
_DEFAULTS = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
_BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class SequenceLengths(Op):
    """The lengths of sequences in i64, after the check that none is longer than the data. It exists only in plans."""

    type = "SequenceLengths"
    namespace = "opset"
    folds = False

    def infer(self, lengths: TensorType, x: TensorType) -> TensorType:
        return TensorType(i64, lengths.shape)

    def compute(self, lengths: Array, x: Array) -> Array:
        require_lengths(lengths, x.shape[1])
        return lengths.astype(np.int64)


SequenceLengths.signature = Signature.of(SequenceLengths)


def recurrent(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower sequences with constant weights and the default activations."""
    x, *states, lengths, w, r, b = inputs
    cell, attributes = _CELLS[node.type], node.op.attributes
    activations = tuple(a.lower() for a in attributes["activations"])[: len(_DEFAULTS[cell])]
    if activations not in ((), _DEFAULTS[cell]) or attributes["clip"] > 0:
        return None
    if not all_f32([x, *states, w, r, b, *outputs]) or not all(v.is_constant for v in (w, r, b)):
        return None
    if cell == "gru" and attributes["linear_before_reset"]:
        cell = "gru_linear"
    checks = [] if _all_whole(lengths, x) else [_check(lengths, x)]
    operands = [x, *states, w, r, b, *(step.output for step in checks)]
    backwards = _BACKWARDS[attributes["direction"]]
    return [*checks, RecurrentStep(operands, outputs, cell=cell, backwards=backwards)]


def _all_whole(lengths: Value, x: Value) -> bool:
    """True if all lengths are known to be the length of the data."""
    known = lengths.repeated if lengths.constant is None else lengths.constant
    return known is not None and all(
        length == x.shape[1] for length in known.flat
    )  # NumPy cannot compare symbolic sizes


def _check(lengths: Value, x: Value) -> ComputeStep:
    """The step that checks lengths."""
    checked = Value(lengths.shape, np.dtype(np.int64), name=lengths.name)
    types = (TensorType(i64, Shape(*lengths.shape)),)
    return ComputeStep([lengths, x], [checked], op=SequenceLengths(), types=types)
