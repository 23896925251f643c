"""Lowerings of LSTMSequence, GRUSequence and RNNSequence."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import RecurrentStep
from irload.plan.lowering.checked import SequenceLengths, checked
from irload.plan.lowering.values import all_f32

_CELLS = {"LSTMSequence": "lstm", "GRUSequence": "gru", "RNNSequence": "rnn"}
_ACTIVATIONS = {
    "lstm": ("sigmoid", "tanh", "tanh"),
    "gru": ("sigmoid", "tanh"),
    "rnn": ("tanh",),
    "rnn_relu": ("relu",),
}
"""The activations of each cell, which are also the defaults of its operation, except for rnn_relu."""
_BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def recurrent(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower sequences with constant weights and the default activations, or RNNSequence with relu."""
    x, *states, lengths, w, r, b = inputs
    cell, attributes = _CELLS[node.type], node.op.attributes
    activations = tuple(a.lower() for a in attributes["activations"])[: len(_ACTIVATIONS[cell])]
    if cell == "rnn" and activations == _ACTIVATIONS["rnn_relu"]:
        cell = "rnn_relu"
    if activations not in ((), _ACTIVATIONS[cell]) or attributes["clip"] > 0:
        return None
    if not all_f32([x, *states, w, r, b, *outputs]) or not all(v.is_constant for v in (w, r, b)):
        return None
    if cell == "gru" and attributes["linear_before_reset"]:
        cell = "gru_linear"
    checks = [] if _all_whole(lengths, x) else [checked(SequenceLengths, lengths, x, node.name)]
    operands = [x, *states, w, r, b, *(step.output for step in checks)]
    backwards = _BACKWARDS[attributes["direction"]]
    return [*checks, RecurrentStep(operands, outputs, cell=cell, backwards=backwards)]


def _all_whole(lengths: Value, x: Value) -> bool:
    """True if all lengths are known to be the length of the data."""
    known = lengths.repeated if lengths.constant is None else lengths.constant
    return known is not None and all(
        length == x.shape[1] for length in known.flat
    )  # NumPy cannot compare symbolic sizes
