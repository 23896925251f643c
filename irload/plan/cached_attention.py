"""Attention over a key cache: a row whose keys are all masked is the mean of the values, as in OpenVINO's runtime."""

from __future__ import annotations

from copy import copy
from weakref import WeakKeyDictionary

from irload.core.op import Op
from irload.graph import Node
from irload.ops.sequence.attention import ScaledDotProductAttention

_MOVES = {
    "Broadcast",
    "Concat",
    "Convert",
    "Gather",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "StridedSlice",
    "Transpose",
    "Unsqueeze",
    "VariadicSplit",
}
"""Operations through which keys are traced back to a ReadValue."""
_operations: WeakKeyDictionary[Node, Op] = WeakKeyDictionary()


def operation_of(node: Node) -> Op:
    """Return the operation of a node; for attention, a copy whose `averages` is true if the keys are a cache."""
    if not isinstance(node.op, ScaledDotProductAttention):
        return node.op
    known = _operations.get(node)
    if known is None:
        known = copy(node.op)
        known.averages = averages_empty_rows(node)
        _operations[node] = known
    return known


def averages_empty_rows(attention: Node) -> bool:
    """Return True if the keys of an attention contain the value of a variable."""
    keys = attention.inputs[1].node
    pending, seen = [keys], {keys}
    while pending:
        source = pending.pop()
        if source.type == "ReadValue":
            return True
        if source.type in _MOVES:
            pending += [i.node for i in source.inputs if i.node not in seen]
            seen.update(pending)
    return False
