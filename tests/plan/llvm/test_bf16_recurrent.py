"""Recurrent networks in bf16 with AMX tiles and with dot products, emulated and, if the machine has them, native."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.compiler import compile_object
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.kernels.recurrent import Recurrence
from irload.plan.backends.llvm.loader import load
from irload.plan.backends.llvm.target import AMX, AVX512_BF16, Target
from irload.plan.ir.program import Program
from irload.plan.ir.steps import RecurrentStep
from irload.plan.memory.memory import Memory
from tests.plan.llvm.harness import BF16, DOTS, TILES, WIDE, run_step
from tests.plan.llvm.roundings import narrowed
from tests.plan.llvm.test_bf16 import launches, names
from tests.plan.llvm.test_recurrent import GATES, recurrent, reversed_axis
from tests.plan.programs import constant, run

DIRECTIONS = [(False,), (True,), (False, True)]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def rounded_recurrent(step: RecurrentStep, arrays: list[Array]) -> list[Array]:
    """A reference in f64 that rounds only the two operands of each product to bf16."""
    x, *states = (a.astype(np.float64) for a in arrays)
    w, r, b = (v.source.array for v in step.inputs[-3:] if v.source is not None)
    batch, length, _ = x.shape
    hidden = r.shape[-1]
    y = np.zeros(step.outputs[0].shape)
    for d, backwards in enumerate(step.backwards):
        weights = narrowed(r[d]).reshape(-1, hidden, hidden).astype(np.float64)
        inputs = narrowed(x.astype(np.float32)) @ narrowed(w[d]).T.astype(np.float64) + b[d, : len(w[d])]
        inputs = inputs.reshape(batch, length, -1, hidden)
        inner = b[d, len(w[d]) :]
        h, c = states[0][:, d], states[-1][:, d]

        def products(state: Array, *gates: int, weights: Array = weights) -> list[Array]:
            return [narrowed(state.astype(np.float32)) @ weights[g].T for g in gates]

        for t in reversed(range(length)) if backwards else range(length):
            row = inputs[:, t].swapaxes(0, 1)
            if step.cell == "lstm":
                f, i, g, o = (a + p for a, p in zip(row, products(h, 0, 1, 2, 3), strict=True))
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            elif step.cell == "rnn":
                h = np.tanh(row[0] + products(h, 0)[0])
            elif step.cell == "rnn_relu":
                h = np.maximum(row[0] + products(h, 0)[0], 0)
            else:
                z, reset = (sigmoid(a + p) for a, p in zip(row, products(h, 0, 1), strict=False))
                linear = step.cell == "gru_linear"
                new = reset * (products(h, 2)[0] + inner) if linear else products(reset * h, 2)[0]
                h = (1 - z) * np.tanh(row[2] + new) + z * h
            y[:, d, t] = h
        states[0][:, d] = h
        if step.cell == "lstm":
            states[1][:, d] = c
    return [y, *states]


def scaled(step: RecurrentStep) -> RecurrentStep:
    """The step with constants divided by √(input + hidden), so that products stay as large as the state."""
    x, *states = step.inputs[:-3]
    size = (x.shape[-1] + states[0].shape[-1]) ** 0.5
    constants = [constant(v.source.array / size) for v in step.inputs[-3:] if v.source is not None]
    return RecurrentStep([x, *states, *constants], step.outputs, cell=step.cell, backwards=step.backwards)


def agree(step: RecurrentStep, arrays: list[Array], target: Target, threads: int, **how: object) -> None:
    """The outputs are close to the reference with rounded operands (1e-3) and to f32 (1e-2)."""
    step = scaled(step)
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    exact = run([step], values, step.outputs, passes=False)
    outputs = run_step(step, arrays, target, threads, precision="bf16", **how)  # type: ignore[arg-type]
    for ours, wanted, near in zip(outputs, rounded_recurrent(step, arrays), exact, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-3)
        np.testing.assert_allclose(ours, near, rtol=0, atol=1e-2)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(40))
def test_random_recurrent(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, length = int(rng.choice([1, 1, 2, 5, 16, 17, 35])), int(rng.choice([1, 2, 5]))
    depth, hidden = int(rng.choice([1, 2, 15, 32, 33, 70])), int(rng.choice([1, 2, 15, 16, 17, 31, 33, 48, 70]))
    backwards = DIRECTIONS[int(rng.integers(3))]
    step, arrays = recurrent(list(GATES)[seed % 4], backwards, batch, length, depth, hidden)
    laid = reversed_axis if seed % 5 == 0 else None
    agree(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("cell", list(GATES))
@pytest.mark.parametrize("hidden", [5, 37])
def test_nonfinite_values_stay_in_their_sample(cell: str, hidden: int, target: Target) -> None:
    """Outputs are finite exactly where they are in f32; the padding of vectors and tiles has no effect."""
    step, arrays = recurrent(cell, (False, True), 3, 4, 5, hidden)
    arrays[0][0, 2, 3], arrays[0][1, 2, 3] = np.nan, np.inf
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    exact = run([step], values, step.outputs, passes=False)
    for ours, wanted in zip(run_step(step, arrays, target, precision="bf16"), exact, strict=True):
        np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(wanted))


@pytest.mark.parametrize(("target", "product"), [(TILES, "TileProduct"), (DOTS, "Product")])
def test_precision_chooses_kernels(target: Target, product: str) -> None:
    step, _ = recurrent("lstm", (False,), 1, 16, 64, 64)
    short = ["Reorder", product, "Recurrence"]
    assert names(step, target) == names(step, target, "auto") == short
    plain = ["Product", "Recurrence"]
    assert names(step, target, "f32") == names(step, target, "auto", precise=True) == names(step, WIDE, "auto") == plain


@pytest.mark.parametrize(
    ("length", "depth", "hidden", "element"),
    [
        (16, 64, 63, "bf16"),
        (16, 63, 64, "bf16"),
        (99, 63, 63, "f32"),
        (8, 64, 64, "bf16"),
        (7, 64, 64, "f32"),
    ],
)
def test_small_networks_stay_in_f32(length: int, depth: int, hidden: int, element: str) -> None:
    recurrence = launches(recurrent("lstm", (False,), 1, length, depth, hidden)[0], TILES)[-1].kernel
    assert isinstance(recurrence, Recurrence)
    assert recurrence.arithmetic == element


@pytest.mark.parametrize(("target", "way"), [(TILES, "AMX"), (DOTS, "AVX512_BF16")])
@pytest.mark.parametrize("depth", [4, 300])
def test_explanations_include_the_precision(target: Target, way: str, depth: int) -> None:
    """The explanation is the same for every kernel that may be selected for the step."""
    step, _ = recurrent("gru", (False, True), 2, 20, depth, 64)
    executable = LlvmExecutable(
        [step], Memory(Program([step], step.inputs[:2], step.outputs)), target, Options(precision="bf16")
    )
    assert [k.why for k in executable.kernels] == [f"compiled, bf16 by {way}"]


SAPPHIRE_RAPIDS = replace(AMX, cpu="sapphirerapids", features="")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("target", "instruction"),
    [(AMX, "x86.tdpbf16ps"), (SAPPHIRE_RAPIDS, "x86.tdpbf16ps"), (AVX512_BF16, "x86.avx512bf16.dpbf16ps.512")],
    ids=["AMX by features", "AMX by processor", "AVX512_BF16"],
)
@pytest.mark.parametrize("batch", [1, 5])
def test_instructions_compile_and_load(target: Target, instruction: str, batch: int) -> None:
    for cell in GATES:
        step, _ = recurrent(cell, (False,), batch, 40, 64, 70)
        for kernel in [launch.kernel for launch in launches(step, target)][1:]:
            assert f"@llvm.{instruction}(" in kernel.text(target)
            assert load(compile_object(kernel.text(target), target)).address
