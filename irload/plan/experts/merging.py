"""Replaces mixtures of experts, whose sizes depend on values, by nodes of known shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from irload.core.op import Op
from irload.core.tensor import TensorType
from irload.experts import ExpertBody, expert_product
from irload.graph import Node, Output
from irload.plan.experts.operations import ExpertMatMul, ExpertOrder, ExpertSum
from irload.plan.experts.selected import Selected, selected

Replaced = dict[Node, Sequence[Node]]
"""The nodes that replace a group of nodes, by the last node of the group. Schedules with the same nodes share plans."""


def with_experts(
    nodes: Sequence[Node], results: Iterable[Output], types: Mapping[Output, TensorType], known: Replaced
) -> tuple[Sequence[Node], Mapping[Output, TensorType]]:
    """Return the nodes with mixtures of experts replaced, and the types of new outputs.

    Without mixtures, returns the same nodes. `results`: values that are read elsewhere. `known`: earlier replacements,
    which are reused; new ones are added.
    """
    found: Replaced = {}
    for node in nodes:
        if node.type == "Concat" and (product := expert_product(node, types)) is not None:
            found[node] = _merged(product.body, product.data, product.counts)
    for node in _last_scatters(nodes):
        if (mixture := selected(node, types)) is not None:
            found[node] = _mixture(node, mixture)
    if not found:
        return nodes, {}
    replaced: Replaced = {}
    for last, new in found.items():
        new[-1].outputs = list(last.outputs)
        replaced[last] = known.setdefault(last, new)
    merged = [new for node in nodes for new in replaced.get(node, (node,))]
    return _used(merged, results), _types([new for each in replaced.values() for new in each], types)


def _last_scatters(nodes: Sequence[Node]) -> Iterable[Node]:
    """Return each ScatterElementsUpdate whose result no other one updates."""
    scatters = [node for node in nodes if node.type == "ScatterElementsUpdate"]
    updated = {node.inputs[0].node for node in scatters}
    return [node for node in scatters if node not in updated]


def _mixture(last: Node, mixture: Selected) -> list[Node]:
    """Return the nodes that compute a mixture, whose last Scatter is `last`."""
    gather = mixture.gather
    order = _node(last, ExpertOrder(experts=mixture.experts), [mixture.chosen], 4)
    row, _, counts, positions = order.outputs
    rows = _node(gather, gather.op, [gather.inputs[0], row, gather.inputs[2]])
    nodes = [order, rows, *_merged(mixture.body, rows.outputs[0], counts)]
    return [*nodes, _node(last, ExpertSum(), [*nodes[-1].outputs, positions, mixture.weights])]


def _merged(body: ExpertBody, rows: Output, counts: Output) -> list[Node]:
    """Return the nodes that compute the results of all experts from their rows, sorted by expert."""
    nodes: list[Node] = []
    values = dict.fromkeys(body.sources, rows)
    for node in body.nodes:
        inputs, op = [values.get(i, i) for i in node.inputs], node.op
        if node in body.weights:
            op = ExpertMatMul(transpose=op.attributes["transpose_b"])
            inputs = [inputs[0], counts, *body.weights[node]]
        nodes.append(_node(node, op, inputs))
        values[node.outputs[0]] = nodes[-1].outputs[0]
    return nodes


def _node(old: Node, op: Op, inputs: list[Output], outputs: int = 1) -> Node:
    """Return a node with the name of another."""
    node = Node(old.id, old.name, op, inputs, line=old.line)
    node.outputs = [Output(node, k) for k in range(outputs)]
    return node


def _used(nodes: Sequence[Node], results: Iterable[Output]) -> Sequence[Node]:
    """Return the nodes whose outputs are read: the operands of replaced nodes may be unused."""
    uses = Counter(i for node in nodes for i in node.inputs)
    uses.update(results)
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.type == "Assign" or any(uses[o] for o in node.outputs):
            kept.append(node)
        else:
            uses.subtract(node.inputs)
    return kept[::-1]


def _types(nodes: Sequence[Node], types: Mapping[Output, TensorType]) -> Mapping[Output, TensorType]:
    """Return the types of the outputs of new nodes. Outputs of replaced nodes have one."""
    new: dict[Output, TensorType] = {}
    for node in nodes:
        if node.outputs[0] not in types:
            inferred = node.op.infer(*(new[i] if i in new else types[i] for i in node.inputs))
            new.update(zip(node.outputs, inferred if isinstance(inferred, tuple) else (inferred,), strict=True))
    return new
