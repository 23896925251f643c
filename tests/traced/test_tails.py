"""Layers after NonZero and similar ones are planned when their shapes are known, and agree with plain execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.tensor import Array
from irload.model import Model
from irload.plan import folding
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.families import TAIL_VARIANTS
from tests.plan.graphs import Net
from tests.traced.test_plans import values

NUMPY: dict[str, Any] = {"auto_broadcast": "numpy"}
PRODUCT: dict[str, Any] = {"transpose_a": False, "transpose_b": False}


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled kernels if they are installed."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")


def positive_rows(net: Net, x: Any) -> Any:
    """The rows of a matrix whose first element is positive."""
    first = net.op("Slice", x, *map(net.constant, ([0], [1], [1], [1])), version="opset8")
    mask = net.op(
        "Greater",
        net.op("Reshape", first, net.constant([-1]), special_zero=False),
        net.constant(np.float32(0)),
        **NUMPY,
    )
    where = net.op("NonZero", mask, version="opset3", output_type="i64")
    return net.op("Gather", x, net.op("Squeeze", where, net.constant([0])), net.constant(0))


def perceptron(net: Net, x: Any, seed: int) -> Any:
    """Enough layers for a plan."""
    for k in range(3):
        weights = net.constant(values(8, 8, seed=seed + k) / 3)
        x = net.op("ReLU", net.op("Add", net.op("MatMul", x, weights, **PRODUCT), net.constant(values(8)), **NUMPY))
    return x


def detector(levels: int = 1) -> Model:
    """Layers, a selection of rows, and further layers; several times."""
    net = Net()
    x = perceptron(net, net.input(-1, 8), 0)
    for level in range(levels):
        x = perceptron(
            net, net.op("Subtract", positive_rows(net, x), net.constant(np.float32(0.3)), **NUMPY), 10 * level
        )
    return net.model(x)


def rows(counts: tuple[int, int], seed: int) -> Array:
    """A matrix with these numbers of positive and negative rows."""
    signs = np.repeat([1, -1], counts).astype(np.float32)
    return np.abs(values(sum(counts), 8, seed=seed)) * np.random.default_rng(seed).permutation(signs)[:, None]


def agrees(compiled: CompiledModel, plain: CompiledModel, x: Array) -> None:
    for actual, expected in zip(compiled(x).values(), plain(x).values(), strict=True):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def tails(compiled: CompiledModel) -> list[int]:
    """The number of plans of each tail."""
    plans = [plans.families for plans in compiled._tails.values()]
    return [sum(family.plans_added for family in plan._by_pattern.values()) for plan in plans]


@pytest.mark.parametrize("options", [{}, {"jit": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("levels", [1, 3])
def test_results_for_all_counts(levels: int, options: dict[str, Any]) -> None:
    model = detector(levels)
    compiled = irload.compile_model(model, **{"threads": 1, **options})
    plain = irload.compile_model(model, 1, optimize=False)
    for seed, counts in enumerate(((5, 2), (7, 9), (3, 1), (6, 2), (0, 4), (1, 3), (2, 5), (40, 3), (0, 2), (5, 0))):
        agrees(compiled, plain, rows(counts, seed))


def test_one_plan_serves_all_counts() -> None:
    net = Net()
    x = net.input(-1, 8)
    model = net.model(perceptron(net, positive_rows(net, x), 5))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for count in range(2, 30):
        agrees(compiled, plain, rows((count, 40 - count), count))
    assert tails(compiled) == [1]
    steps = compiled.profile(rows((9, 31), 0))
    assert [s.operation for s in steps if s.kernel == "compute"].count("NonZero") == 1
    assert [s.shape for s in steps if s.operation.startswith("MatMul")] == [(9, 8)] * 3


def test_numbers_that_depend_on_shapes_cross() -> None:
    """The tail reshapes to sizes of the input of the model, one of them −1, and multiplies by the number of rows."""
    net = Net()
    x = net.input(-1, 4, -1)
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    width = net.op("Gather", shape, net.constant([2]), net.constant(0))
    flat = net.op("Reshape", x, net.constant([-1]), special_zero=False)
    where = net.op("NonZero", net.op("ReLU", flat), version="opset3", output_type="i64")
    chosen = net.op("Gather", flat, net.op("Squeeze", where, net.constant([0])), net.constant(0))
    padded = net.op("Pad", chosen, net.constant([0]), width, net.constant(np.float32(2)), pad_mode="constant")
    first = net.op("Slice", padded, net.constant([0]), width, net.constant([1]), net.constant([0]), version="opset8")
    sizes = net.concat(net.constant([-1]), width, axis=0)
    row = net.op("Reshape", first, sizes, special_zero=False)
    product = net.op("MatMul", row, net.op("Transpose", row, net.constant([1, 0])), **PRODUCT)
    scaled = net.op("Multiply", product, net.op("Convert", width, destination_type="f32"), **NUMPY)
    model = net.model(scaled, net.op("Exp", row))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for seed, (batch, width) in enumerate(((2, 5), (3, 5), (2, 9), (4, 12), (3, 7))):
        agrees(compiled, plain, values(batch, 4, width, seed=seed))
    variants = [variant for plans in compiled._tails.values() for variant in plans.families.recent]
    assert all(variant.remainder is None for variant in variants)
    assert any(variant.read is not None and len(variant.read) < len(variant.elements) for variant in variants)


@pytest.mark.parametrize("element", [et.f16, et.bf16], ids=lambda e: e.name)
def test_short_floats(element: et.ElementType) -> None:
    net = Net()
    x = net.op("Convert", net.input(-1, 8), destination_type=element.name)
    y = net.op(
        "Convert", positive_rows(net, net.op("Convert", x, destination_type="f32")), destination_type=element.name
    )
    half = net.codes(values(8, 8).astype(element.dtype), element)
    for _ in range(3):
        y = net.op("Tanh", net.op("ReLU", net.op("MatMul", y, half, **PRODUCT)))
    model = net.model(net.op("Convert", y, destination_type="f32"))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for seed in range(4):
        actual, expected = (c(rows((4 + seed, 3), seed))[0] for c in (compiled, plain))
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, atol=0.05)


def test_variables_behind_a_selection() -> None:
    """A variable that is assigned in the tail, and grows."""
    net = Net()
    x = perceptron(net, positive_rows(net, net.input(-1, 8)), 3)
    empty = net.constant(np.zeros((0, 8), np.float32))
    how: dict[str, Any] = {"variable_id": "kept", "variable_type": "f32", "variable_shape": "?,8"}
    joined = net.concat(net.op("ReadValue", empty, version="opset6", **how), x, axis=0)
    net.op("Assign", joined, version="opset6", variable_id="kept")
    model = net.model(perceptron(net, joined, 4))
    compiled, plain = (irload.compile_model(model, 1, optimize=o).create_infer_request() for o in (True, False))
    for seed in range(6):
        actual, expected = (next(iter(c.infer(rows((2 + seed % 3, 3), seed)).values())) for c in (compiled, plain))
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_errors_in_a_tail_name_the_layer() -> None:
    net = Net()
    x = perceptron(net, positive_rows(net, net.input(-1, 8)), 3)
    model = net.model(perceptron(net, net.op("Add", x, net.constant(values(6, 8)), **NUMPY), 4))
    compiled = irload.compile_model(model, 1)
    assert compiled(rows((6, 2), 0))[0].shape == (6, 8)
    for count in (4, 5, 7):
        with pytest.raises(irload.IRError, match=r"Add.*cannot broadcast"):
            compiled(rows((count, 2), 0))
    assert compiled(rows((1, 2), 0))[0].shape == (6, 8)


def test_tails_with_too_many_patterns_are_not_planned() -> None:
    """Rows chosen from several inputs, 0, 1 or more of each, and joined."""
    net = Net()
    inputs = [net.input(-1, 8) for _ in range(5)]
    chosen = [positive_rows(net, x) for x in inputs]
    model = net.model(perceptron(net, net.concat(*chosen, axis=0), 0))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    rng = np.random.default_rng(0)
    for seed in range(12):
        feed = [rows((int(n), 4 - int(n)), seed) for n in rng.integers(0, 3, 5)]
        for actual, expected in zip(compiled(feed).values(), plain(feed).values(), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    assert max(tails(compiled)) == TAIL_VARIANTS


def experts(count: int = 6, tokens: int = -1) -> Model:
    """Each expert multiplies the rows that it has chosen, and adds them to the sum of the previous ones."""
    net = Net()
    x, scores = net.input(tokens, 8), net.input(tokens, count)
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    total = net.op("Broadcast", net.constant(np.float32(0)), shape, version="opset3", mode="numpy")
    for expert in range(count):
        score = net.op("Gather", scores, net.constant(expert), net.constant(1), version="opset8", batch_dims=0)
        mask = net.op("Greater", score, net.constant(np.float32(0)), **NUMPY)
        where = net.op("NonZero", mask, version="opset3", output_type="i64")
        at = net.op("Squeeze", where, net.constant([0]))
        rows = perceptron(net, net.op("Gather", x, at, net.constant(0), version="opset8", batch_dims=0), 3 * expert)
        wide = net.op("ShapeOf", rows, version="opset3", output_type="i64")
        positions = net.op(
            "Broadcast", net.op("Unsqueeze", at, net.constant([1])), wide, version="opset3", mode="numpy"
        )
        how: dict[str, Any] = {"reduction": "sum", "use_init_val": True}
        total = net.op("ScatterElementsUpdate", total, positions, rows, net.constant(0), version="opset12", **how)
    return net.model(perceptron(net, total, 50))


def test_experts_have_separate_plans() -> None:
    """Each has a plan for 0, 1 and more rows, not one for each combination."""
    compiled, plain = irload.compile_model(experts(), 1), irload.compile_model(experts(), 1, optimize=False)
    rng = np.random.default_rng(0)
    for tokens in (4, 1, 4, 1, 1, 7, 3, 1, 4, 1, 5, 1, 1, 4):
        feed = [values(tokens, 8), rng.standard_normal((tokens, 6)).astype(np.float32)]
        for actual, expected in zip(compiled(feed).values(), plain(feed).values(), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert max(tails(compiled)) <= 3
    assert "in 7 groups" in compiled.explain([values(4, 8), values(4, 6)])


def test_a_result_that_is_known_from_shapes_belongs_to_the_caller() -> None:
    net = Net()
    mask = net.op("Convert", net.integers(1), destination_type="boolean")
    where = net.op("Squeeze", net.op("NonZero", mask, version="opset3", output_type="i64"), net.constant([0]))
    rows = net.op("Gather", net.input(1, 18), where, net.constant(0), version="opset8", batch_dims=0)
    wide = net.op("Broadcast", rows, net.constant([1, 1, 18]), version="opset3", mode="numpy")
    compiled = irload.compile_model(net.model(net.op("ShapeOf", wide, version="opset3", output_type="i64")), 1)
    for _ in range(3):
        (shape,) = compiled([np.ones(1, np.int64), values(1, 18)]).values()
        assert shape.tolist() == [1, 1, 18]
        shape.fill(2)


def chosen_twice() -> Model:
    """Layers that read a constant of more than `VALUE_LIMIT` elements, whose nonzero elements are chosen."""
    net = Net()
    table = np.zeros(1 << 17, np.float32)
    table[:: 1 << 12] = np.arange(1, 33)
    where = net.op("NonZero", net.constant(table), version="opset3", output_type="i64")
    x = positive_rows(net, net.input(-1, 8))
    for _ in range(4):
        count = net.op(
            "ReduceSum", net.op("Convert", where, destination_type="f32"), net.constant([0, 1]), keep_dims=False
        )
        ones = net.op("NonZero", x, version="opset3", output_type="i64")
        x = net.op("Add", x, net.op("Multiply", count, net.constant(np.float32(1e-7)), **NUMPY), **NUMPY)
        x = net.op(
            "Add",
            x,
            net.op("ReduceMax", net.op("Convert", ones, destination_type="f32"), net.constant([0, 1]), keep_dims=False),
            **NUMPY,
        )
    return net.model(x, where)


@pytest.mark.parametrize("folds", [True, False])
def test_constants_whose_shapes_depend_on_values(folds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are folded. If that takes too much memory, a tail with their layers is not planned again within itself."""
    if not folds:
        monkeypatch.setattr(folding, "LARGE", 0)
        monkeypatch.setattr(folding, "GROWTH", 0)
    model = chosen_twice()
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for counts in ((5, 2), (3, 1), (5, 2)):
        agrees(compiled, plain, rows(counts, 1))
    operations = [step.operation for step in compiled.profile(rows((5, 2), 1))]
    assert operations.count("NonZero") == (5 if folds else 6)


def test_tails_without_plans_run_one_by_one() -> None:
    """As in a tokenizer, where each operation returns as many texts as it finds."""
    net = Net()
    x = net.input(-1)
    for _ in range(12):
        x = net.op("NonZero", x, version="opset3", output_type="i64")
    model = net.model(x)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for size in (9, 12, 9):
        data = np.maximum(values(size), 0)
        agrees(compiled, plain, data)
    assert next(iter(compiled._tails.values())).is_fruitless


def test_experts_without_rows_run_no_plan() -> None:
    """Their scatters return the data."""
    model = experts(count=3, tokens=4)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for without in (1, 0, 2, 1):
        scores = np.ones((4, 3), np.float32)
        scores[:, without] = -1
        for actual, expected in zip(
            compiled([values(4, 8), scores]).values(), plain([values(4, 8), scores]).values(), strict=True
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    variants = [v for plans in compiled._tails.values() for v in plans.families.recent]
    assert any(v.passed is not None and v.template is None for v in variants)
    assert any(v.template is not None for v in variants)
