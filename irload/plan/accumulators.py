"""The bodies of loops as they run, and values that each iteration only extends: by Concat, or by ScatterUpdate.

The body in the file copies all previous parts in each iteration. The body that runs returns only the new part; the
loop collects the parts, and concatenates or writes them after the last iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from irload.core.subgraph import Accumulator, Subgraph
from irload.graph import Graph, Node, Output, ancestors
from irload.record import record

MOVES = frozenset({"Convert", "Reshape", "Squeeze", "Unsqueeze"})
"""Operations that preserve the number of an iteration."""


@record(frozen=False, eq=False)
class LoopBody(Graph):
    """The body of a loop. `carried`: (result, parameter) of its back edges."""

    carried: tuple[tuple[int, int], ...] = ()


@record(eq=False)
class _Candidate:
    """A back edge whose result `last` extends the parameter `past` by `part`."""

    accumulator: Accumulator
    past: Node
    last: Node
    part: Output


@record(eq=False)
class Accumulation:
    """The `accumulators` of a loop, the body that runs, and the positions of its parameters in the body of the file."""

    accumulators: tuple[Accumulator, ...]
    body: LoopBody
    kept: tuple[int, ...]

    @staticmethod
    def of(loop: Subgraph) -> Accumulation:
        """Return the accumulators of a loop, and its body without them.

        A value that another node of the body reads is not an accumulator.
        """
        body = cast(Graph, loop.body)
        gathered = {m.inner for m in loop.outputs if m.axis is not None or m.purpose}
        chosen = [c for c in _candidates(loop, body) if c.accumulator.result not in gathered]
        while True:
            results = _results(body, {c.accumulator.result: c.part for c in chosen})
            needed = set(ancestors([*results, *body.sinks]))
            others = [c for c in chosen if c.past not in needed and c.last not in needed]
            if len(others) == len(chosen):
                break
            chosen = others
        dropped = {c.accumulator.parameter for c in chosen}
        kept = tuple(k for k in range(len(body.parameters)) if k not in dropped)
        parameters = [body.parameters[k] for k in kept]
        nodes = [n for n in (*body.nodes, *results) if n in needed and n not in parameters]
        carried = tuple((result, kept.index(k)) for result, k in loop.back_edges if k not in dropped)
        running = LoopBody([*parameters, *nodes], parameters, results, body.sinks, body.file, carried=carried)
        return Accumulation(tuple(c.accumulator for c in chosen), running, kept)


def _results(body: Graph, returned: Mapping[int, Output]) -> list[Node]:
    """Return the results of a body, where `returned` replaces the values of some, by position."""
    return [
        Node(result.id, result.name, result.op, [returned[k]], result.outputs) if k in returned else result
        for k, result in enumerate(body.results)
    ]


def _candidates(loop: Subgraph, body: Graph) -> Iterator[_Candidate]:
    counters = _counters(loop, body)
    for result, parameter in loop.back_edges:
        last, past = body.results[result].inputs[0].node, body.parameters[parameter]
        if last.type == "Concat" and len(last.inputs) == 2 and last.inputs[0].node is past:
            where = Accumulator(result, parameter, last.op.attributes["axis"])
            yield _Candidate(where, past, last, last.inputs[1])
        elif last.type == "ScatterUpdate":
            axis, indices = last.inputs[3].type.value, last.inputs[1].type
            counter = _moved(last.inputs[1])
            if axis is None or axis.size != 1 or indices.rank not in (0, 1) or counter not in counters:
                continue
            along, data = int(axis.reshape(())), last.inputs[0].node
            broadcasts = data is not past
            if broadcasts and not (along == 0 and _is_broadcast(data, past)):
                continue
            where = Accumulator(
                result, parameter, along, True, is_slice=indices.rank == 1, broadcasts=broadcasts,
                counter=counters[counter],
            )  # fmt: skip
            yield _Candidate(where, past, last, last.inputs[2])


def _counters(loop: Subgraph, body: Graph) -> dict[Output, int | None]:
    """Return the values that count iterations: from 0 (None), or from the initial value of a parameter (its position).

    The parameter has a back edge from the sum of itself and 1.
    """
    merged = {parameter for _, parameter in loop.back_edges}
    inner = [m.inner for m in loop.inputs if m.purpose == "current_iteration" and m.inner not in merged]
    counters: dict[Output, int | None] = dict.fromkeys(body.parameters[k].outputs[0] for k in inner)
    for result, parameter in loop.back_edges:
        following, counter = body.results[result].inputs[0].node, body.parameters[parameter].outputs[0]
        if following.type == "Add" and following.inputs[0] is counter and counter.type.element.is_integer:
            step = following.inputs[1].type.value
            if step is not None and step.size == 1 and step.reshape(()) == 1:
                counters[counter] = parameter
    return counters


def _moved(output: Output) -> Output:
    """Return the source of a number: the value before operations that preserve its only element."""
    while output.node.type in MOVES:
        output = output.node.inputs[0]
    return output


def _is_broadcast(node: Node, past: Node) -> bool:
    """True for Broadcast(past, [length of past along axis 0, …]), with which TensorFlow sets the shape of a list."""
    if node.type != "Broadcast" or node.op.attributes["mode"] != "numpy" or node.inputs[0].node is not past:
        return False
    target = node.inputs[1].node
    first = target.inputs[0].node if target.type == "Concat" else target
    element = [i.type.ints for i in first.inputs[1:4]]
    if (first.type, element) not in (("Slice", [(0,), (1,), (1,)]), ("Gather", [(0,), (0,)])):
        return False
    shape = first.inputs[0].node
    return shape.type == "ShapeOf" and shape.inputs[0].node is past
