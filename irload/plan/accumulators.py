"""Finds the values that a loop only extends: each iteration appends to them by Concat, and reads them nowhere else."""

from __future__ import annotations

from collections import Counter
from typing import cast

from irload.core.shape import Shape
from irload.core.subgraph import Accumulator, Subgraph, declared
from irload.core.tensor import TensorType
from irload.graph import Graph, Output


def find_accumulators(loop: Subgraph) -> tuple[Accumulator, ...]:
    """Return the back edges whose parameter is read only by a Concat, as its first input, that is the result.

    The result must not be concatenated from all iterations as well, and the parameter must accept an empty tensor.
    """
    body = cast(Graph, loop.body)
    candidates: list[tuple[Accumulator, Output, Output]] = []
    for result, parameter in loop.back_edges:
        joined, past = body.results[result].inputs[0], body.parameters[parameter].outputs[0]
        if joined.node.type == "Concat" and joined.node.inputs[0] is past:
            axis = joined.node.op.attributes["axis"]
            if _accepts_empty(declared(body, parameter), axis):
                candidates.append((Accumulator(result, parameter, axis), past, joined))
    if not candidates:
        return ()
    reads = Counter(read for node in body.nodes for read in node.inputs)
    gathered = {m.inner for m in loop.outputs if m.axis is not None}
    return tuple(
        accumulator
        for accumulator, past, joined in candidates
        if reads[past] == reads[joined] == 1 and accumulator.result not in gathered
    )


def _accepts_empty(tensor: TensorType, axis: int) -> bool:
    """True if a tensor of this declared type may have no elements along an axis."""
    shape: Shape = tensor.shape
    return shape.rank is None or (-shape.rank <= axis < shape.rank and shape[axis].contains(0))
