"""Attention whose keys are a cache, in which the runtime averages the values of rows without keys."""

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
"""Operations between a ReadValue and the attention that reads it."""
_operations: WeakKeyDictionary[Node, Op] = WeakKeyDictionary()


def operation_of(node: Node) -> Op:
    """Return the operation of a node; for attention with cached keys, one that averages the values of rows without."""
    if not isinstance(node.op, ScaledDotProductAttention):
        return node.op
    known = _operations.get(node)
    if known is None:
        known = copy(node.op)
        known.averages = averages_empty_rows(node)
        _operations[node] = known
    return known


def averages_empty_rows(attention: Node) -> bool:
    """Return True if the keys contain the value of a variable."""
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
