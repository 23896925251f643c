"""Back ends are added by registration; NumPy runs unsupported steps, for all layouts that the back end may use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.ops.index import MODULES
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.selection import TABLE as COMPILED
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.backends.numpy.selection.table import TABLE
from irload.plan.backends.registry import backends, registered
from irload.plan.backends.table import StepTable
from irload.plan.executor import Executor
from irload.plan.experts.operations import ExpertMatMul, ExpertOrder, ExpertSum
from irload.plan.ir import steps as vocabulary
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import PlanInvalid, Program, Step, Value
from irload.plan.ir.steps import (
    ElementwiseStep,
    ExpressionStep,
    PoolStep,
    ProductStep,
    RelayoutStep,
    ViewStep,
    WithEpilogue,
)
from irload.plan.ir.verify import verify
from irload.plan.lowering.table import LOWERINGS
from irload.plan.memory.layout import Layout
from tests.plan.programs import mapped, random, run, value
from tests.plan.toy import Toy

DIGITS = Path(__file__).parents[2] / "models" / "digits"
BASES = {Step, ExpressionStep, ProductStep, ViewStep, WithEpilogue}
STEPS = [
    cls for cls in vars(vocabulary).values() if isinstance(cls, type) and issubclass(cls, Step) and cls not in BASES
]


@pytest.mark.parametrize("cls", STEPS, ids=lambda cls: cls.__name__)
def test_every_step_has_a_check(cls: type[Step]) -> None:
    assert cls.check is not Step.check


def test_numpy_runs_every_step_but_sums_of_samples() -> None:
    """NumPy is faster with the `compute` of the operations that are lowered to them."""
    assert set(STEPS) - set(TABLE.rows) == {vocabulary.SampleSumStep}


@pytest.mark.parametrize("table", [TABLE, COMPILED], ids=["numpy", "llvm"])
def test_the_selection_of_every_row_exists(table: StepTable[Any]) -> None:
    for cls in table.rows:
        assert callable(table.select(object.__new__(cls)))


def test_a_step_without_a_row_is_not_supported() -> None:
    step = ElementwiseStep([value(2)], [value(2)], expression=Expression(1))
    assert not StepTable[Any]("anywhere", {}).supports(step)


def test_every_lowering_belongs_to_an_operation() -> None:
    known = {name for types in MODULES.values() for name in types.split()}
    only_in_plans = {ExpertMatMul.type, ExpertOrder.type, ExpertSum.type}
    assert set(LOWERINGS) - only_in_plans <= known


def digits(toy: Toy) -> tuple[irload.CompiledModel, np.ndarray, np.ndarray]:
    """The digits model with a back end registered, its inputs, and the result of plain execution."""
    x = np.concatenate([np.load(DIGITS / f"digit_{k}_0.npy") for k in range(4)])
    with registered(toy):
        compiled = irload.compile_model(DIGITS / "model.xml", 2)
        compiled(x)
    return compiled, x, irload.compile_model(DIGITS / "model.xml", optimize=False)(x)[0]


@pytest.mark.parametrize(
    "layout",
    [
        None,
        Layout(storage=np.dtype(np.float64)),
        Layout((0, 2, 3, 1)),
    ],
    ids=["planar", "another type", "channels last"],
)
@pytest.mark.numpy_kernels
def test_a_toy_and_numpy_run_the_digits(layout: Layout | None) -> None:
    toy = Toy(layout)
    compiled, x, expected = digits(toy)
    np.testing.assert_allclose(compiled(x)[0], expected, rtol=1e-5, atol=1e-6)
    own = [type(step).__name__ for steps in toy.compiled for step in steps]
    between = ["RelayoutStep"] if layout is not None and layout.is_private else []
    assert own == ["PoolStep", *between, "PoolStep", *between, "MatMulStep", "SoftmaxStep"]
    text = compiled.explain(x)
    assert "4 × loops: to be read" in text or between
    assert "kernels of toy, then" in text
    assert {t.kernel for t in compiled.profile(x, rounds=1)} >= {"loops", "im2col"}


def test_back_ends_are_offered_steps_in_order() -> None:
    options = Options(jit=False)
    assert [b.name for b in backends(options)] == ["numpy"]
    with registered(Toy()):
        assert [b.name for b in backends(options)] == ["toy", "numpy"]
    assert [b.name for b in backends(options)] == ["numpy"]


def test_a_private_layout_never_leaves_its_back_end() -> None:
    """Neither for values returned to the caller, nor for values read by both back ends."""
    x, pooled = value(1, 3, 4, 4), value(1, 3, 2, 2)
    pool = PoolStep([x], [pooled], kind="max", kernel=(2, 2), strides=(2, 2), dilations=(1, 1), pads_begin=(0, 0))
    again = PoolStep(
        [pooled], [value(1, 3, 1, 1)], kind="max", kernel=(2, 2), strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0)
    )
    shifted = mapped("add", pooled, 1.0)
    program = Program([pool, again, shifted], [x], [pooled, again.output, shifted.output])
    plan = Executor(program, Options(), [Toy(Layout(storage=np.dtype(np.float64))), NumpyBackend()])
    a = random(1, 3, 4, 4)
    first, second, third = plan.run([a])
    expected = a.reshape(1, 3, 2, 2, 2, 2).max((3, 5))
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, expected.max((2, 3), keepdims=True))
    np.testing.assert_array_equal(third, expected + 1)
    assert sum(isinstance(s, RelayoutStep) for s in plan.program.steps) == 2


def test_an_expression_of_several_results() -> None:
    x, y = value(2, 3), value(2, 3)
    both = Expression(2, (Instruction("add", (0, 1)), Instruction("exp", (2,)), Instruction("relu", (2,))), (3, 4))
    step = ElementwiseStep([x, y], [value(2, 3), value(2, 3)], expression=both)
    a, b = random(2, 3), random(2, 3, seed=1)
    exp, relu = run([step], {x: a, y: b}, step.outputs)
    np.testing.assert_allclose(exp, np.exp(a + b), rtol=1e-6)
    np.testing.assert_array_equal(relu, np.maximum(a + b, 0))


def test_an_expression_that_hands_operands_on() -> None:
    x, y = value(2, 3), value(2, 3)
    expression = Expression(2, (Instruction("add", (0, 1)),), (1, 2, 0))
    step = ElementwiseStep([x, y], [value(2, 3), value(2, 3), value(2, 3)], expression=expression)
    a, b = random(2, 3), random(2, 3, seed=1)
    for actual, wanted in zip(run([step], {x: a, y: b}, step.outputs), (b, a + b, a), strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_a_sole_result_is_the_last_register() -> None:
    x, out = value(2), value(2)
    step = ElementwiseStep([x], [out], expression=Expression(1, (Instruction("exp", (0,)),), (1,)))
    with pytest.raises(PlanInvalid, match="sole result"):
        verify(Program([step], [x], [out]))


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (Instruction("twist", (0,)), "is unknown"),
        (Instruction("add", (0,)), "is unknown"),
        (Instruction("clamp", (0,), (1.0,)), "is unknown"),
        (Instruction("convert", (0,)), "must name a type"),
        (Instruction("exp", (0,), (), np.dtype("f2")), "must name a type"),
        (Instruction("select", (0, 0, 0)), "arguments of the types"),
    ],
)
def test_instructions_are_typed(instruction: Instruction, message: str) -> None:
    x, out = value(2), value(2)
    step = ElementwiseStep([x], [out], expression=Expression(1, (instruction,)))
    with pytest.raises(PlanInvalid, match=message):
        verify(Program([step], [x], [out]))


def test_other_types_are_described_and_run_by_other_back_ends() -> None:
    half = np.dtype(np.float16)
    x, less, out = Value((2,), half), Value((2,), half), Value((2,), np.dtype(np.float32))
    chain = (
        Instruction("less", (0, 1)),
        Instruction("select", (2, 0, 1)),
        Instruction("convert", (3,), (), np.dtype(np.float32)),
    )
    step = ElementwiseStep([x, less], [out], expression=Expression(2, chain))
    verify(Program([step], [x, less], [out]))
    assert not TABLE.supports(step)
