"""Operations on booleans and integers, and comparisons, in compiled kernels give the bits of `compute`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.registry import compiled_backend
from models import ir
from tests.plan.graphs import Net, agrees

NUMPY: dict[str, Any] = {"auto_broadcast": "numpy"}
COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
LOGICAL = ("LogicalAnd", "LogicalOr", "LogicalXor")
BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
ARITHMETIC = ("Add", "Subtract", "Multiply", "Minimum", "Maximum", "SquaredDifference")
SHIFTS = ("BitwiseLeftShift", "BitwiseRightShift")


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    if compiled_backend(Options()) is None:
        pytest.skip("no compiled kernels")


def special(rng: np.random.Generator, *shape: int) -> Array:
    """Random numbers from few values, including zeros of both signs, limits of integers, infinities and NaN."""
    values = [0, -0.0, 1, -1, 0.5, -7.9, 3e4, 2.0**31, -(2.0**31), 3e18, 1e20, np.inf, -np.inf, np.nan]
    return rng.choice(np.array(values, np.float32), shape)


class Masks:
    """Random booleans, integers and numbers of one shape, from two inputs."""

    def __init__(self, seed: int, *shape: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.net = Net(seed)
        column = (*(-1 if n < 0 else 1 for n in shape[:-1]), shape[-1]) if self.rng.random() < 0.5 else shape
        self.numbers = [self.net.input(*shape), self.net.input(*column)]
        self.masks = [self._compared()]
        self.integers = {t: [self._converted(self.numbers[0], t) for _ in range(2)] for t in ("i32", "i64")}
        self.bytes = {t: [self._converted(self.numbers[1], t)] for t in ("u8", "i8")}

    def _converted(self, value: Any, to: str) -> Any:
        return self.net.op("Convert", value, destination_type=to)

    def _integer(self, t: str) -> Any:
        """An operation on integers of one type, mostly with two operands."""
        net, integers = self.net, self.integers[t]
        a, b = self._pick(integers), self._pick(integers)
        divisor = net.constant(np.array(self._pick((1, 2, 7, 2**31 - 1)), np.int32 if t == "i32" else np.int64))
        makers: list[Callable[[], Any]] = [
            lambda: net.op(self._pick(ARITHMETIC), a, b, **NUMPY),
            lambda: net.op(self._pick(ARITHMETIC), a, b, **NUMPY),
            lambda: net.op("Divide", a, divisor, m_pythondiv=True, **NUMPY),
            lambda: net.op(self._pick(("FloorMod", "Mod")), a, divisor, **NUMPY),
            lambda: net.op(self._pick(BITWISE), a, b, version="opset13", **NUMPY),
            lambda: net.op(self._pick(SHIFTS), a, self._pick((b, divisor)), version="opset15", **NUMPY),
            lambda: net.op(self._pick(("Negative", "Abs", "Sign", "ReLU")), a),
            lambda: net.op("BitwiseNot", a, version="opset13"),
            lambda: net.op("Clamp", a, min=-1e30, max=self._pick((2.5, 3e9, 1e30))),
            lambda: net.op("Clamp", a, min=-1.5, max=2.5),
            lambda: net.op("Ceiling", a),
            lambda: net.op("Select", self._pick(self.masks), a, b, **NUMPY),
            lambda: self._converted(self._pick(self.integers["i64" if t == "i32" else "i32"]), t),
            lambda: self._converted(self._pick(self.numbers), t),
            lambda: self._converted(self._pick(self.masks), t),
            lambda: self._converted(self._pick(self.bytes[self._pick(("u8", "i8"))]), t),
        ]
        return self._pick(makers)()

    def _byte(self, t: str) -> Any:
        """A conversion to u8 or i8, or an operation on them that does not calculate."""
        bytes = self.bytes[t]
        makers: list[Callable[[], Any]] = [
            lambda: self._converted(self._pick(self.numbers), t),
            lambda: self._converted(self._pick(self.masks), t),
            lambda: self._converted(self._pick(self.integers[self._pick(("i32", "i64"))]), t),
            lambda: self._converted(self._pick(self.bytes["i8" if t == "u8" else "u8"]), t),
            lambda: self.net.op("Select", self._pick(self.masks), self._pick(bytes), self._pick(bytes), **NUMPY),
        ]
        return self._pick(makers)()

    def _pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _compared(self) -> Any:
        a, b = self._pick(self.numbers), self._pick(self.numbers)
        other = self.net.constant(np.float32(0.5)) if self.rng.random() < 0.3 else b
        return self.net.op(self._pick(COMPARISONS), a, other, **NUMPY)

    def grow(self) -> None:
        net, masks = self.net, self.masks
        makers: list[Callable[[], Any]] = [
            self._compared,
            lambda: net.op(self._pick(LOGICAL), self._pick(masks), self._pick(masks), **NUMPY),
            lambda: net.op(self._pick(BITWISE), self._pick(masks), self._pick(masks), version="opset13", **NUMPY),
            lambda: net.op("LogicalNot", self._pick(masks)),
            lambda: net.op("BitwiseNot", self._pick(masks), version="opset13"),
            lambda: net.op("IsNaN", self._pick(self.numbers), version="opset10"),
            lambda: net.op("Convert", self._pick(self.numbers), destination_type="boolean"),
            lambda: net.op(self._pick(COMPARISONS), *(self._pick(self.integers["i64"]) for _ in range(2)), **NUMPY),
            lambda: net.op("Convert", self._pick(self.integers["i32"]), destination_type="boolean"),
            lambda: net.op("Convert", self._pick(self.bytes["u8"]), destination_type="boolean"),
            lambda: net.op(self._pick(COMPARISONS), *(self._pick(self.bytes["i8"]) for _ in range(2)), **NUMPY),
        ]
        masks.append(self._pick(makers)())
        for t, integers in self.integers.items():
            integers.append(self._integer(t))
        for t, bytes in self.bytes.items():
            bytes.append(self._byte(t))
        if self.rng.random() < 0.3:
            self.numbers.append(self._converted(self._pick(self.integers[self._pick(("i32", "i64"))]), "f32"))
        if self.rng.random() < 0.3:
            self.numbers.append(self._converted(self._pick(self.bytes[self._pick(("u8", "i8"))]), "f32"))
        if self.rng.random() < 0.6:
            a, b = self._pick(self.numbers), self._pick(self.numbers)
            self.numbers.append(net.op("Select", self._pick(masks), a, b, **NUMPY))
        if self.rng.random() < 0.3:
            self.numbers.append(net.op("Convert", self._pick(masks), destination_type="f32"))
        if self.rng.random() < 0.3:
            self.numbers.append(net.op("Multiply", self.numbers[-1], self._pick(self.numbers), **NUMPY))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_random_masks(seed: int, *, dynamic: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.choice([1, 2, 5, 8, 17, 33], int(rng.integers(1, 4)))]
    masks = Masks(seed, *([-1] * dynamic), *shape)
    for _ in range(8):
        masks.grow()
    integers = [v for kind in (masks.integers, masks.bytes) for values in kind.values() for v in values[-3:]]
    model = masks.net.model(*masks.masks[-4:], *masks.numbers[2:][-4:], *integers)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for batch in (3, 4, 9) if dynamic else (1,):
        inputs = [special(rng, *(batch if n < 0 else n for n in shape)) for shape in masks.net.shapes]
        for actual, expected in zip(compiled(inputs).values(), plain(inputs).values(), strict=True):
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(actual, expected)


def test_they_are_one_kernel() -> None:
    net = Net()
    x, y = net.input(4, 50), net.input(4, 50)
    mask = net.op(
        "LogicalAnd", net.op("Less", x, y, **NUMPY), net.op("LogicalNot", net.op("Equal", x, y, **NUMPY)), **NUMPY
    )
    model = net.model(net.op("Select", mask, x, net.constant(np.float32(-1e9)), **NUMPY))
    (step,) = irload.compile_model(model, 1).profile([np.ones((4, 50), np.float32)] * 2)
    assert step.operation.count("+") == 4
    assert step.kernel == "Pointwise"


def test_integers_from_products_are_fused() -> None:
    """As in a router: positions are computed from the results of kernels."""
    net = Net()
    x = net.input(6, 40)
    whole = net.op("Convert", net.op("Multiply", x, net.constant(np.float32(10)), **NUMPY), destination_type="i64")
    place = net.op("Divide", whole, net.constant(np.array(4)), m_pythondiv=True, **NUMPY)
    inside = net.op("Less", place, net.constant(np.array(3)), **NUMPY)
    model = net.model(net.op("Select", inside, place, net.op("Negative", place), **NUMPY))
    steps = irload.compile_model(model, 1).profile([np.ones((6, 40), np.float32)])
    assert {step.kernel for step in steps} == {"Pointwise"}
    assert [step.operation for step in steps] == ["Multiply+Convert+Divide+Negative+Less+Select"]


@pytest.mark.parametrize("divisor", [0, -2])
def test_divisors_that_are_not_positive_are_not_compiled(divisor: int) -> None:
    net = Net()
    whole = net.op("Convert", net.input(6, 40), destination_type="i32")
    model = net.model(net.op("Divide", whole, net.constant(np.int32(divisor)), m_pythondiv=True, **NUMPY))
    compiled = irload.compile_model(model, 1)
    x = np.full((6, 40), 7, np.float32)
    if divisor:
        np.testing.assert_array_equal(compiled([x])[0], 7 // divisor)
    else:
        with pytest.raises(irload.IRError, match="zero"):
            compiled([x])


def test_hashes_of_integers_are_one_kernel() -> None:
    """Operations that only integers have, at the ends of the range, where results wrap, and with all counts of bits."""
    net, limits = Net(), np.iinfo(np.int64)
    x = net.integers(9, 40)
    high = net.op("BitwiseRightShift", x, net.constant(np.array(13)), version="opset15", **NUMPY)
    mixed = net.op("Abs", net.op("BitwiseXor", x, high, version="opset13", **NUMPY))
    counts = net.constant(np.arange(-3, 77, 2))
    mixed = net.op("BitwiseLeftShift", mixed, counts, version="opset15", **NUMPY)
    squares = net.op("SquaredDifference", mixed, x, **NUMPY)
    model = net.model(net.op("FloorMod", squares, net.constant(np.array(1000)), **NUMPY))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    numbers = np.random.default_rng(0).integers(limits.min, limits.max, (9, 40), endpoint=True)
    numbers[0, :3] = limits.min, limits.max, -1
    np.testing.assert_array_equal(compiled([numbers])[0], plain([numbers])[0])
    assert [step.kernel for step in compiled.profile([numbers])] == ["Pointwise"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("axes", [[0], [-1], [1, 0], [2, -3]], ids=str)
@pytest.mark.parametrize("type", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceLogicalAnd", "ReduceLogicalOr"])
def test_reductions_are_kernels(type: str, axes: list[int], *, keep_dims: bool) -> None:
    net, limits = Net(), np.iinfo(np.int64)
    x = net.integers(3, 5, 20)
    source = net.op("Greater", x, net.constant(np.array(0)), **NUMPY) if "Logical" in type else x
    reduced = net.op(type, source, net.constant(axes), keep_dims=keep_dims)
    model = net.model(reduced)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    numbers = np.random.default_rng(0).integers(limits.min, limits.max, (3, 5, 20), endpoint=True)
    numbers[1], numbers[:, 2] = 7, limits.min
    np.testing.assert_array_equal(compiled([numbers])[0], plain([numbers])[0])
    assert "compute" not in {step.kernel for step in compiled.profile([numbers])}


def test_one_plan_reduces_any_number_of_integers() -> None:
    """As the lengths of sentences, which are sums of their masks."""
    net = Net()
    x = net.integers(-1, -1)
    lengths = net.op("ReduceSum", x, net.constant([1]), keep_dims=True)
    largest = net.op("ReduceMax", x, net.constant([0]), keep_dims=False)
    model = net.model(net.op("Subtract", net.op("Multiply", x, lengths, **NUMPY), largest, **NUMPY))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for shape in ((2, 5), (3, 7), (1, 40), (9, 300), (4, 1)):
        x = np.random.default_rng(0).integers(-(2**62), 2**62, shape)
        np.testing.assert_array_equal(compiled([x])[0], plain([x])[0])


def test_means_and_products_of_integers_are_computed() -> None:
    net = Net()
    x = net.integers(3, 20)
    model = net.model(*(net.op(name, x, net.constant([1]), keep_dims=False) for name in ("ReduceMean", "ReduceProd")))
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    numbers = np.arange(-30, 30).reshape(3, 20)
    for actual, expected in zip(compiled([numbers]).values(), plain([numbers]).values(), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("order", ["power first", "selection first"])
@pytest.mark.parametrize("kind", ["Select", "FakeQuantize"])
@pytest.mark.parametrize("producer", ["none", "conv", "matmul"])
def test_instructions_that_no_back_end_has_together_stay_apart(producer: str, kind: str, order: str) -> None:
    """Compiled kernels have few exponents, and NumPy has no selections."""
    net = Net()
    x = net.input(1, 3, 8, 8)
    y = {"none": lambda: x, "conv": lambda: net.conv(x, 3, 3), "matmul": lambda: net.op("MatMul", x, net.weights(8, 8))}
    half = net.constant(np.full((1, 1, 1, 1), 0.5, np.float32))
    bounds = [half, half, *(net.constant(np.full((1, 1, 1, 1), n, np.float32)) for n in (-1, 1))]

    def selected(v: ir.Ref) -> ir.Ref:
        if kind == "FakeQuantize":
            return net.op("FakeQuantize", v, *bounds, levels=2)
        return net.op("Select", net.op("Greater", v, half), v, net.op("Multiply", v, half))

    def powered(v: ir.Ref) -> ir.Ref:
        return net.op("Power", net.op("Abs", v), net.constant(np.float32(2.4)))

    first, second = (powered, selected) if order == "power first" else (selected, powered)
    agrees(net.model(second(first(y[producer]()))), net.shapes)
