"""Compiled recurrent networks over sequences of different lengths, against `compute`."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.core.tensor import Array
from irload.errors import ExecutionError
from irload.ops.sequence.sequences import GRUSequence, LSTMSequence, RNNSequence
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.target import AVX2, Target
from irload.plan.ir.program import Value
from irload.plan.ir.steps import RecurrentStep
from tests.plan.graphs import Net
from tests.plan.llvm.harness import BF16, TARGETS, run_step
from tests.plan.llvm.strides import strided
from tests.plan.llvm.test_bf16 import launches
from tests.plan.llvm.test_bf16_recurrent import scaled
from tests.plan.llvm.test_recurrent import GATES, recurrent

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
OPS = {
    "lstm": LSTMSequence,
    "gru": GRUSequence,
    "gru_linear": GRUSequence,
    "rnn": RNNSequence,
    "rnn_relu": partial(RNNSequence, activations=("relu",)),
}


def with_lengths(step: RecurrentStep) -> RecurrentStep:
    lengths = Value(step.inputs[0].shape[:1], np.dtype(np.int64))
    return RecurrentStep([*step.inputs, lengths], step.outputs, cell=step.cell, backwards=step.backwards)


def expected(step: RecurrentStep, arrays: list[Array], lengths: Array) -> tuple[Array, ...]:
    """The results of the operation."""
    hidden, direction = step.outputs[0].shape[-1], {v: k for k, v in DIRECTIONS.items()}[step.backwards]
    linear = {"linear_before_reset": step.cell == "gru_linear"} if step.cell.startswith("gru") else {}
    op = OPS[step.cell](hidden_size=hidden, direction=direction, **linear)
    return op.compute(*arrays, lengths, *(v.source.array for v in step.weights if v.source is not None))


def random_step(seed: int) -> tuple[RecurrentStep, list[Array], Array]:
    """A step, arrays for all inputs but the lengths, and lengths, some 0. Data beyond the ends are sometimes NaN."""
    rng = np.random.default_rng(seed)
    batch, length = int(rng.choice([1, 2, 5, 17, 35])), int(rng.choice([1, 2, 6]))
    depth, hidden = int(rng.choice([1, 2, 15, 33])), int(rng.choice([1, 2, 15, 16, 17, 37, 70]))
    step, arrays = recurrent(list(GATES)[seed % 5], list(DIRECTIONS.values())[seed % 3], batch, length, depth, hidden)
    lengths = rng.integers(0, length + 1, batch)
    if seed // 4 % 2:
        arrays[0][np.arange(length)[None] >= lengths[:, None]] = np.nan
    return step, arrays, lengths


@pytest.mark.parametrize("seed", range(60))
def test_random_lengths(seed: int) -> None:
    """Any cell, direction, layout, target, number of samples and threads."""
    step, arrays, lengths = random_step(seed)
    rng = np.random.default_rng(seed)
    compiled = with_lengths(step)
    compiled.check()
    target, threads = TARGETS[int(rng.integers(len(TARGETS)))], int(rng.integers(1, 4))
    how = {"laid": strided(rng) if rng.random() < 0.5 else None, "at_end": bool(rng.random() < 0.5)}
    outputs = run_step(compiled, [*arrays, lengths], target, threads, **how)
    for ours, wanted in zip(outputs, expected(step, arrays, lengths), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(12))
def test_random_lengths_in_bf16(target: Target, seed: int) -> None:
    step, arrays, lengths = random_step(seed)
    step = scaled(step)
    outputs = run_step(with_lengths(step), [*arrays, lengths], target, 1 + seed % 3, precision="bf16")
    for ours, wanted in zip(outputs, expected(step, arrays, lengths), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-2)


def test_the_kernel_reads_lengths_at_run_time() -> None:
    def code(batch: int, length: int) -> Kernel:
        return launches(with_lengths(recurrent("lstm", (False,), batch, length, 64, 64)[0]), AVX2, "f32")[
            -1
        ].kernel.code

    assert code(32, 40) == code(50, 7)
    assert code(32, 40) != launches(recurrent("lstm", (False,), 32, 40, 64, 64)[0], AVX2, "f32")[-1].kernel.code


def model(kind: str) -> irload.Model:
    """A bidirectional LSTM, GRU or RNN of any batch and length, with lengths as an input in i64."""
    net, size, gates = Net(), 6, {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}[kind]
    x, lengths = net.input(-1, -1, 3), net.integers(-1)
    states = [net.input(-1, 2, size) for _ in range(2 if gates == 4 else 1)]
    weights = [net.weights(2, gates * size, 3), net.weights(2, gates * size, size), net.weights(2, gates * size)]
    options = {"version": "opset5", "outputs": len(states) + 1, "hidden_size": size, "direction": "bidirectional"}
    return net.model(*net.ops(kind, x, *states, lengths, *weights, **options))


@pytest.mark.parametrize("kind", ["LSTMSequence", "GRUSequence", "RNNSequence"])
def test_models_with_lengths(kind: str) -> None:
    rng = np.random.default_rng(0)
    compiled, plain = (irload.compile_model(model(kind), 2, optimize=o) for o in (True, False))
    for batch, length in ((2, 4), (3, 7), (1, 5), (5, 1)):
        states = [rng.standard_normal((batch, 2, 6)).astype("f4") for _ in range(2 if kind == "LSTMSequence" else 1)]
        x, lengths = rng.standard_normal((batch, length, 3)).astype("f4"), rng.integers(0, length + 1, batch)
        feeds = [x, lengths, *states]
        for ours, wanted in zip(compiled(feeds).values(), plain(feeds).values(), strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_wrong_lengths_are_refused(wrong: int) -> None:
    feeds = [np.zeros((2, 4, 3), "f4"), np.array([4, wrong], "i8"), np.zeros((2, 2, 6), "f4")]
    for optimize in (True, False):
        with pytest.raises(ExecutionError, match=rf"sequence_lengths must be in 0\.\.4, found \[4, {wrong}\]"):
            irload.compile_model(model("GRUSequence"), 1, optimize=optimize)(feeds)
