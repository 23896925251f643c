"""What back ends ask of the memory of a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from irload.plan.ir.program import Step, Value
from irload.plan.memory.layout import Layout
from irload.record import record


@record(frozen=False)
class MemoryRequests:
    """What one back end, or all of them together, ask for. Whatever is not asked for is planar, and apart.

    `layouts`: how values lie that its steps make, or that the caller fills. A border is granted where the value has one
    consumer and shares its buffer with nothing. Layouts that strides do not describe are read by the same back end
    alone: where others take the value, a Relayout step of this back end stands between.
    `in_place`: for each step, the inputs over which it may write its output while it reads them, by position, the best
    first. Granted where nothing needs the input afterwards, both lie alike, and the step's other inputs lie elsewhere.
    `into_slices`: steps that can write their outputs into slices of a larger tensor, so that a Concat copies nothing.
    `relaid`: results of the program that a Relayout step of the back end makes planar, faster than a copy by strides.
    """

    layouts: dict[Value, Layout] = field(default_factory=dict[Value, Layout])
    in_place: dict[Step, tuple[int, ...]] = field(default_factory=dict[Step, tuple[int, ...]])
    into_slices: set[Step] = field(default_factory=set[Step])
    relaid: set[Value] = field(default_factory=set[Value])

    @staticmethod
    def together(requests: Iterable[MemoryRequests]) -> MemoryRequests:
        """The requests of several back ends as one; for a layout that several ask for, the first one's."""
        total = MemoryRequests()
        for each in requests:
            total.layouts = {**each.layouts, **total.layouts}
            total.in_place.update(each.in_place)
            total.into_slices |= each.into_slices
            total.relaid |= each.relaid
        return total
