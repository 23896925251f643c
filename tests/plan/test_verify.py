"""Programs that break the rules, each in one way, and plans whose calls or steps do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irload.plan.backends.base import Options
from irload.plan.backends.numpy.selection.selector import Selector
from irload.plan.backends.numpy.selection.table import SELECTIONS
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import PlanInvalid, Program, Step, Value
from irload.plan.ir.steps import (
    Broadcast,
    Concat,
    Conv,
    ConvTranspose,
    Elementwise,
    GroupNormalize,
    MatMul,
    Normalize,
    Pool,
    Reduce,
    Resample,
    Reshape,
    RotaryEmbedding,
    Sample,
    Slice,
    Softmax,
    Transpose,
)
from irload.plan.ir.verify import verify
from irload.plan.threads import Part
from tests.plan.programs import constant, mapped, random, value

RELU = Expression(1, (Instruction("relu", (0,)),))


def weights(*shape: int) -> Value:
    return constant(random(*shape))


def window(out: tuple[int, ...], w: Value | None = None) -> Conv:
    data, kernel = value(1, 4, 5, 5), weights(1, 6, 4, 3, 3) if w is None else w
    return Conv([data, kernel], [value(*out)], strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))


BROKEN: dict[str, Callable[[], Step]] = {
    "number of operands": lambda: Elementwise([value(2), value(2)], [value(2)], expression=RELU),
    "not made yet": lambda: Elementwise([value(2)], [value(2)], expression=Expression(1, (Instruction("relu", (1,)),))),
    "have together": lambda: Elementwise([value(3)], [value(1)], expression=RELU),
    "shape mismatch": lambda: Elementwise([value(3)], [value(2)], expression=RELU),
    "the dtype is float32": lambda: Elementwise([Value((2,), np.dtype("f8"))], [value(2)], expression=RELU),
    "number of elements": lambda: Reshape([value(2, 3)], [value(5)]),
    "sorted order": lambda: Transpose([value(2, 3)], [value(3, 2)], order=(1, 1)),
    "the shape is (2, 3)": lambda: Transpose([value(2, 3)], [value(2, 3)], order=(1, 0)),
    "the shape is (3,)": lambda: Slice([value(5)], [value(3)], index=(slice(0, 2),)),
    "the output have together": lambda: Broadcast([value(2, 3)], [value(1, 3)]),
    "channels of the data": lambda: window((1, 6, 3, 3), w=weights(1, 6, 5, 3, 3)),
    "(1, 6, 3, 4)": lambda: window((1, 6, 3, 4)),
    "the weights are no constant": lambda: window((1, 6, 3, 3), w=value(1, 6, 4, 3, 3)),
    "batch and channels": lambda: ConvTranspose(
        [value(1, 4, 5, 5), weights(1, 4, 3, 2, 2)],
        [value(1, 2, 6, 6)],
        strides=(1, 1),
        dilations=(1, 1),
        begin=(0, 0),
    ),
    "length of the sums": lambda: MatMul([value(2, 3), value(4, 5)], [value(2, 5)]),
    "(2, 4)": lambda: MatMul([value(2, 3), value(3, 5)], [value(2, 4)]),
    "number of strides": lambda: Pool(
        [value(1, 2, 5, 5)],
        [value(1, 2, 4, 4)],
        kind="max",
        kernel=(2, 2),
        strides=(1,),
        dilations=(1, 1),
        pads_begin=(0, 0),
    ),
    "taps lie outside": lambda: Resample(
        [value(2, 3)], [value(2, 5)], axis=1, index=np.full((5, 1), 3), weight=np.ones((5, 1), np.float32)
    ),
    "not in order": lambda: Reduce([value(2, 3, 4)], [value(3)], kind="sum", axes=(2, 0)),
    "expected (2, 1, 4) or (2, 4)": lambda: Reduce([value(2, 3, 4)], [value(3, 4)], kind="sum", axes=(1,)),
    "out of range": lambda: Softmax([value(2, 3)], [value(2, 3)], axis=2),
    "the axes": lambda: Normalize([value(2, 3)], [value(2, 3)], axes=(0,), eps=1.0),
    "whole groups": lambda: GroupNormalize([value(1, 3, 4), value(3), value(3)], [value(1, 3, 4)], groups=2, eps=1.0),
    "two halves": lambda: RotaryEmbedding([value(2, 3), value(2, 3), value(2, 3)], [value(2, 3)]),
    "coordinates of a point": lambda: Sample(
        [value(1, 2, 4, 5), value(1, 3, 3, 3)],
        [value(1, 2, 3, 3)],
        mode="nearest",
        padding="zeros",
        align_corners=False,
    ),
    "the shape is (2, 5)": lambda: Concat([value(2, 3), value(2, 4)], [value(2, 5)], axis=1),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_step_that_breaks_its_rule_is_found(message: str) -> None:
    step = BROKEN[message]()
    given = [v for v in step.inputs if not v.is_constant]
    with pytest.raises(PlanInvalid, match="step 0") as caught:
        verify(Program([step], given, step.outputs))
    assert message in str(caught.value)


def test_a_value_is_made_before_it_is_taken() -> None:
    first, x = mapped("relu", value(2)), value(2)
    second = mapped("relu", first.output)
    program = Program([second, first], [x, *first.inputs], [second.output])
    with pytest.raises(PlanInvalid, match=r"after a pass: step 0, Elementwise .* which no earlier step makes"):
        verify(program, "a pass")


def test_a_value_has_one_maker() -> None:
    x, y = value(2), value(2)
    with pytest.raises(PlanInvalid, match="step 0 makes already"):
        verify(Program([Elementwise([x], [y], expression=RELU), Elementwise([x], [y], expression=RELU)], [x], [y]))
    with pytest.raises(PlanInvalid, match="which is a constant"):
        verify(Program([Elementwise([x], [constant(random(2))], expression=RELU)], [x], [x]))


def test_every_output_is_made() -> None:
    with pytest.raises(PlanInvalid, match="no step makes the output"):
        verify(Program([], [], [value(2)]))


# -- what the sanitizer finds in bound plans ---------------------------------------------------------------------------


def planned(monkeypatch: pytest.MonkeyPatch, bind: Callable[[Elementwise, Selector], Part]) -> tuple[Executor, Value]:
    """The plan of relu(x) · 2 whose steps are bound so."""
    monkeypatch.setitem(SELECTIONS, Elementwise, lambda step, selector: ("broken", [[bind(step, selector)]]))
    x = value(2, 3)
    first = mapped("relu", x)
    second = mapped("add", first.output, x)
    return Executor(Program([first, second], [x], [second.output]), Options(1)), x


@pytest.mark.numpy_kernels
def test_a_copy_that_was_made_at_binding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(step: Elementwise, selector: Selector) -> Part:
        return [(np.copyto, (selector.array(step.output), selector.array(step.inputs[0]).T.reshape(-1).reshape(2, 3)))]

    with pytest.raises(
        PlanInvalid,
        match=r"Elementwise \(Elementwise, broken\): copyto takes float32\[2, 3\], .*.*step was compiled",
    ):
        planned(monkeypatch, bind)


@pytest.mark.numpy_kernels
def test_a_step_that_changes_what_is_still_needed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(step: Elementwise, selector: Selector) -> Part:
        return [(selector.array(step.inputs[0]).fill, (0,))]

    plan, _ = planned(monkeypatch, bind)
    with pytest.raises(PlanInvalid, match=r"step 0, Elementwise \(Elementwise\), changes .*still needed"):
        plan.run([random(2, 3)])


@pytest.mark.numpy_kernels
def test_what_nobody_wrote_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = planned(monkeypatch, lambda step, selector: [(selector.array(step.inputs[0]).sum, ())])
    assert np.isnan(plan.run([random(2, 3)])[0]).all()
