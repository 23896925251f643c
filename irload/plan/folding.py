"""Constant folding: a node of which every input is known → its result, computed once.

So weights are decompressed when a model is compiled, not whenever it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irload.core.op import evaluate
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.graph import Node, Output

LARGE = 1 << 26
GROWTH = 8
"""Constants may grow by this factor when they are folded, as 4-bit weights do; beyond LARGE bytes by no more."""


class Folding:
    """The constants of one model. What depends on the file alone is kept for all plans."""

    def __init__(self) -> None:
        self._kept: dict[Output, Array] = {}

    def fold(
        self, node: Node, inputs: Sequence[Array | None], types: Mapping[Output, TensorType]
    ) -> tuple[Array, ...] | None:
        """The results of a node, None where they are not all known or would be too large."""
        told = [types[o].value for o in node.outputs]
        if told and all(v is not None for v in told):
            return tuple(v for v in told if v is not None)
        arrays = [a for a in inputs if a is not None]
        if len(arrays) < len(inputs) or not node.op.folds or node.op.signature.compute_context or not node.outputs:
            return None
        if all(o in self._kept for o in node.outputs):
            return tuple(self._kept[o] for o in node.outputs)
        size = sum(types[o].nbytes or 0 for o in node.outputs)
        if not all(types[o].is_static for o in node.outputs):
            return None
        if inputs and size > max(LARGE, GROWTH * sum(a.nbytes for a in arrays)):
            return None
        try:
            results = evaluate(node.op, arrays, [types[o] for o in node.outputs])
        except ExecutionError:
            return None  # it fails again when it runs, then with its place in the message
        for array in results:
            array.flags.writeable = False
        if all(i in self._kept or i.node.type == "Const" for i in node.inputs):
            self._kept.update(zip(node.outputs, results, strict=True))
        return results
