"""Results that are written over an operand: where memory is shared, and that what comes out is right."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.base import Options
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.overwriting import written_over
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Conv
from tests.plan.llvm.harness import BF16, DOTS, TILED, TILES
from tests.plan.programs import constant, random, run, value

ADD = Expression(2, (Instruction("add", (0, 1)),))


def convolved(x: Value, channels: int, *added: Value, taps: int = 1) -> Conv:
    """A convolution that keeps the size of maps, and what is added to it."""
    pads = (taps // 2,) * 2
    weights = random(1, channels, x.shape[1], taps, taps, seed=channels) / (x.shape[1] * taps**2) ** 0.5
    return Conv(
        [x, constant(weights), *added],
        [value(x.shape[0], channels, *x.shape[2:])],
        strides=(1, 1),
        dilations=(1, 1),
        pads_begin=pads,
        pads_end=pads,
        epilogue=ADD if added else Expression(1, ()),
    )


def residual(batch: int, height: int, width: int, channels: int) -> tuple[Program, list[Step]]:
    """Two blocks of a residual net. The steps: the stem, then of each block the last one."""
    stem = convolved(value(batch, 40, height, width), channels)
    one = convolved(stem.output, 32)
    two = convolved(one.output, channels, stem.output)
    three = convolved(two.output, 48, taps=3)
    four = convolved(three.output, channels, two.output)
    last = convolved(four.output, 16)
    return Program([stem, one, two, three, four, last], stem.inputs[:1], [last.output]), [stem, two, four]


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("batch", "height", "width", "channels"),
    [(1, 4, 12, 64), (1, 16, 16, 40), (3, 2, 24, 17), (2, 4, 4, 96), (1, 8, 10, 64), (1, 7, 7, 64), (2, 5, 8, 64)],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_residuals(target: Target, batch: int, height: int, width: int, channels: int, threads: int) -> None:
    program, ends = residual(batch, height, width, channels)
    given = random(*program.inputs[0].shape)
    (wanted,) = run(program.steps, {program.inputs[0]: given}, program.outputs, passes=False)
    plan = Executor(program, Options(threads, precision="bf16"), [LlvmBackend(target, bf16=True), NumpyBackend()])
    (found,) = plan.run([given])
    assert np.abs(found - wanted).max() <= 0.03 * wanted.std()
    roots = {plan.memory.root(step.output) for step in ends}
    assert len(roots) == (1 if target.tiles and height * width % 16 == 0 else 3)


@pytest.mark.usefixtures("everything_pays")
def test_which_steps_write_over_which_operands() -> None:
    x, small = value(1, 64, 4, 12), value(1, 64, 4, 1)
    bias = constant(random(1, 64, 4, 12))

    def over(step: Conv, target: Target = TILES) -> tuple[int, ...] | None:
        return written_over([step], {step.output}, target).get(step)

    stem = convolved(value(1, 32, 4, 12), 64, x)
    assert over(stem) == (2,)
    assert over(stem, DOTS) is None
    assert written_over([stem], set(), TILES) == {}, "planar"
    assert over(convolved(x, 64, x)) is None, "the data are read for other channels"
    assert over(convolved(value(1, 32, 4, 12), 64, small)) is None
    assert over(convolved(value(1, 32, 4, 12), 64, x, taps=3)) is None
    odd = value(1, 64, 5, 12)
    assert over(convolved(value(1, 32, 5, 12), 64, odd)) is None, "tiles overlap"
    both = convolved(value(1, 32, 4, 12), 64, bias, x)
    assert over(both) == (2, 3), "constants stay in any case"


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", TILED, ids=lambda t: t.name)
def test_an_operand_that_broadcasts_cuts_lines_that_strips_may_not_overlap(target: Target) -> None:
    """16 lines of 17 columns are 17 strips of 16; where lines stay apart, strips of 9 would overlap."""
    stem = convolved(value(1, 40, 16, 17), 64)
    column = value(1, 64, 16, 1)
    end = convolved(stem.output, 32)
    three = Expression(3, (Instruction("add", (0, 1)), Instruction("add", (3, 2))))
    step = convolved(end.output, 64, stem.output, column)
    step = Conv(
        step.inputs,
        step.outputs,
        strides=step.strides,
        dilations=step.dilations,
        pads_begin=step.pads_begin,
        pads_end=step.pads_end,
        epilogue=three,
    )
    last = convolved(step.output, 16)
    program = Program([stem, end, step, last], [stem.inputs[0], column], [last.output])
    arrays = [random(*v.shape, seed=k) for k, v in enumerate(program.inputs)]
    (wanted,) = run(program.steps, dict(zip(program.inputs, arrays, strict=True)), program.outputs, passes=False)
    plan = Executor(program, Options(2, precision="bf16"), [LlvmBackend(target, bf16=True), NumpyBackend()])
    assert plan.memory.root(step.output) is stem.output
    (found,) = plan.run(arrays)
    assert np.abs(found - wanted).max() <= 0.03 * wanted.std()
