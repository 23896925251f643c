"""The bodies of loops as they run, and values that each iteration only extends: by Concat, or by ScatterUpdate.

The body in the file would copy all previous parts in each iteration. The body that runs returns the part alone; the
loop collects the parts, and puts them together after the last iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from irload.core.subgraph import Accumulator, Subgraph
from irload.graph import Graph, Node, Output
from irload.record import record

MOVES = frozenset({"Convert", "Reshape", "Squeeze", "Unsqueeze"})
"""Operations that preserve the number of an iteration."""


@record(frozen=False, eq=False)
class LoopBody(Graph):
    """The body of a loop. `carried`: (result, parameter) of its back edges."""

    carried: tuple[tuple[int, int], ...] = ()


@record(eq=False)
class Accumulation:
    """The `accumulators` of a loop, the body that runs, and the positions of its parameters in the body of the file."""

    accumulators: tuple[Accumulator, ...]
    body: LoopBody
    kept: tuple[int, ...]

    @staticmethod
    def of(loop: Subgraph) -> Accumulation:
        """Return the accumulators of a loop."""
        body = cast(Graph, loop.body)
        candidates = list(_candidates(loop, body))
        reads = Counter(read for node in body.nodes for read in node.inputs) if candidates else Counter[Output]()
        gathered = {m.inner for m in loop.outputs if m.axis is not None or m.purpose}
        parts = {
            accumulator: part
            for accumulator, part in candidates
            if reads[body.parameters[accumulator.parameter].outputs[0]] == 1
            and reads[body.results[accumulator.result].inputs[0]] == 1
            and accumulator.result not in gathered
        }
        dropped = {accumulator.parameter for accumulator in parts}
        kept = tuple(k for k in range(len(body.parameters)) if k not in dropped)
        returned = {accumulator.result: part for accumulator, part in parts.items()}
        carried = tuple((result, kept.index(k)) for result, k in loop.back_edges if k in kept)
        return Accumulation(tuple(parts), _reduced(body, kept, returned, carried), kept)


def _candidates(loop: Subgraph, body: Graph) -> Iterator[tuple[Accumulator, Output]]:
    """Yield the back edges whose result extends the parameter, and the part that an iteration adds."""
    merged = {parameter for _, parameter in loop.back_edges}
    counters = {
        body.parameters[m.inner].outputs[0]
        for m in loop.inputs
        if m.purpose == "current_iteration" and m.inner not in merged
    }
    for result, parameter in loop.back_edges:
        last, past = body.results[result].inputs[0].node, body.parameters[parameter].outputs[0]
        if last.type == "Concat" and len(last.inputs) == 2 and last.inputs[0] is past:
            yield Accumulator(result, parameter, last.op.attributes["axis"]), last.inputs[1]
        elif last.type == "ScatterUpdate" and last.inputs[0] is past and _counts(last.inputs[1], counters):
            axis, indices = last.inputs[3].type.value, last.inputs[1].type
            if axis is not None and axis.size == 1 and indices.rank in (0, 1):
                where = Accumulator(result, parameter, int(axis.reshape(())), writes=True, is_slice=indices.rank == 1)
                yield where, last.inputs[2]


def _counts(output: Output, counters: set[Output]) -> bool:
    """True if a value is the number of the iteration, in any shape."""
    while output not in counters:
        if output.node.type not in MOVES:
            return False
        output = output.node.inputs[0]
    return True


def _reduced(
    body: Graph, kept: Sequence[int], returned: dict[int, Output], carried: tuple[tuple[int, int], ...]
) -> LoopBody:
    """Return a body with some of the parameters, whose results are `returned` at these positions."""
    results = [
        Node(result.id, result.name, result.op, [returned[k]], result.outputs) if k in returned else result
        for k, result in enumerate(body.results)
    ]
    parameters = [body.parameters[k] for k in kept]
    needed = {*results, *body.sinks}
    pending = list(needed)
    while pending:
        before = {i.node for i in pending.pop().inputs} - needed
        needed |= before
        pending += before
    nodes = [node for node in (*body.nodes, *results) if node in needed and node not in parameters]
    return LoopBody([*parameters, *nodes], parameters, results, body.sinks, body.file, carried=carried)
