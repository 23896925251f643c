"""`verify` detects programs that violate one rule, the sanitizer plans whose calls or steps violate one."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from irload.ops.image.taps import Taps
from irload.plan.backends.base import Options
from irload.plan.backends.numpy.selection import elementwise
from irload.plan.backends.numpy.selection.selector import NumpySelector
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import PlanInvalid, Program, Step, Value
from irload.plan.ir.steps import (
    BroadcastStep,
    ConcatStep,
    ConvStep,
    ConvTransposeStep,
    ElementwiseStep,
    GroupNormalizeStep,
    Integers,
    MatMulStep,
    NormalizeStep,
    PoolStep,
    ReduceStep,
    ResampleStep,
    ReshapeStep,
    RotaryEmbeddingStep,
    SampleStep,
    SliceStep,
    SoftmaxStep,
    TransposeStep,
)
from irload.plan.ir.verify import verify
from irload.plan.threads import ThreadCalls
from tests.plan.programs import constant, mapped, random, value

RELU = Expression(1, (Instruction("relu", (0,)),))


def weights(*shape: int) -> Value:
    return constant(random(*shape))


def window(out: tuple[int, ...], w: Value | None = None) -> ConvStep:
    data, kernel = value(1, 4, 5, 5), weights(1, 6, 4, 3, 3) if w is None else w
    return ConvStep([data, kernel], [value(*out)], strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))


BROKEN: dict[str, Callable[[], Step]] = {
    "number of operands": lambda: ElementwiseStep([value(2), value(2)], [value(2)], expression=RELU),
    "not defined yet": lambda: ElementwiseStep(
        [value(2)], [value(2)], expression=Expression(1, (Instruction("relu", (1,)),))
    ),
    "the broadcast shape of": lambda: ElementwiseStep([value(3)], [value(1)], expression=RELU),
    "shape mismatch": lambda: ElementwiseStep([value(3)], [value(2)], expression=RELU),
    "the dtype is float32": lambda: ElementwiseStep([Value((2,), np.dtype("f8"))], [value(2)], expression=RELU),
    "number of elements": lambda: ReshapeStep([value(2, 3)], [value(5)]),
    "sorted order": lambda: TransposeStep([value(2, 3)], [value(3, 2)], order=(1, 1)),
    "the shape is (2, 3)": lambda: TransposeStep([value(2, 3)], [value(2, 3)], order=(1, 0)),
    "the shape is (3,)": lambda: SliceStep([value(5)], [value(3)], index=(slice(0, 2),)),
    "and the output is": lambda: BroadcastStep([value(2, 3)], [value(1, 3)]),
    "channels of the data": lambda: window((1, 6, 3, 3), w=weights(1, 6, 5, 3, 3)),
    "(1, 6, 3, 4)": lambda: window((1, 6, 3, 4)),
    "the weights are not constant": lambda: MatMulStep(
        [Value((2, 4), np.dtype("u1")), Value((4, 3), np.dtype("i1"))], [value(2, 3)], integers=Integers()
    ),
    "batch and channels": lambda: ConvTransposeStep(
        [value(1, 4, 5, 5), weights(1, 4, 3, 2, 2)],
        [value(1, 2, 6, 6)],
        strides=(1, 1),
        dilations=(1, 1),
        begin=(0, 0),
    ),
    "length of the sums": lambda: MatMulStep([value(2, 3), value(4, 5)], [value(2, 5)]),
    "(2, 4)": lambda: MatMulStep([value(2, 3), value(3, 5)], [value(2, 4)]),
    "number of strides": lambda: PoolStep(
        [value(1, 2, 5, 5)],
        [value(1, 2, 4, 4)],
        kind="max",
        kernel=(2, 2),
        strides=(1,),
        dilations=(1, 1),
        pads_begin=(0, 0),
    ),
    "taps are out of range": lambda: ResampleStep(
        [value(2, 3)], [value(2, 5)], axis=1, taps=Taps(np.full((5, 1), 3), np.ones((5, 1), np.float32))
    ),
    "not sorted": lambda: ReduceStep([value(2, 3, 4)], [value(3)], kind="sum", axes=(2, 0)),
    "axes (-1, 1) are": lambda: ReduceStep([value(2, 3, 4)], [value(2, 1, 4)], kind="sum", axes=(-1, 1)),
    "the mean is of int32": lambda: ReduceStep(
        [Value((4,), np.dtype(np.int32))], [Value((), np.dtype(np.int32))], kind="mean", axes=(0,)
    ),
    "expected (2, 1, 4) or (2, 4)": lambda: ReduceStep([value(2, 3, 4)], [value(3, 4)], kind="sum", axes=(1,)),
    "out of range": lambda: SoftmaxStep([value(2, 3)], [value(2, 3)], axis=2),
    "the axes": lambda: NormalizeStep([value(2, 3)], [value(2, 3)], axes=(0,), eps=1.0),
    "modulo groups": lambda: GroupNormalizeStep(
        [value(1, 3, 4), value(3), value(3)], [value(1, 3, 4)], groups=2, eps=1.0
    ),
    "last axis modulo 2": lambda: RotaryEmbeddingStep([value(2, 3), value(2, 3), value(2, 3)], [value(2, 3)]),
    "coordinates of a point": lambda: SampleStep(
        [value(1, 2, 4, 5), value(1, 3, 3, 3)],
        [value(1, 2, 3, 3)],
        mode="nearest",
        padding="zeros",
        align_corners=False,
    ),
    "the shape is (2, 5)": lambda: ConcatStep([value(2, 3), value(2, 4)], [value(2, 5)], axis=1),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_step_that_violates_its_rule_is_detected(message: str) -> None:
    step = BROKEN[message]()
    operands = [v for v in step.inputs if not v.is_constant]
    with pytest.raises(PlanInvalid, match="step 0") as caught:
        verify(Program([step], operands, step.outputs))
    assert message in str(caught.value)


def test_a_value_is_computed_before_it_is_read() -> None:
    first, x = mapped("relu", value(2)), value(2)
    second = mapped("relu", first.output)
    program = Program([second, first], [x, *first.inputs], [second.output])
    with pytest.raises(PlanInvalid, match=r"after a pass: step 0, ElementwiseStep .* which no earlier step produces"):
        verify(program, "a pass")


def test_a_value_is_computed_by_one_step() -> None:
    x, y = value(2), value(2)
    with pytest.raises(PlanInvalid, match="step 0 already produces"):
        verify(
            Program([ElementwiseStep([x], [y], expression=RELU), ElementwiseStep([x], [y], expression=RELU)], [x], [y])
        )
    with pytest.raises(PlanInvalid, match="which is a constant"):
        verify(Program([ElementwiseStep([x], [constant(random(2))], expression=RELU)], [x], [x]))


def test_every_output_is_computed() -> None:
    with pytest.raises(PlanInvalid, match="no step produces the output"):
        verify(Program([], [], [value(2)]))


def joined() -> tuple[Program, Value, Value]:
    """relu(x), which a Concat joins with itself, and the sum of the result with a constant."""
    x = value(2, 3)
    first = mapped("relu", x)
    both = ConcatStep([first.output, first.output], [value(4, 3)], axis=0)
    last = mapped("add", both.output, 1.0)
    return Program([first, both, last], [x], [last.output]), first.output, both.output


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int8", "float64"])
def test_values_between_steps_are_stored_in_any_type_that_fits(name: str) -> None:
    program, part, whole = joined()
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    verify(program, stored={part: dtype, whole: dtype})


def test_wrong_stored_types_are_detected() -> None:
    program, part, whole = joined()
    half, integer = np.dtype(np.float16), np.dtype(np.int64)
    for stored, message in (
        ({part: half}, "step 1, ConcatStep .* keeps elements, but its operands are stored as"),
        ({program.inputs[0]: half}, "is stored as float16, but the caller reads or writes it"),
        ({program.outputs[0]: half}, "is stored as float16, but the caller reads or writes it"),
        ({part: integer, whole: integer}, "is stored as int64, which neither contains its type nor is part of it"),
    ):
        with pytest.raises(PlanInvalid, match=message):
            verify(program, stored=stored)


# -- the sanitizer on bound plans --------------------------------------------------------------------------------------


def planned(
    monkeypatch: pytest.MonkeyPatch, bind: Callable[[ElementwiseStep, NumpySelector], ThreadCalls]
) -> tuple[Executor, Value]:
    """Return the plan of relu(x) + x, whose steps are bound by `bind`."""
    monkeypatch.setattr(elementwise, "elementwise", lambda step, selector: ("broken", [[bind(step, selector)]]))
    x = value(2, 3)
    first = mapped("relu", x)
    second = mapped("add", first.output, x)
    return Executor(Program([first, second], [x], [second.output]), Options(1)), x


@pytest.mark.numpy_kernels
def test_a_copy_at_binding_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(step: ElementwiseStep, selector: NumpySelector) -> ThreadCalls:
        return [(np.copyto, (selector.array(step.output), selector.array(step.inputs[0]).T.reshape(-1).reshape(2, 3)))]

    with pytest.raises(
        PlanInvalid,
        match=r"ElementwiseStep \(ElementwiseStep, broken\): copyto takes float32\[2, 3\], .*a copy from compile time",
    ):
        planned(monkeypatch, bind)


@pytest.mark.numpy_kernels
def test_a_step_that_overwrites_a_live_value_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(step: ElementwiseStep, selector: NumpySelector) -> ThreadCalls:
        return [(selector.array(step.inputs[0]).fill, (0,))]

    plan, _ = planned(monkeypatch, bind)
    with pytest.raises(PlanInvalid, match=r"step 0, ElementwiseStep \(ElementwiseStep\), changes .*still needed"):
        plan.run([random(2, 3)])


@pytest.mark.numpy_kernels
def test_unwritten_memory_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = planned(monkeypatch, lambda step, selector: [(selector.array(step.inputs[0]).sum, ())])
    assert np.isnan(plan.run([random(2, 3)])[0]).all()
