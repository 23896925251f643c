"""Requests of back ends to memory planning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from irload.plan.ir.program import Step, Value
from irload.plan.memory.layout import Layout
from irload.record import record


@record(frozen=False)
class MemoryRequests:
    """Requests of one back end, or merged requests of all. Values without a request are row-major.

    - `layouts`: layouts of values that steps of the back end produce or that the caller fills. Padding is granted if
      the value has one consumer and a separate buffer. A value whose layout has a stored type is read only by the back
      end that requested it; for other readers, a Relayout step of this back end is inserted.
    - `copied_results`: results of the program that a Relayout step copies to row-major faster than a strided copy does.
    - `first_input_layouts`: for each step that reads its first input from a copy, the layout of the copy. Equal copies
      are shared.
    - `appending_concats`: Concats that append to their first input in place. Its buffer, which is not in the arena, has
      room for the output, and the axis of the Concat is outermost.
    - `carried`: for results of the program, the inputs that receive them in the next run. They share memory if
      possible.
    - `caller_inputs`: inputs of the program that are read from the caller's memory, without a copy.
    """

    layouts: dict[Value, Layout] = field(default_factory=dict[Value, Layout])
    copied_results: set[Value] = field(default_factory=set[Value])
    first_input_layouts: dict[Step, Layout] = field(default_factory=dict[Step, Layout])
    appending_concats: set[Step] = field(default_factory=set[Step])
    carried: dict[Value, Value] = field(default_factory=dict[Value, Value])
    caller_inputs: list[Value] = field(default_factory=list[Value])

    @staticmethod
    def together(requests: Iterable[MemoryRequests]) -> MemoryRequests:
        """Merge the requests of several back ends; the first request for a layout wins."""
        total = MemoryRequests()
        for each in requests:
            total.layouts = {**each.layouts, **total.layouts}
            total.copied_results |= each.copied_results
            total.first_input_layouts |= each.first_input_layouts
        return total
