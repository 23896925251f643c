"""Constant folding: a node of which every input is known → its result, computed once.

So weights are decompressed when a model is compiled, not whenever it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import cast

import numpy as np

from irload.core.op import Op, evaluate, is_builtin
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.graph import Node, Output
from irload.plan.ir.constant import DEEPEST, SMALL, Constant, Recipe
from irload.plan.wide import SHORT, is_short, takes_its_own_types, wide_type, widened_array
from irload.safety import Deadline, Limits

LARGE = 1 << 26
GROWTH = 8
"""Constants may grow by this factor when they are folded, as 4-bit weights do; beyond LARGE bytes by no more."""

CERTAIN = frozenset({"Convert", "Subtract", "Multiply", "Reshape", "Transpose", "Unsqueeze", "Squeeze"})
"""What weights are decompressed by. It cannot fail once inference has passed, so it may wait until it is asked for:
then never all weights are in memory in two forms."""


class Folding:
    """The constants of one model. What depends on the file alone is the same for all plans."""

    def __init__(self) -> None:
        self._kept: dict[Output, Constant] = {}

    def fold(
        self, nodes: Sequence[Node], results: Iterable[Output], types: Mapping[Output, TensorType], limits: Limits
    ) -> tuple[dict[Output, Constant], set[Node]]:
        """The constants that results and the nodes left over take, and the nodes that need not run.

        What only other constants are made of is released at once, so that weights are not held twice. What there is no
        room for under the limits is left to the run. Raises LimitExceeded when it takes too long.
        """
        deadline = Deadline(limits)
        room = None if limits.memory is None else limits.memory - sum(c.nbytes for c in self._kept.values() if c.held)
        waiting = Counter(i for node in nodes for i in node.inputs)
        waiting.update(results)
        known: dict[Output, Constant] = {}
        gone: set[Node] = set()
        for node in nodes:
            deadline.check()
            made = self._results(node, known, types, room)
            if made is None:
                continue
            gone.add(node)
            if room is not None:
                room -= sum(c.nbytes for c in made)
            known.update(zip(node.outputs, made, strict=True))
            for source in node.inputs:
                waiting[source] -= 1
                if not waiting[source] and source in known:
                    known.pop(source).release()
        return known | self._stored(nodes, waiting), gone

    def _results(
        self, node: Node, known: Mapping[Output, Constant], types: Mapping[Output, TensorType], room: int | None
    ) -> tuple[Constant, ...] | None:
        """The results of a node, None where they are not all known or would be too large."""
        if not all(o in types for o in node.outputs):
            return None  # a port that the operation does not have
        values = [types[o].value for o in node.outputs]
        if not values or node.type == "Const":
            return None
        if all(v is not None for v in values) and not any(is_short(types[o]) for o in node.outputs):
            return tuple(Constant.of(v) for v in values if v is not None)
        if all(o in self._kept for o in node.outputs):
            return tuple(self._kept[o] for o in node.outputs)
        if not node.op.folds or node.op.signature.compute_context:
            return None
        if not all(i in known or i.node.type == "Const" for i in node.inputs):
            return None
        if takes_its_own_types(node) and any(is_short(types[o]) for o in (*node.inputs, *node.outputs)):
            return None  # constants are f32 here
        if not all(types[o].is_static for o in node.outputs):
            return None
        size = sum(types[o].nbytes or 0 for o in node.outputs)
        if node.inputs and size > max(LARGE, GROWTH * sum(types[i].nbytes or 0 for i in node.inputs)):
            return None
        if room is not None and size > room:
            return None
        inputs = [known[i] if i in known else self._file(i.node) for i in node.inputs]
        after = [wide_type(types[o]) for o in node.outputs]
        if size > SMALL and node.type in CERTAIN and is_builtin(node.op) and max(i.depth for i in inputs) < DEEPEST:
            return self._keep(node, _folded(node.op, inputs, after, [None] * len(after)))
        try:
            results = _evaluated(node.op, inputs, after)
        except ExecutionError:
            return None  # it fails again when it runs, then with its place in the message
        if len(results) != len(node.outputs):
            return None  # the file lists less ports than the operation has
        return self._keep(node, _folded(node.op, inputs, after, results))

    def _keep(self, node: Node, made: tuple[Constant, ...]) -> tuple[Constant, ...]:
        """Remember for other plans what depends on the file alone."""
        if all(i in self._kept or i.node.type == "Const" for i in node.inputs):
            self._kept.update(zip(node.outputs, made, strict=True))
        return made

    def _stored(self, nodes: Sequence[Node], wanted: Mapping[Output, int]) -> dict[Output, Constant]:
        """What the file holds of the outputs that something takes."""
        return {n.outputs[0]: self._file(n) for n in nodes if n.type == "Const" and wanted.get(n.outputs[0])}

    def _file(self, node: Node) -> Constant:
        """A constant of the file, read when it is asked for."""
        output = node.outputs[0]
        if output not in self._kept:
            self._kept[output] = stored(node)
        return self._kept[output]


def stored(node: Node) -> Constant:
    """What a Const gives."""
    tensor = node.outputs[0].type
    where = (node.op.attributes["offset"], node.op.attributes["size"])
    return Constant(
        lambda: cast(Array, node.op.compute()),
        tensor.shape.static,
        tensor.element.dtype,
        place=where if where[1] else None,
    )


def _evaluated(op: Op, inputs: Sequence[Constant], types: Sequence[TensorType]) -> list[Array]:
    """The results, floats of 16 bits as f32."""
    results = evaluate(op, [widened_array(i.array) for i in inputs], types)
    return [np.asarray(r, t.element.dtype) if r.dtype in SHORT else r for r, t in zip(results, types, strict=False)]


def _folded(
    op: Op, inputs: Sequence[Constant], types: Sequence[TensorType], results: Sequence[Array | None]
) -> tuple[Constant, ...]:
    """The constants that an operation gives; the results are None where they are to be computed when asked for."""
    depth = 1 + max((i.depth for i in inputs), default=0)

    def make(k: int) -> Array:
        return _evaluated(op, inputs, types)[k]

    made: list[Constant] = []
    for k, (tensor, array) in enumerate(zip(types, results, strict=True)):
        if array is not None:
            array.flags.writeable = False
        recipe = Recipe(op, tuple(inputs)) if len(types) == 1 else None
        shape, dtype = tensor.shape.static, tensor.element.dtype
        made.append(Constant(partial(make, k), shape, dtype, array, depth, recipe=recipe))
    return tuple(made)
