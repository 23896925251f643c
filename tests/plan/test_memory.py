"""Which values share memory, and which must not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irload.errors import LimitExceeded
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ReshapeStep, SliceStep, TransposeStep
from irload.plan.memory.layout import PLANAR, Layout, channels_last
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests
from irload.safety.limits import Limits
from tests.plan.programs import constant, mapped, random, value


def memory(
    steps: Sequence[Step], inputs: list[Value], outputs: list[Value], layouts: dict[Value, Layout] | None = None
) -> Memory:
    """The memory of steps with these layouts."""
    return Memory(Program(list(steps), inputs, outputs), MemoryRequests(layouts or {}))


def test_dead_buffers_are_reused_and_results_are_kept() -> None:
    x = value(3, 4)
    steps = [mapped("relu", x)]
    for function in ("exp", "tanh"):
        steps.append(mapped(function, steps[-1].output))
    first, second, third = (s.output for s in steps)
    plan = memory(steps, [x], [third])
    assert [plan.source(v) for v in (x, first, second, third)] == [None] * 4
    assert plan.nbytes == 2 * 64
    assert np.shares_memory(plan.array(third), plan.array(first))
    assert memory(steps, [x], [first, third]).nbytes == 3 * 64


def test_a_view_lives_in_the_buffer_of_its_source() -> None:
    x = value(3, 4)
    first = mapped("relu", x)
    turned = TransposeStep([first.output], [value(4, 3)], order=(1, 0))
    second, third = mapped("exp", x), mapped("tanh", turned.output)
    plan = memory([first, turned, second, third], [x], [second.output, third.output])
    assert plan.is_view(turned.output)
    assert plan.source(turned.output) is first.output
    assert not np.shares_memory(plan.array(second.output), plan.array(turned.output)), "the view is read afterwards"


def test_a_view_in_another_stored_type_needs_a_copy() -> None:
    x = value(1, 2, 3, 4)
    first = mapped("relu", x)
    turned = TransposeStep([first.output], [value(1, 3, 2, 4)], order=(0, 2, 1, 3))
    stored = Layout(storage=np.dtype(np.float64))
    for layouts, expected in (({}, True), ({first.output: stored}, False), ({turned.output: stored}, False)):
        assert memory([first, turned], [x], [turned.output], layouts).is_view(turned.output) == expected
    plan = memory([first, turned], [x], [turned.output], {first.output: stored, turned.output: stored})
    assert plan.is_view(turned.output)
    assert plan.array(turned.output).dtype == np.float64


def test_views_of_views() -> None:
    x = value(2, 3, 4)
    first = mapped("relu", x)
    turned = TransposeStep([first.output], [value(3, 2, 4)], order=(1, 0, 2))
    flat = ReshapeStep([turned.output], [value(3, 8)])
    cut = SliceStep([turned.output], [value(3, 1, 4)], index=(slice(None), slice(1, 2), slice(None)))
    outputs = [flat.output, cut.output]
    plan = memory([first, turned, flat, cut], [x], outputs)
    assert not plan.is_view(flat.output), "a copy"
    assert plan.is_view(cut.output)
    assert plan.root(cut.output) is first.output
    assert plan.array(cut.output).strides == (16, 48, 4)


def test_layouts_give_strides_and_offsets() -> None:
    assert PLANAR.strided((2, 3, 4, 5)).strides == (60, 20, 5, 1)
    assert channels_last(4).strided((2, 3, 4, 5)).strides == (60, 1, 15, 3)


def test_the_peak_counts_constants_once() -> None:
    x, w = value(16), constant(random(16))
    first, second = mapped("add", x, w), mapped("multiply", x, w)
    steps, outputs = [first, second], [first.output, second.output]
    needed = 3 * 64 + 64
    Memory(Program(steps, [x], outputs), limits=Limits(peak_bytes=needed))
    with pytest.raises(LimitExceeded, match=f"{needed} bytes"):
        Memory(Program(steps, [x], outputs), limits=Limits(peak_bytes=needed - 1))
