"""Compiled recurrent networks against the NumPy back end."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.target import AVX2, Target
from irload.plan.ir.program import Value
from irload.plan.ir.steps import RecurrentStep
from tests.plan.llvm.convolutions import check_step
from tests.plan.llvm.harness import DOTS, TARGETS, TILES, guarded
from tests.plan.llvm.test_bf16 import launches
from tests.plan.programs import constant, random, value

pytest.importorskip("llvmlite")

GATES = {"lstm": (4, 4), "gru": (3, 3), "gru_linear": (3, 4), "rnn": (1, 1), "rnn_relu": (1, 1)}
"""Gates of the weights, and of the bias."""


def recurrent(
    cell: str, backwards: tuple[bool, ...], batch: int, length: int, depth: int, hidden: int
) -> tuple[RecurrentStep, list[Array]]:
    """A step and arrays for its inputs."""
    weights, biases = GATES[cell]
    d = len(backwards)
    states = [(batch, d, hidden)] * (2 if cell == "lstm" else 1)
    shapes = [(d, weights * hidden, depth), (d, weights * hidden, hidden), (d, biases * hidden)]
    constants = [constant(random(*shape, seed=k) / 2) for k, shape in enumerate(shapes)]
    inputs = [value(batch, length, depth), *(value(*s) for s in states)]
    outputs = [value(batch, d, length, hidden), *(value(*s) for s in states)]
    arrays = [random(*v.shape, seed=9 + k) for k, v in enumerate(inputs)]
    return RecurrentStep([*inputs, *constants], outputs, cell=cell, backwards=backwards), arrays


def reversed_axis(value: Value, plain: Array) -> Array:
    """Every second element of a longer last axis, reversed."""
    return guarded((*plain.shape[:-1], 2 * plain.shape[-1]))[..., ::-2]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("cell", list(GATES))
@pytest.mark.parametrize("backwards", [(False,), (True,), (False, True)])
@pytest.mark.parametrize(
    ("batch", "length", "depth", "hidden"), [(1, 7, 5, 4), (1, 3, 8, 37), (5, 1, 3, 16), (19, 4, 6, 21)]
)
def test_recurrent(
    cell: str, backwards: tuple[bool, ...], batch: int, length: int, depth: int, hidden: int, target: Target
) -> None:
    step, arrays = recurrent(cell, backwards, batch, length, depth, hidden)
    for threads, at_end in ((1, True), (3, False)):
        check_step(step, arrays, target, threads, at_end=at_end)


@pytest.mark.parametrize("cell", list(GATES))
def test_other_strides(cell: str) -> None:
    step, arrays = recurrent(cell, (False, True), 2, 5, 6, 11)
    check_step(step, arrays, AVX2, laid=reversed_axis)


def test_nonfinite_values_stay_in_their_sample() -> None:
    step, arrays = recurrent("lstm", (False,), 3, 4, 5, 9)
    arrays[0][1, 2, 3] = np.nan
    check_step(step, arrays, AVX2)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("target", [TILES, DOTS], ids=lambda t: t.name)
def test_lengths_share_one_kernel(target: Target, precision: str) -> None:
    """The kernel reads length, batch and direction at run time."""

    def code(backwards: bool, batch: int, length: int) -> Kernel:
        step, _ = recurrent("lstm", (backwards,), batch, length, 64, 64)
        return launches(step, target, precision)[-1].kernel.code

    wanted = code(False, 32, 40)
    for backwards, batch, length in ((True, 32, 40), (False, 32, 7), (True, 50, 100)):
        assert code(backwards, batch, length) == wanted
