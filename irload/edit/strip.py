"""Removes metadata, internal names and unused layers."""

from __future__ import annotations

from collections import Counter

from irload.edit.draft import Draft
from irload.graph import Graph
from irload.model import Model
from irload.write.save import variable_reads

__all__ = ["strip"]


def strip(model: Model, *, names: bool = False, rt_info: bool = False, unused: bool = True) -> Model:
    """The model without parts that do not affect its results.

    `names`: replace the names of layers by their type and a number, also in bodies, and remove the names of tensors;
    inputs and outputs keep theirs. `rt_info`: remove the metadata of the model, its layers and ports, which includes
    layouts. `unused`: remove layers on which no output depends; inputs stay. Raises nothing for a valid model.
    """
    draft = Draft(model)
    for graph in draft.model.walk():
        if unused:
            _remove_unused(graph)
        if names:
            _remove_names(graph, draft.model)
        if rt_info:
            _remove_metadata(graph)
    if rt_info:
        draft.model.rt_info = {}
    return draft.finished()


def _remove_unused(graph: Graph) -> None:
    kept = variable_reads(graph)
    graph.nodes = [n for n in graph.nodes if n.reachable or n in kept]


def _remove_names(graph: Graph, model: Model) -> None:
    ports = (*model.inputs, *model.outputs) if graph is model else ()
    nodes, tensors = {p.node for p in ports}, {p.output for p in ports}
    names = {n.name for n in nodes}
    numbers = Counter[str]()
    for node in graph.nodes:
        if node not in nodes:
            while (name := f"{node.type}_{numbers[node.type]}") in names:
                numbers[node.type] += 1
            node.name = name
            names.add(name)
        for output in node.outputs:
            if output not in tensors:
                output.names = frozenset()


def _remove_metadata(graph: Graph) -> None:
    for node in graph.nodes:
        node.rt_info = []
        for output in node.outputs:
            output.rt_info = []
