"""Products in bf16 by tiles and by dot products: emulated, and native if the machine supports them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.channels_last import layouts
from irload.plan.backends.llvm.compiler import compile_object
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels import few_channels, few_outputs, precision
from irload.plan.backends.llvm.kernels.groups import groups_per_tile
from irload.plan.backends.llvm.loader import load
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import AMX, AVX512_BF16, Target
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ConvStep, ConvTransposeStep, MatMulStep
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import BF16, DOTS, TILES, WIDE, channels_last, run_step
from tests.plan.llvm.matmuls import random_matmul
from tests.plan.llvm.roundings import SIZES, narrowed, random_convolution, rounded, some_convolution
from tests.plan.programs import constant, run, value


@pytest.fixture(autouse=True)
def sums_along_channels_are_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract convolutions to few channels, too, whose other kernel does not round weights to bf16."""
    monkeypatch.setattr(few_outputs, "FEW_OUTPUTS_SHARE", 0)


def agree(step: ConvStep | MatMulStep, arrays: list[Array], target: Target, threads: int, **how: object) -> None:
    """The result equals the f32 result on operands rounded to bf16, and the f32 result within 1 %."""
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    (exact,) = run([step], values, step.outputs, passes=False)
    values = {v: narrowed(a) if v in step.inputs[:2] else a for v, a in values.items()}
    own = rounded(step)
    (wanted,) = run([own], values, own.outputs, passes=False)
    (output,) = run_step(step, arrays, target, threads, precision="bf16", **how)  # type: ignore[arg-type]
    scale = max(float(np.abs(exact).max()), 1e-30)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5 * scale)
    np.testing.assert_allclose(output, exact, rtol=0, atol=1e-2 * scale)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(40))
def test_random_matmuls(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_matmul(rng, SIZES)
    agree(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)))


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(40))
def test_random_convolutions(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_convolution(rng)
    laid = channels_last if rng.integers(3) else None
    agree(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(42))
def test_random_convolutions_of_few_channels(monkeypatch: pytest.MonkeyPatch, target: Target, seed: int) -> None:
    monkeypatch.setattr(few_channels, "FEW_CHANNELS_SHARE", 1e-9)
    monkeypatch.setattr(precision, "LEAST_DEPTH", 99)
    rng = np.random.default_rng(seed)
    sizes = [(1, 10), (1, 1), (2, 7), (3, 7), (3, 3), (4, 5), (3, 9), (2, 16), (5, 3), (8, 4), (9, 2), (3, 33), (1, 33)]
    depth, columns = (*sizes, (10, 5))[seed % 14]
    kernel = (*(int(n) for n in rng.integers(1, 6, seed % 3)), columns)
    laid = channels_last if rng.integers(2) else None
    channels = 0 if rng.integers(2) else 5
    step, arrays = some_convolution(rng, depth, kernel, channels=channels)
    agree(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)
    step, _ = some_convolution(rng, depth, kernel, channels=channels)
    assert names(step, target) == ["Reorder", "TileProduct" if target.tiles else "Product"]


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("groups", "channels", "depth", "together"),
    [
        (32, 3, 4, 8),
        (8, 7, 8, 4),
        (10, 7, 5, 2),
        (9, 2, 16, 1),
        (4, 24, 16, 2),
        (6, 3, 10, 3),
        (2, 40, 2, 2),
        (4, 8, 1, 1),
    ],
)
def test_groups_side_by_side(target: Target, groups: int, channels: int, depth: int, together: int) -> None:
    rng = np.random.default_rng(groups)
    assert groups_per_tile((groups, channels, depth, 3), target) == (together if target.tiles else 1)
    for kernel, at_end in (((3, 2), True), ((1,), False)):
        step, arrays = some_convolution(rng, depth, kernel, groups, channels=channels)
        agree(step, arrays, target, int(rng.integers(1, 4)), at_end=at_end, laid=channels_last)


def product(m: int, k: int, n: int) -> MatMulStep:
    """A matmul with constant weights."""
    weights = np.random.default_rng(7).standard_normal((k, n)).astype(np.float32)
    return MatMulStep([value(m, k), constant(weights)], [value(m, n)])


def launches(
    step: Step, target: Target, precision: str = "bf16", *, precise: bool = False, innermost: bool = False
) -> list[Launch]:
    """The kernels of a step. `innermost`: convolutions read and write channels-last maps."""
    program = Program([step], [v for v in step.inputs if not v.is_constant], step.outputs)
    requests = MemoryRequests(layouts(program, [step], program.inputs) if innermost else {})
    options = Options(precise=precise, precision=precision)
    selector = Selector(Memory(program, requests), target, options, WeakValueDictionary())
    return TABLE.select(step)(step, selector)


def names(*arguments: Any, **how: Any) -> list[str]:
    return [type(launch.kernel).__name__ for launch in launches(*arguments, **how)]


@pytest.mark.parametrize(("target", "kernel"), [(TILES, "TileProduct"), (DOTS, "Product")])
def test_precision_chooses_kernels(target: Target, kernel: str) -> None:
    step = product(64, 64, 64)
    assert names(step, target) == ["Reorder", kernel]
    assert names(step, target, "auto") == ["Reorder", kernel]
    assert names(step, target, "f32") == names(step, target, "auto", precise=True) == ["Product"]
    assert names(step, WIDE, "auto") == ["Product"]


@pytest.mark.parametrize(("m", "k", "n"), [(64, 15, 512), (512, 64, 15), (4, 64, 64)])
def test_products_smaller_than_tiles_stay_in_f32(m: int, k: int, n: int) -> None:
    assert names(product(m, k, n), TILES) == ["Product"]


@pytest.mark.parametrize(
    ("depth", "channels", "columns", "kernels"),
    [
        (3, 4, 3, ["Product"]),
        (3, 8, 3, ["Reorder", "TileProduct"]),
        (10, 64, 5, ["Reorder", "TileProduct"]),
        (11, 64, 5, ["Reorder", "TileProduct"]),
        (16, 3, 3, ["Reorder", "TileProduct"]),
        (64, 2, 3, ["Product"]),
    ],
)
def test_convolutions_whose_weights_fill_tiles(depth: int, channels: int, columns: int, kernels: list[str]) -> None:
    step = convolution(np.random.default_rng(0), (96, 96), (1, channels, depth, 3, columns))[0]
    assert names(step, TILES, innermost=True) == kernels


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "expected"),
    [
        ((4, 4), (2, 2), (1, 1), ["Reorder", *["TileProduct"] * 4]),
        ((2, 3), (2, 3), (1, 1), ["Reorder", *["TileProduct"] * 6]),
        ((2, 2), (3, 1), (1, 1), ["Product"] * 3),
        ((3, 3), (1, 1), (2, 1), ["RunCopy", "RunCopy", "Product"]),
    ],
)
def test_transposed_convolutions_share_a_copy(
    kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...], expected: list[str]
) -> None:
    axes = zip((20, 20), kernel, strides, dilations, strict=True)
    out = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in axes]
    weights = constant(np.ones((1, 32, 16, *kernel), np.float32))
    step = ConvTransposeStep(
        [value(1, 32, 20, 20), weights], [value(1, 16, *out)], strides=strides, dilations=dilations, begin=(0, 0)
    )
    assert names(step, TILES, innermost=True) == expected
    arithmetic = [launch.kernel.arithmetic for launch in launches(step, DOTS, innermost=True)]
    assert ("bf16" in arithmetic) == ("TileProduct" in expected)


@pytest.mark.parametrize(
    ("m", "k", "n", "bf16"),
    [
        (64, 7, 512, False),
        (512, 64, 16, False),
        (4, 64, 64, False),
        (64, 8, 512, True),
        (512, 64, 17, True),
        (16, 64, 64, True),
    ],
)
def test_dot_products_are_used_for_smaller_sizes(m: int, k: int, n: int, bf16: bool) -> None:
    kernel = launches(product(m, k, n), DOTS)[-1].kernel
    assert kernel.why == ("compiled, bf16 by AVX512_BF16" if bf16 else "compiled")


def test_winograd_is_left_to_f32_where_bf16_saves_less() -> None:
    step = convolution(np.random.default_rng(0), (28, 28), (1, 64, 64, 3, 3), pads=((1, 1), (1, 1)))[0]
    assert names(step, TILES, innermost=True) == ["Reorder", "TileProduct"]
    assert names(step, DOTS, innermost=True) == ["Winograd"]
    assert names(step, DOTS, innermost=True, precise=True) == ["Reorder", "Product"]


def test_groups_of_few_channels_fill_tiles_or_vectors() -> None:
    step = convolution(np.random.default_rng(0), (28, 28), (32, 4, 4, 3, 3), pads=((1, 1), (1, 1)))[0]
    assert names(step, TILES, innermost=True) == ["Reorder", "TileProduct"]
    assert names(step, DOTS, innermost=True) == ["SlidingWindows"]


@pytest.mark.parametrize(
    ("target", "said"),
    [(TILES, ("TileProduct", "compiled, bf16 by AMX")), (DOTS, ("Product", "compiled, bf16 by AVX512_BF16"))],
)
def test_explanations_include_the_precision(target: Target, said: tuple[str, str]) -> None:
    step = product(64, 64, 64)
    program = Program([step], step.inputs[:1], step.outputs)
    executable = LlvmExecutable([step], Memory(program), target, Options(precision="bf16"))
    assert [(k.name, k.why) for k in executable.kernels] == [said]


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
def test_nan_and_infinities_affect_only_their_rows(target: Target) -> None:
    weights = np.ones((33, 20), np.float32)
    weights[5, 7] = np.nan
    weights[6, 8] = 3.4e38  # ∞ in bf16
    step = MatMulStep([value(20, 33), constant(weights)], [value(20, 20)])
    data = np.ones((20, 33), np.float32)
    data[3, 32], data[4, 0], data[4, 1], data[5, 2] = np.inf, np.inf, -np.inf, np.nan
    wanted = np.full((20, 20), 33.0)
    wanted[3], wanted[:, 8], wanted[4:6], wanted[:, 7] = np.inf, np.inf, np.nan, np.nan
    (output,) = run_step(step, [data], target, precision="bf16")
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_nan_affects_only_its_windows(monkeypatch: pytest.MonkeyPatch, target: Target, depth: int) -> None:
    monkeypatch.setattr(few_channels, "FEW_CHANNELS_SHARE", 1e-9)
    step, (data, other) = convolution(np.random.default_rng(depth), (9, 40), (1, 16, depth, 3, 3))
    data[0, :, 4, 20] = np.nan
    (output,) = run_step(step, [data, other], target, precision="bf16")
    inside = np.zeros(output.shape, bool)
    inside[:, :, 2:5, 18:21] = True
    np.testing.assert_array_equal(np.isnan(output), inside)


SAPPHIRE_RAPIDS = replace(AMX, cpu="sapphirerapids", features="")


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("target", "instruction"),
    [(AMX, "x86.tdpbf16ps"), (SAPPHIRE_RAPIDS, "x86.tdpbf16ps"), (AVX512_BF16, "x86.avx512bf16.dpbf16ps.512")],
    ids=["AMX by features", "AMX by processor", "AVX512_BF16"],
)
@pytest.mark.parametrize("seed", range(4))
def test_instructions_compile_and_load(
    monkeypatch: pytest.MonkeyPatch, target: Target, instruction: str, seed: int
) -> None:
    monkeypatch.setattr(few_channels, "FEW_CHANNELS_SHARE", 1e-9)
    monkeypatch.setattr(precision, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(precision, "LEAST_PAIRS", 0)
    rng = np.random.default_rng(seed)
    for step, _ in (
        some_convolution(rng, 35, (3, 3)),
        some_convolution(rng, 3, (7, 7)),
        some_convolution(rng, 16, (4,), groups=2),
    ):
        kernels = [launch.kernel for launch in launches(step, target)]
        assert f"@llvm.{instruction}(" in kernels[-1].text(target)
        for kernel in kernels:
            assert load(compile_object(kernel.text(target), target)).address
