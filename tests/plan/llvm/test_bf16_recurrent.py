"""Recurrent networks in bf16 by tiles and by dot products, emulated and where the machine has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.compiler import compile_object
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.loader import load
from irload.plan.backends.llvm.target import AMX, AVX512_BF16, Target
from irload.plan.ir.program import Program
from irload.plan.ir.steps import Recurrent
from irload.plan.memory.memory import Memory
from tests.plan.llvm.harness import BF16, DOTS, TILES, WIDE, run_step
from tests.plan.llvm.roundings import narrowed
from tests.plan.llvm.test_bf16 import launches, names
from tests.plan.llvm.test_recurrent import GATES, recurrent, reversed_axis
from tests.plan.programs import constant, run

DIRECTIONS = [(False,), (True,), (False, True)]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def rounded_recurrent(step: Recurrent, arrays: list[Array]) -> list[Array]:
    """The outputs where every product rounds its two operands to bf16, and nothing else is rounded."""
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
            given = inputs[:, t].swapaxes(0, 1)
            if step.cell == "lstm":
                f, i, g, o = (a + p for a, p in zip(given, products(h, 0, 1, 2, 3), strict=True))
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            elif step.cell == "rnn":
                h = np.tanh(given[0] + products(h, 0)[0])
            else:
                z, reset = (sigmoid(a + p) for a, p in zip(given, products(h, 0, 1), strict=False))
                linear = step.cell == "gru_linear"
                new = reset * (products(h, 2)[0] + inner) if linear else products(reset * h, 2)[0]
                h = (1 - z) * np.tanh(given[2] + new) + z * h
            y[:, d, t] = h
        states[0][:, d] = h
        if step.cell == "lstm":
            states[1][:, d] = c
    return [y, *states]


def scaled(step: Recurrent) -> Recurrent:
    """The same with weights as trained nets have them: their products with the state are of its size."""
    x, *states = step.inputs[:-3]
    size = (x.shape[-1] + states[0].shape[-1]) ** 0.5
    constants = [constant(v.source.array / size) for v in step.inputs[-3:] if v.source is not None]
    return Recurrent([x, *states, *constants], step.outputs, cell=step.cell, backwards=step.backwards)


def agree(step: Recurrent, arrays: list[Array], target: Target, threads: int, **how: object) -> None:
    """Results are those of rounded products, up to numbers that fall on the other side, and within 1 % those of f32."""
    step = scaled(step)
    given = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    exact = run([step], given, step.outputs, passes=False)
    found = run_step(step, arrays, target, threads, precision="bf16", **how)  # type: ignore[arg-type]
    for ours, wanted, near in zip(found, rounded_recurrent(step, arrays), exact, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-3)
        np.testing.assert_allclose(ours, near, rtol=0, atol=1e-2)


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


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("cell", list(GATES))
@pytest.mark.parametrize("hidden", [5, 37])
def test_what_is_not_finite_stays_in_its_sample(cell: str, hidden: int, target: Target) -> None:
    """Infinities saturate gates as they do in f32: what fills vectors and tiles up takes no part."""
    step, arrays = recurrent(cell, (False, True), 3, 4, 5, hidden)
    arrays[0][0, 2, 3], arrays[0][1, 2, 3] = np.nan, np.inf
    given = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    exact = run([step], given, step.outputs, passes=False)
    for ours, wanted in zip(run_step(step, arrays, target, precision="bf16"), exact, strict=True):
        np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(wanted))


@pytest.mark.parametrize(("target", "kind"), [(TILES, "Tile"), (DOTS, "Dot")])
def test_precision_chooses_kernels(target: Target, kind: str) -> None:
    step, _ = recurrent("lstm", (False,), 1, 16, 64, 64)
    short = ["ToBf16", f"{kind}Product", f"{kind}Recurrence"]
    assert names(step, target) == names(step, target, "auto") == short
    plain = ["Product", "Recurrence"]
    assert names(step, target, "f32") == names(step, target, "auto", precise=True) == names(step, WIDE, "auto") == plain


@pytest.mark.parametrize(
    ("length", "depth", "hidden", "kernel"),
    [
        (16, 64, 63, "TileRecurrence"),
        (16, 63, 64, "TileRecurrence"),
        (99, 63, 63, "Recurrence"),
        (8, 64, 64, "TileRecurrence"),
        (7, 64, 64, "Recurrence"),
    ],
)
def test_what_is_too_small_stays_in_f32(length: int, depth: int, hidden: int, kernel: str) -> None:
    assert names(recurrent("lstm", (False,), 1, length, depth, hidden)[0], TILES)[-1] == kernel


@pytest.mark.parametrize(("target", "way"), [(TILES, "AMX"), (DOTS, "AVX512_BF16")])
@pytest.mark.parametrize("depth", [4, 300])
def test_explanations_say_the_precision(target: Target, way: str, depth: int) -> None:
    """Whichever kernel of the step stands for it."""
    step, _ = recurrent("gru", (False, True), 2, 20, depth, 64)
    executable = LlvmExecutable(
        [step], Memory(Program([step], step.inputs[:2], step.outputs)), target, Options(precision="bf16")
    )
    assert [k.why for k in executable.kernels] == [f"compiled, bf16 by {way}"]


SAPPHIRE_RAPIDS = replace(AMX, cpu="sapphirerapids", features="")


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
