"""The nodes that run after a traced plan, which ends where shapes depend on values, as after NonZero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core.shape import Dim, Shape
from irload.core.size import has_sizes, is_size, terms_of
from irload.core.tensor import Array, TensorType
from irload.core.trace import Trace
from irload.plan.ir.constant import Constant
from irload.plan.schedule import Schedule, ScheduledNode


class InterpretedRemainder:
    """The schedule of a traced graph, by which the nodes that its plan does not run are interpreted.

    Types that depend on symbols are inferred again when a node runs. `trace` must be closed.
    """

    def __init__(self, schedule: Schedule, trace: Trace) -> None:
        rest = tuple(map(_without_sizes, schedule.rest))
        tails = tuple(replace(part, nodes=tuple(map(_without_sizes, part.nodes))) for part in schedule.tails)
        nodes = (*rest, *(node for part in tails for node in part.nodes))
        read = {*schedule.results, *(slot for part in tails for slot in part.read)}
        read.update(slot for node in nodes for slot in node.inputs)
        read -= set(schedule.parameters)
        known: list[tuple[int, Constant]] = []
        self._symbolic: list[tuple[int, Array, np.dtype[Any]]] = []
        """The constants that contain sizes: slot, array of sizes, dtype of the values."""
        for (slot, constant), output in zip(schedule.constants, schedule.folded, strict=True):
            if slot in read and constant.held and has_sizes(constant.array):
                self._symbolic.append((slot, constant.array, schedule.types[output].element.dtype))
            elif slot in read:
                known.append((slot, constant))
        self._schedule = replace(schedule, rest=rest, tails=tails, constants=tuple(known))
        self._numbers = trace.compiled([terms_of(n) for _, array, _ in self._symbolic for n in array.flat])

    def at(self, symbols: Sequence[int]) -> Schedule:
        """Return the schedule for values of the symbols."""
        if not self._symbolic:
            return self._schedule
        numbers, constants = iter(self._numbers(symbols)), list(self._schedule.constants)
        for slot, array, dtype in self._symbolic:
            values = [next(numbers) for _ in range(array.size)]
            constants.append((slot, Constant.of(np.array(values, dtype).reshape(array.shape))))
        return replace(self._schedule, constants=tuple(constants))


def _without_sizes(node: ScheduledNode) -> ScheduledNode:
    """Return the node with types that are valid for all shapes: dims that depend on symbols are unknown."""
    inputs, outputs = (tuple(map(_open, types)) for types in (node.input_types, node.types))
    pairs = zip((*inputs, *outputs), (*node.input_types, *node.types), strict=True)
    known = node.known and all(after is before for after, before in pairs)
    return replace(node, input_types=inputs, types=outputs, known=known)


def _open(tensor: TensorType) -> TensorType:
    """Return the type; dims that depend on symbols are unknown."""
    if tensor.rank is None or not any(is_size(dim.lo) or is_size(dim.hi) for dim in tensor.shape.dims):
        return tensor
    dims = (Dim() if is_size(dim.lo) or is_size(dim.hi) else dim for dim in tensor.shape.dims)
    return TensorType(tensor.element, Shape(*dims))
