"""Clears the errors of layers that the other side folds into a later layer, which undoes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from irload.comparison.layer_error import Comparison, LayerError
from irload.graph import Graph, Node

__all__ = ["clear_folded", "clear_unreturned"]


def clear_folded(model: Graph, comparison: Comparison, nodes: Mapping[str, Node]) -> None:
    """Mark layers whose error every reader undoes, for example if a scale was folded into the preceding weights.

    A reader undoes the error if its total error is within the tolerance, although its error on equal inputs is beyond
    the tolerance or unknown.
    """
    entries: dict[Node, list[LayerError]] = {}
    for entry in comparison.layers:
        if entry.name in nodes:
            entries.setdefault(nodes[entry.name], []).append(entry)
    readers: dict[Node, set[Node]] = {}
    for node in model.nodes:
        for source in node.inputs:
            readers.setdefault(source.node, set()).add(node)
    undone: dict[Node, bool] = {}
    for node in reversed(model.nodes):
        of_node = entries.get(node, [])
        if of_node and all(_undoes(e) or e.passed for e in of_node):
            undone[node] = any(map(_undoes, of_node))
        else:  # without a partner, or with an error that a later layer has to undo
            successors = readers.get(node, set())
            undone[node] = bool(successors) and all(undone[r] for r in successors)
    cleared = {node for node, is_undone in undone.items() if is_undone}
    comparison.layers[:] = [
        replace(e, cleared=True) if not e.passed and nodes.get(e.name) in cleared else e for e in comparison.layers
    ]


def clear_unreturned(comparison: Comparison) -> None:
    """Mark the layers that OpenVINO returns in another shape, or as NaN, while the outputs of the model agree.

    A fused layer has the name of one of the layers it replaces, but returns another value. Some kernels do not write an
    output that another layer reads if it is also returned.
    """
    if comparison.outputs and all(e.passed and not e.inherited for e in comparison.outputs):
        comparison.layers[:] = [
            replace(e, cleared=True) if not e.passed and _is_none(e) else e for e in comparison.layers
        ]


def _is_none(entry: LayerError) -> bool:
    return bool(entry.problem) or any(e is not None and e.needed == inf for e in (entry.own, entry.total))


def _undoes(entry: LayerError) -> bool:
    own, total = entry.own, entry.total
    return total is not None and total.passed and (entry.inherited or (own is not None and not own.passed))
