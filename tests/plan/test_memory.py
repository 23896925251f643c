"""Which values share memory, and which must not."""

from __future__ import annotations

import numpy as np
import pytest

from irload.errors import LimitExceeded
from irload.plan.executor import Executor
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import Concat, Elementwise, Normalize, Reshape, Slice, Softmax, Transpose
from irload.plan.ir.strides import Strided
from irload.plan.memory.layout import PLANAR, Layout, channels_last
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests
from irload.safety import Limits
from models import ir
from tests.fuzz.programs.thresholds import lowered
from tests.plan.exact import Exact, plan_of, same
from tests.plan.graphs import agrees
from tests.plan.programs import constant, mapped, random, value


def memory(
    steps: list[object], inputs: list[Value], outputs: list[Value], layouts: dict[Value, Layout] | None = None
) -> Memory:
    """The memory of steps that ask for slices and in-place writes wherever their kind allows."""
    program = Program(steps, inputs, outputs)  # type: ignore[arg-type]
    in_place = {
        s: (0,) for s in program.steps if isinstance(s, Softmax | Normalize) and s.inputs.count(s.inputs[0]) == 1
    }
    in_place |= {s: tuple(range(len(s.inputs))) for s in program.steps if isinstance(s, Elementwise)}
    return Memory(program, MemoryRequests(layouts or {}, in_place, set(program.steps)))


def source_of_last(*functions: str) -> tuple[Memory, list[Elementwise], Value]:
    """A chain of functions of one operand."""
    x = value(3, 4)
    steps: list[Elementwise] = []
    for function in functions:
        steps.append(mapped(function, steps[-1].output if steps else x))
    return memory(list(steps), [x], [steps[-1].output]), steps, x


def test_elementwise_results_take_the_place_of_what_nobody_needs() -> None:
    made, (first, second, third), x = source_of_last("relu", "exp", "tanh")
    assert made.source(first.output) is None, "an input stays"
    assert made.source(second.output) is first.output
    assert made.source(third.output) is second.output
    assert made.root(third.output) is first.output
    assert not made.is_view(second.output)
    assert made.nbytes == 2 * 64
    assert np.shares_memory(made.array(third.output), made.array(first.output))
    assert not np.shares_memory(made.array(first.output), made.array(x))


def test_an_operand_that_is_taken_again_stays() -> None:
    x = value(3, 4)
    first = mapped("relu", x)
    second, third = mapped("exp", first.output), mapped("tanh", first.output)
    made = memory([first, second, third], [x], [second.output, third.output])
    assert [made.source(s.output) for s in (second, third)] == [None, first.output], "the last one may write over it"


def test_an_output_stays() -> None:
    x = value(3, 4)
    first = mapped("relu", x)
    second = mapped("exp", first.output)
    made = memory([first, second], [x], [first.output, second.output])
    assert made.source(second.output) is None


def test_a_value_that_is_taken_twice_by_one_map_is_written_over() -> None:
    x = value(3, 4)
    first = mapped("relu", x)
    second = mapped("multiply", first.output, first.output)
    assert memory([first, second], [x], [second.output]).source(second.output) is first.output


@pytest.mark.parametrize("kind", ["softmax", "normalize"])
def test_rows_are_written_over_unless_their_epilogue_takes_them_again(kind: str) -> None:
    x = value(3, 4)
    first = mapped("relu", x)

    def step(*inputs: Value) -> Softmax | Normalize:
        if kind == "softmax":
            return Softmax([inputs[0]], [value(3, 4)], axis=1)
        expression = mapped("add", *inputs).expression if len(inputs) > 1 else mapped("relu", inputs[0]).expression
        return Normalize(list(inputs), [value(3, 4)], axes=(1,), eps=1.0, epilogue=expression)

    alone = step(first.output)
    assert memory([first, alone], [x], [alone.output]).source(alone.output) is first.output
    if kind == "normalize":
        again = step(first.output, first.output)
        assert memory([first, again], [x], [again.output]).source(again.output) is None
        other = mapped("exp", x)
        extra = step(first.output, other.output)
        made = memory([first, other, extra], [x], [extra.output])
        assert made.source(extra.output) is first.output, "never an operand of the epilogue"


def test_another_shape_layout_or_type_needs_memory_of_its_own() -> None:
    x, wide = value(1, 4), value(3, 4)
    first = mapped("relu", x)
    second = mapped("add", first.output, wide)
    assert memory([first, second], [x, wide], [second.output]).source(second.output) is None
    x = value(1, 2, 3, 4)
    first = mapped("relu", x)
    second = mapped("exp", first.output)
    layouts = {first.output: channels_last(4)}
    assert memory([first, second], [x], [second.output], layouts).source(second.output) is None


def test_what_is_seen_through_a_view_stays() -> None:
    x = value(3, 4)
    first = mapped("relu", x)
    turned = Transpose([first.output], [value(4, 3)], order=(1, 0))
    second = mapped("exp", first.output)
    third = mapped("tanh", turned.output)
    made = memory([first, turned, second, third], [x], [second.output, third.output])
    assert made.is_view(turned.output)
    assert made.source(turned.output) is first.output
    assert made.source(second.output) is None
    assert made.source(third.output) is None, "nor is a view written over"


def test_several_operands_of_which_the_second_is_free() -> None:
    x = value(3, 4)
    first, kept = mapped("relu", x), mapped("exp", x)
    both = mapped("add", kept.output, first.output)
    made = memory([first, kept, both], [x], [kept.output, both.output])
    assert made.source(both.output) is first.output


def test_joins_are_written_by_their_makers() -> None:
    x = value(3, 4)
    first, second = mapped("relu", x), mapped("exp", x)
    join = Concat([first.output, x, second.output], [value(3, 12)], axis=1)
    made = memory([first, second, join], [x], [join.output])
    assert [made.source(v) for v in join.inputs] == [join.output, None, join.output]
    whole = made.array(join.output)
    for k, step in ((0, first), (2, second)):
        np.testing.assert_array_equal(
            np.lib.array_utils.byte_bounds(made.array(step.output)),
            np.lib.array_utils.byte_bounds(whole[:, 4 * k : 4 * k + 4]),
        )


@pytest.mark.parametrize("why", ["taken twice", "taken by another", "returned", "a view", "another layout", "constant"])
def test_what_is_not_written_into_a_join(why: str) -> None:
    x = value(1, 2, 3, 4)
    first = mapped("relu", x)
    steps: list[object] = [first]
    part, outputs = first.output, list[Value]()
    layouts: dict[Value, Layout] = {}
    if why == "a view":
        look = Slice([first.output], [value(1, 2, 3, 4)], index=(slice(None),) * 4)
        steps.append(look)
        part = look.output
    elif why == "another layout":
        layouts[part] = channels_last(4)
    elif why == "constant":
        part = constant(random(1, 2, 3, 4))
    elif why == "taken by another":
        other = mapped("exp", part)
        steps.append(other)
        outputs.append(other.output)
    elif why == "returned":
        outputs.append(part)
    inputs = [part, part] if why == "taken twice" else [part, x]
    join = Concat(inputs, [value(1, 4, 3, 4)], axis=1)
    made = memory([*steps, join], [x], [join.output, *outputs], layouts)
    assert (made.source(part) is join.output) == (why == "taken twice")


def test_views_of_views() -> None:
    x = value(2, 3, 4)
    first = mapped("relu", x)
    turned = Transpose([first.output], [value(3, 2, 4)], order=(1, 0, 2))
    flat = Reshape([turned.output], [value(3, 8)])
    cut = Slice([turned.output], [value(3, 1, 4)], index=(slice(None), slice(1, 2), slice(None)))
    outputs = [flat.output, cut.output]
    made = memory([first, turned, flat, cut], [x], outputs)
    assert not made.is_view(flat.output), "a copy"
    assert made.is_view(cut.output)
    assert made.root(cut.output) is first.output
    assert made.array(cut.output).strides == (16, 48, 4)


def test_layouts_say_where_elements_lie() -> None:
    assert PLANAR.strided((2, 3, 4, 5)).strides == (60, 20, 5, 1)
    assert channels_last(4).strided((2, 3, 4, 5)).strides == (60, 1, 15, 3)
    padded = Layout((0, 2, 3, 1), border=((0, 0), (0, 0), (1, 2), (3, 0)))
    assert padded.extents((2, 3, 4, 5)) == (2, 7, 8, 3)
    assert padded.strided((2, 3, 4, 5)) == Strided((2, 3, 4, 5), (168, 1, 24, 3), 24 + 9)
    assert padded.whole((2, 3, 4, 5)).shape == (2, 3, 7, 8)
    blocked = Layout((0, 1, 2, 3, 1), block=32)
    assert blocked.extents((1, 33, 4, 5)) == (1, 2, 4, 5, 32)
    assert blocked.size((1, 33, 4, 5)) == 2 * 4 * 5 * 32
    assert not blocked.is_strided
    with pytest.raises(ValueError, match="no strides"):
        blocked.strided((1, 33, 4, 5))


def test_the_peak_counts_constants_once() -> None:
    x, w = value(16), constant(random(16))
    first, second = mapped("add", x, w), mapped("multiply", x, w)
    steps, outputs = [first, second], [first.output, second.output]
    needed = 3 * 64 + 64
    Memory(Program(steps, [x], outputs), limits=Limits(peak_bytes=needed))
    with pytest.raises(LimitExceeded, match=f"{needed} bytes"):
        Memory(Program(steps, [x], outputs), limits=Limits(peak_bytes=needed - 1))


def bordered(plan: Executor) -> list[Value]:
    """The values of a plan that have a border."""
    return [v for s in plan.program.steps for v in s.outputs if plan.memory.layout(v).border]


def padded_for_depthwise(net: Exact, change: str) -> ir.Ref:
    """A 1×1 convolution before a depthwise one with pads, with one thing changed."""
    x = net.input(1, 4, 13, 14)
    y = net.conv(x, 4, 6, 3 if change == "3×3" else 1)
    y = net.op("ReLU", y)
    pads = {} if change == "no pads" else {"pads_begin": "1,2", "pads_end": "0,1"}
    if change == "small":
        x = net.input(1, 4, 12, 13)
        y = net.conv(x, 4, 6)
    z = net.depthwise(y, 6, 3, **pads) if change != "dense" else net.conv(y, 6, 6, 3, **pads)
    if change == "taken twice":
        return net.concat(net.reshape(net.op("Abs", y), -1), net.reshape(z, -1), axis=0)
    return z


@pytest.mark.parametrize("change", ["none", "3×3", "no pads", "small", "dense", "taken twice"])
@pytest.mark.numpy_kernels
def test_borders(change: str) -> None:
    net = Exact()
    model = net.model(padded_for_depthwise(net, change))
    plan: Executor = plan_of(model, net.shapes)
    padded = bordered(plan)
    assert bool(padded) == (change == "none")
    if padded:
        (value,) = padded
        whole = plan.memory.with_border(value)
        assert whole is not None
        assert whole.shape == (1, 6, 13 + 1, 14 + 3)
        inner = whole[:, :, 1:14, 2:16]
        view = plan.memory.array(value)
        assert (view.shape, view.strides, view.ctypes.data) == (inner.shape, inner.strides, inner.ctypes.data)
    agrees(model, net.shapes)


@pytest.mark.numpy_kernels
def test_a_border_whose_rows_are_padding_alone() -> None:
    net = Exact()
    y = net.op("ReLU", net.conv(net.input(1, 4, 13, 14), 4, 6))
    w = net.weights(6, 1, 1, 2, 3)
    told = {"strides": "1,1", "dilations": "1,1", "pads_begin": "5,1", "pads_end": "6,1"}
    model = net.model(net.op("GroupConvolution", y, w, **told))
    with lowered():
        assert bordered(plan_of(model, net.shapes, 3))
        same(model, net.shapes, threads=(1, 2, 3, 7))
