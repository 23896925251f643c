"""Divides the layers after values of unknown size into groups whose shapes depend on different values.

A mixture of experts selects the rows of each expert by NonZero, multiplies them, and adds the products to a sum of
known shape. A common plan of all experts would depend on the combination of their row counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from irload.core.tensor import UNKNOWN, TensorType
from irload.graph import Node, Output

MULTIPLYING = frozenset({"Convolution", "GRUSequence", "GroupConvolution", "LSTMSequence", "MatMul", "RNNSequence"})
"""Operations that compute products, which are worth a separate plan."""
Sources = frozenset[Node]
"""The layers whose values determine a shape."""


def islands(nodes: Sequence[Node], types: Mapping[Output, TensorType]) -> list[list[Node]]:
    """Return the nodes in groups that run sequentially. `nodes` must be in topological order.

    The shapes of all products of a group depend on the same values, or on none. Nodes that prepare operands of products
    are in the same group, and nodes after all products in the last group.
    """
    keys = _sources(nodes, types)
    groups: list[list[Node]] = []
    waiting: list[Node] = []
    last: Sources | None = None
    for key, members in _in_turns(nodes, keys):
        waiting += members
        if any(node.type in MULTIPLYING for node in members):
            if key != last:
                groups.append([])
            groups[-1] += waiting
            waiting, last = [], key
    if not groups:
        return [waiting]
    groups[-1] += waiting
    return groups


def _sources(nodes: Sequence[Node], types: Mapping[Output, TensorType]) -> dict[Node, Sources]:
    """Return the sources on which the shapes of the inputs of each node depend."""
    keys: dict[Node, Sources] = {}
    of_output: dict[Output, Sources] = {}
    for node in nodes:
        unknown = [i for i in node.inputs if not types.get(i, UNKNOWN).is_static]
        sources = Sources().union(*(of_output.get(i, Sources((i.node,))) for i in unknown))
        keys[node] = sources
        for output in node.outputs:
            if not types.get(output, UNKNOWN).is_static:
                of_output[output] = sources or Sources((node,))
    return keys


def _in_turns(nodes: Sequence[Node], keys: Mapping[Node, Sources]) -> Iterator[tuple[Sources, list[Node]]]:
    """Yield groups of nodes with the same key in an executable order. Each group has as many nodes as possible."""
    readers: dict[Node, list[Node]] = {node: [] for node in nodes}
    missing: dict[Node, int] = {}
    for node in nodes:
        before = {i.node for i in node.inputs if i.node in readers}
        missing[node] = len(before)
        for source in before:
            readers[source].append(node)
    ready: dict[Sources, deque[Node]] = {}
    for node in nodes:
        if not missing[node]:
            ready.setdefault(keys[node], deque()).append(node)
    while ready:
        key, waiting = next(iter(ready.items()))
        group: list[Node] = []
        while waiting:
            node = waiting.popleft()
            group.append(node)
            for reader in readers[node]:
                missing[reader] -= 1
                if not missing[reader]:
                    ready.setdefault(keys[reader], deque()).append(reader)
        del ready[key]
        yield key, group
