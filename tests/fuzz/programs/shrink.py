"""Shrinks failing programs as long as they fail in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.programs.graph import Graph, Layer, Ref, pruned, subgraph, uses

Fails = Callable[[Graph], bool]
"""Whether a program still fails in the same way."""
MAX_RUNS = 400
"""Maximum number of smaller programs to try."""


def shrunk(graph: Graph, fails: Fails) -> Graph:
    """The smallest failing program after removing results and layers one at a time."""
    left = [MAX_RUNS]
    changed = True
    while changed and left[0] > 0:
        changed = False
        for step in (_fewer_results, _without_state, _cut_off, _bypassed):
            graph, better = _best(graph, step, fails, left)
            changed |= better
    return graph


def _best(graph: Graph, step: Callable[[Graph], Iterator[Graph]], fails: Fails, left: list[int]) -> tuple[Graph, bool]:
    """The graph after all candidates of this kind that are smaller and still fail."""
    better, again = False, True
    while again and left[0] > 0:
        again = False
        for smaller in step(graph):
            left[0] -= 1
            if left[0] <= 0:
                break
            if _weight(smaller) < _weight(graph) and fails(smaller):
                graph, better, again = smaller, True, True
                break
    return graph, better


def _weight(graph: Graph) -> tuple[int, int, int]:
    computing = [layer for layer in graph.layers if layer.type not in ("Parameter", "Const")]
    return len(computing) + sum(len(layer.bodies) for layer in computing), len(graph.results), len(graph.layers)


def _fewer_results(graph: Graph) -> Iterator[Graph]:
    """Only one of the results; all but one."""
    if len(graph.results) < 2:
        return
    for ref in graph.results:
        yield pruned(replace(graph, results=[ref]))
    for k in range(len(graph.results)):
        yield pruned(replace(graph, results=[r for n, r in enumerate(graph.results) if n != k]))


def _without_state(graph: Graph) -> Iterator[Graph]:
    """Without one of the variables: the value that was read becomes a Parameter."""
    for k, layer in enumerate(graph.layers):
        if layer.type == "ReadValue":
            name = layer.data["variable_id"]
            smaller = graph.copy()
            smaller.layers[k] = _parameter(graph, k)
            gone = {
                j
                for j, other in enumerate(graph.layers)
                if other.type == "Assign" and other.data["variable_id"] == name
            }
            if not gone & {r.layer for r in uses(graph)}:
                yield pruned(subgraph(smaller, [j for j in range(len(graph.layers)) if j not in gone]))


def _cut_off(graph: Graph) -> Iterator[Graph]:
    """A layer of one output replaced by a Parameter, last layers first."""
    for k in range(len(graph.layers) - 1, -1, -1):
        layer = graph.layers[k]
        if layer.type in ("Parameter", "Const", "Assign", "ReadValue") or len(layer.types) != 1:
            continue
        smaller = graph.copy()
        smaller.layers[k] = _parameter(graph, k)
        yield pruned(smaller)
    for k, layer in enumerate(graph.layers):  # one output of a layer with several outputs
        if layer.type in ("Split", "VariadicSplit"):
            for port in range(len(layer.types)):
                yield _with_parameter(graph, Ref(k, port))


def _with_parameter(graph: Graph, ref: Ref) -> Graph:
    """One output of a layer replaced by a new Parameter."""
    name = f"normal_cut{ref.layer}_{ref.port}"
    new = _leaf(graph, graph.type_of(ref), name)
    moved = Graph([new, *graph.layers], list(graph.results), graph.dynamic, graph.traits)

    def at(r: Ref) -> Ref:
        return Ref(0) if r == ref else Ref(r.layer + 1, r.port)

    moved.layers[1:] = [replace(layer, inputs=tuple(at(r) for r in layer.inputs)) for layer in graph.layers]
    moved.results = [at(r) for r in graph.results]
    return pruned(moved)


def _leaf(graph: Graph, type: tuple[object, tuple[int, ...]], name: str) -> Layer:
    element, shape = type
    sizes = ["?" if graph.dynamic and not k else str(n) for k, n in enumerate(shape)]
    return Layer("Parameter", "opset1", {"element_type": element, "shape": ",".join(sizes)}, (), (type,), name)  # type: ignore[arg-type]


def _parameter(graph: Graph, k: int) -> Layer:
    """A Parameter with the type of a layer's output, and the kind of data that the other Parameters have."""
    names = [graph.layers[n].name for n in graph.parameters]
    kind = "dyadic1x4" if any("dyadic" in n for n in names) else "normal"
    kind = f"odd_{kind}" if any(n.startswith("odd") for n in names) else kind
    return _leaf(graph, graph.layers[k].types[0], f"{kind}_cut{k}")


def _bypassed(graph: Graph) -> Iterator[Graph]:
    """Without a layer that has an input of its output type: its consumers use that input."""
    for k in range(len(graph.layers) - 1, -1, -1):
        layer = graph.layers[k]
        if layer.type in ("Assign", "ReadValue") or len(layer.types) != 1:
            continue
        for source in layer.inputs:
            if graph.type_of(source) == layer.types[0]:
                smaller = graph.copy()
                smaller.layers = [
                    replace(other, inputs=tuple(source if r.layer == k else r for r in other.inputs))
                    for other in graph.layers
                ]
                smaller.results = [source if r.layer == k else r for r in graph.results]
                yield pruned(smaller)
                break
