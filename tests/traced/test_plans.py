"""Traced plans give the results of plain execution, at every shape, with and without compiled kernels."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.element import ElementType
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.backends.llvm.library import library
from irload.plan.ir.steps import RecurrentStep
from irload.plan.traced import planning
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.families import REUSE, VARIANTS
from tests.harness.tiers import tiered
from tests.plan.compressed_weights import Weights
from tests.plan.graphs import Net
from tests.traced.nets import codec, detector, encoder, fully_convolutional, linear, recurrent, similarities, windowed

MODELS: dict[str, tuple[Callable[[], Model], Callable[[np.random.Generator], tuple[int, ...]]]] = {
    "encoder": (encoder, lambda r: (int(r.integers(1, 4)), int(r.integers(1, 60)), 32)),
    "fully_convolutional": (
        fully_convolutional,
        lambda r: (int(r.integers(1, 4)), 3, 2 * int(r.integers(2, 20)), 2 * int(r.integers(2, 20))),
    ),
    "windowed": (windowed, lambda r: (int(r.integers(1, 4)), int(r.integers(3, 30)), int(r.integers(3, 30)), 16)),
}

TRANSPOSED = {"transpose_a": False, "transpose_b": True}


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def variants(compiled: CompiledModel) -> int:
    return len(compiled._traced.families.recent)


def agrees(compiled: CompiledModel, plain: CompiledModel, x: Array) -> None:
    for actual, expected in zip(compiled(x).values(), plain(x).values(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [{}, {"jit": False}, {"threads": 2}], ids=str)
def test_results_at_random_shapes(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    make, shape = MODELS[name]
    model = make()
    compiled = irload.compile_model(model, **{"threads": 1, **options})
    plain = irload.compile_model(model, 1, optimize=False)
    rng = np.random.default_rng(3)
    for seed in range(tiered(6, 12)):
        agrees(compiled, plain, values(*shape(rng), seed=seed))
    assert 1 <= variants(compiled) <= VARIANTS


def test_no_layer_of_a_windowed_map_is_left_to_the_interpreter() -> None:
    compiled = irload.compile_model(windowed(), 1)
    plain = irload.compile_model(windowed(), 1, optimize=False)
    for height, width in ((12, 20), (9, 14), (30, 7), (13, 13), (16, 8), (12, 16)):
        agrees(compiled, plain, values(2, height, width, 16))
    remainders = [variant.remainder for variant in compiled._traced.families.recent]
    assert remainders == [None, None], "one plan for padded maps, one for multiples of the window"


def test_frames_that_are_counted_in_floats() -> None:
    compiled = irload.compile_model(codec(), 1)
    plain = irload.compile_model(codec(), 1, optimize=False)
    for samples in (40, 41, 57, 63, 100, 204):
        agrees(compiled, plain, values(2, 1, samples))
    assert {variant.remainder for variant in compiled._traced.families.recent} == {None}


@pytest.mark.parametrize("options", [{}, {"jit": False}], ids=str)
def test_sizes_are_returned_as_numbers(options: dict[str, Any]) -> None:
    net = Net()
    x = net.input(-1, 8)
    y = net.op("MatMul", x, net.constant(values(8, 4)), transpose_a=False, transpose_b=False)
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    half = net.op("Divide", shape, net.constant([2, 2]))
    compiled = irload.compile_model(net.model(y, shape, half), 1, **options)
    for size in (7, 8, 11, 13):
        _, whole, quotients = compiled(values(size, 8)).values()
        assert whole.dtype == quotients.dtype == np.int64
        assert (whole.tolist(), quotients.tolist()) == ([size, 8], [size // 2, 4])


def test_one_plan_serves_all_lengths() -> None:
    compiled = irload.compile_model(encoder(), 1)
    plain = irload.compile_model(encoder(), 1, optimize=False)
    for length in (20, 30, 5, 60, 41, 2, 33, 30):
        agrees(compiled, plain, values(1, length, 32))
    assert variants(compiled) == 1
    assert len(compiled._pools) == 1, "only the first shape is planned alone"
    assert "one plan" in compiled.explain(values(1, 20, 32))


def test_short_texts_share_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of an even number of rows, or one less, divide most short lines; up to 8 queries form strips of 4 or 2."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    compiled = irload.compile_model(encoder(2, 64, 2), 1)
    plain = irload.compile_model(encoder(2, 64, 2), 1, optimize=False)
    for length in (60, 64, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28):
        agrees(compiled, plain, values(1, length, 64))
    before = library.compiled
    for length in (3, 5, 7, 9, 11, 13, 15, 19, 23, 27, 28):
        agrees(compiled, plain, values(1, length, 64))
    assert library.compiled == before


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_one_plan_serves_all_image_sizes(jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd sizes as well, for which the last windows reach into the padding."""
    monkeypatch.setenv("IRLOAD_JIT", jit)
    compiled = irload.compile_model(detector(), 1)
    plain = irload.compile_model(detector(), 1, optimize=False)
    for height, width in ((40, 48), (64, 56), (37, 51), (72, 33), (39, 64), (50, 94)):
        agrees(compiled, plain, values(1, 3, height, width))
    assert variants(compiled) == 1


def test_code_of_products_reads_their_rows_columns_and_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    compiled = irload.compile_model(similarities(), 1)
    plain = irload.compile_model(similarities(), 1, optimize=False)
    for length in (101, 88, 93, 108):
        agrees(compiled, plain, values(1, length, 32))
    before = library.compiled
    for length in range(99, 180, 9):
        agrees(compiled, plain, values(1, length, 32))
    assert library.compiled == before
    for length in (3, 9, 17):
        agrees(compiled, plain, values(1, length, 32))
    assert variants(compiled) == 1


def test_buckets_of_distances_are_computed_when_a_shape_is_bound() -> None:
    """As in T5: float operations before integer ones are computed with them, not by kernels of another segment."""
    net = Net()
    x = net.input(1, -1, 8)
    sizes = net.op("ShapeOf", x, version="opset3", output_type="i64")
    length = net.op("Gather", sizes, net.constant(1), net.constant(0), version="opset8", batch_dims=0)
    positions = net.op("Range", net.constant(0), length, net.constant(1), version="opset4", output_type="i64")
    distances = net.op("Convert", positions, destination_type="f32")
    scaled = net.op(
        "Multiply", net.op("Log", net.op("Add", distances, net.constant(np.float32(1)))), net.constant(np.float32(3))
    )
    buckets = net.op("Minimum", net.op("Convert", scaled, destination_type="i64"), net.constant(9))
    bias = net.op("Gather", net.weights(10, 8), buckets, net.constant(0), version="opset8", batch_dims=0)
    compiled = irload.compile_model(model := net.model(net.op("Add", x, bias)), 1)
    for length in (5, 40, 17, 64):
        agrees(compiled, irload.compile_model(model, 1, optimize=False), values(1, length, 8))
    (variant,) = compiled._traced.families.recent
    kinds = {type(step).__name__ for step in variant.planned.program.steps}
    assert kinds <= {"GatherStep", "ElementwiseStep"}
    assert len(variant.planned.segments) == 1


def test_code_of_short_rows_and_runs_reads_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that grows by a byte per token is copied and gathered by the same code at every length."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x = net.input(2, 3, -1)
    mask = net.op("Greater", x, net.constant(np.float32(0.25)))
    longer = net.op("Concat", mask, net.constant(np.ones((2, 3, 1), bool)), axis=-1)
    longer = net.op("Gather", longer, net.constant([2, 0, 1]), net.constant(1), version="opset8", batch_dims=0)
    kept = net.op("Select", longer, net.constant(np.float32(1)), net.constant(np.float32(0)))
    model = net.model(kept, net.op("Softmax", net.op("Add", x, net.constant(np.float32([[[1], [2], [3]]]))), axis=2))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    before = 0
    for length in (90, 80, *range(2, 70, 3), 300):
        agrees(compiled, plain, values(2, 3, length))
        assert length >= 80 or library.compiled == before, f"length {length}"
        before = library.compiled


def test_one_plan_serves_sequences_of_all_lengths() -> None:
    compiled = irload.compile_model(recurrent(), 1)
    plain = irload.compile_model(recurrent(), 1, optimize=False)
    for batch, length in ((2, 4), (3, 5), (2, 9), (4, 2)):
        agrees(compiled, plain, values(batch, length, 8))
    (variant,) = compiled._traced.families.recent
    assert any(isinstance(step, RecurrentStep) for step in variant.template.program.steps)


def test_shapes_that_the_plan_does_not_fit_are_refused_as_before() -> None:
    compiled = irload.compile_model(encoder(), 1)
    for length in (20, 30):
        compiled(values(1, length, 32))
    with pytest.raises(irload.IRError, match="cannot broadcast"):
        compiled(values(1, 65, 32))  # the table has 64 positions
    compiled(values(1, 40, 32))
    assert variants(compiled) == 1


def test_memory_is_that_of_the_largest_shape() -> None:
    model = encoder()
    compiled = irload.compile_model(model, 1)
    rng = np.random.default_rng(0)
    for length in rng.permutation(np.arange(3, 64)).tolist():
        compiled(values(2, length, 32))
    (variant,) = compiled._traced.families.recent
    (workspace,) = variant.idle
    alone = irload.compile_model(model, 1)
    alone(values(2, 63, 32))
    ((plan,),) = alone._pools.values()
    assert workspace.arena.size < 1.3 * plan.nbytes["values"] + 4096


def test_results_do_not_depend_on_other_shapes() -> None:
    model = encoder()
    used, fresh = irload.compile_model(model, 1), irload.compile_model(model, 1)
    for length in (9, 60, 3, 17):
        used(values(1, length, 32))
    for length in (8, 17):
        fresh(values(1, length, 32))
    x = values(1, 17, 32, seed=5)
    np.testing.assert_array_equal(used(x)[0], fresh(x)[0])


def test_callers_in_many_threads() -> None:
    model = encoder()
    compiled = irload.compile_model(model, 1)
    plain = irload.compile_model(model, 1, optimize=False)
    inputs = [values(1, 2 + (7 * k) % 50, 32, seed=k) for k in range(40)]
    expected = [plain(x)[0] for x in inputs]
    with ThreadPoolExecutor(6) as callers:
        outputs = list(callers.map(lambda x: compiled(x)[0], inputs))
    for a, b in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert sum(len(v.idle) for v in compiled._traced.families.recent) <= 6


def test_limits_hold_for_every_shape() -> None:
    limits = irload.Limits(peak_bytes=300_000)
    compiled = irload.compile_model(encoder(1), 1, limits=limits)
    for length in (10, 20, 30):
        compiled(values(1, length, 32))
    with pytest.raises(irload.LimitExceeded):
        compiled(values(60, 50, 32))
    compiled(values(1, 25, 32))


def test_plans_that_depend_on_the_sizes_are_traced_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    x = net.input(-1, -1, 16)
    model = net.model(linear(net, x, 16, 16))
    compiled = irload.compile_model(model, 1)
    plain = irload.compile_model(model, 1, optimize=False)
    monkeypatch.setattr(planning, "traced_program", _specialised(planning.traced_program))
    for length in range(2, 2 + 3 * VARIANTS):
        agrees(compiled, plain, values(1, length, 16))
    (family,) = [f for f in compiled._traced.families._by_pattern.values() if f.plans_added]
    assert family.plans_added == VARIANTS
    assert family.shapes_bound < REUSE * VARIANTS
    assert "depend on the sizes" in compiled._traced.explained() or variants(compiled)


def _specialised(planned: Callable[..., planning.TracedProgram]) -> Callable[..., planning.TracedProgram]:
    """Fixes the size of every symbol, like a kernel with compiled-in sizes."""

    def created(part: Any, trace: Any, options: Any, **how: Any) -> planning.TracedProgram:
        for k, hint in enumerate(trace.hints[: trace.symbols]):
            trace.holds("==", {(k,): 1, (): -hint})
        return planned(part, trace, options, **how)

    return created


def test_a_trace_that_fails_leaves_the_static_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "lower", lambda part, *_: range(part.types[part.parameters[0]].shape[1].lo))
    compiled = irload.compile_model(encoder(), 1)
    plain = irload.compile_model(encoder(), 1, optimize=False)
    for length in (5, 6, 7):
        agrees(compiled, plain, values(1, length, 32))
    assert not variants(compiled)
    assert "planned separately, because TypeError" in compiled.explain(values(1, 7, 32))


@pytest.mark.parametrize("jit", [None, False])
def test_memory_is_released_with_the_model(jit: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    compiled = irload.compile_model(encoder(), 1, jit=jit)
    for length in (5, 20, 30):
        compiled(values(1, length, 32))
    (variant,) = compiled._traced.families.recent
    (workspace,) = variant.idle
    kept = weakref.ref(workspace)
    gc.disable()
    try:
        del compiled, variant, workspace
        assert kept() is None
    finally:
        gc.enable()


def test_a_plan_that_cannot_be_bound_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irload.compile_model(encoder(), 1)
    plain = irload.compile_model(encoder(), 1, optimize=False)
    for length in (5, 6):
        agrees(compiled, plain, values(1, length, 32))
    assert variants(compiled) == 1

    def bind(*_: object) -> None:
        raise KeyError("defect")

    monkeypatch.setattr("irload.plan.traced.workspace.Workspace.bind", bind)
    for length in (7, 6, 5, 7):
        agrees(compiled, plain, values(1, length, 32))
    compiled.prepare(values(1, 9, 32))
    assert not variants(compiled)
    assert "KeyError" in compiled.explain(values(1, 7, 32))


def test_a_product_whose_data_are_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    model = net.model(net.op("MatMul", net.weights(5, 4), net.input(-1, 4, -1), transpose_a=False, transpose_b=False))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for size in (3, 4, 9):
        agrees(compiled, plain, values(2, 4, size))
    assert variants(compiled) == 1


def test_a_product_along_a_dynamic_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probabilities of unfused attention times the values of tokens."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x = net.input(-1, 4, -1)
    means = net.op("ReduceMean", x, net.constant([1]), keep_dims=True)
    model = net.model(net.op("MatMul", x, net.op("Add", means, x), transpose_a=False, transpose_b=True))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for seed, shape in enumerate(((1, 4, 7), (2, 4, 9), (3, 4, 8), (2, 4, 3000), (5, 4, 11))):
        agrees(compiled, plain, values(*shape, seed=seed))
    assert variants(compiled) == 1


@pytest.mark.parametrize("options", [{}, {"jit": False}], ids=str)
def test_late_constants_at_two_positions(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two concatenations of constants. They differ in the position of the constant that depends on the input's size.

    The other constants are the same bytes of the file.
    """
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x = net.input(-1, 8)
    rows = net.op(
        "Gather", net.op("ShapeOf", x, version="opset3", output_type="i64"), net.constant([0]), net.constant(0)
    )
    left = net.op("FloorMod", net.op("Multiply", rows, net.constant([-1])), net.constant([5]))
    joined = [net.concat(*(left if k == at else net.constant([0]) for k in range(7)), axis=0) for at in (2, 4)]
    product = net.op("MatMul", x, net.constant(values(8, 4)), transpose_a=False, transpose_b=False)
    path = tmp_path / "model.xml"
    irload.save_model(net.model(product, *joined), path)
    compiled, plain = irload.compile_model(path, 1, **options), irload.compile_model(path, 1, optimize=False)
    for size in (7, 8, 11, 13):
        agrees(compiled, plain, values(size, 8))
    assert variants(compiled) == 1


@pytest.mark.parametrize("fill", [0, 2])
def test_padding_of_maps_of_unknown_size(fill: int) -> None:
    net = Net()
    counts = net.constant([0, 0, 1, 2]), net.constant([0, 0, 2, 0])
    padded = net.op("Pad", net.input(-1, 3, -1, -1), *counts, net.constant(np.float32(fill)), pad_mode="constant")
    model = net.model(net.conv(padded, 3, 4, 3))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for seed, shape in enumerate(((1, 3, 7, 6), (2, 3, 9, 12), (3, 3, 8, 9))):
        agrees(compiled, plain, values(*shape, seed=seed))
    assert variants(compiled) == 1


@pytest.mark.parametrize("element", [et.u4, et.i8, et.f16], ids=lambda e: e.name)
@pytest.mark.parametrize("options", [{}, {"jit": False}], ids=str)
def test_compressed_weights(element: ElementType, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels for one row and for many rows read the same packed weights."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    groups = 0 if element is et.f16 else 3
    x = net.op("MatMul", net.input(-1, 96), Weights(element, 40, 96, groups, groups > 0, "f32").of(net), **TRANSPOSED)
    model = net.model(net.op("ReLU", x))
    compiled = irload.compile_model(model, 1, **options)
    plain = irload.compile_model(model, 1, optimize=False)
    for seed, rows in enumerate((64, 1, 7, 2, 130)):
        agrees(compiled, plain, values(rows, 96, seed=seed))
