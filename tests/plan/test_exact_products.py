"""MatMul of random shapes, transposes and epilogues, by every kernel that supports it, bit for bit."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from irload.plan.backends.numpy.kernels import packing
from irload.plan.backends.numpy.kernels import weight_streaming as streamed
from models import ir
from tests.fuzz.programs.thresholds import lowered_thresholds
from tests.plan.exact import Exact, kernels, same


@pytest.fixture(params=[True, False], ids=["in place", "copied"])
def in_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Simulates a BLAS that reads small operands in place (True) or copies them (False)."""
    for module in (packing, streamed):
        monkeypatch.setattr(module, "small_kernels", lambda: request.param)
    return request.param


def operand(net: Exact, rng: np.random.Generator, shape: tuple[int, ...]) -> ir.Ref:
    """An operand that broadcasts to a shape in some way, constant or computed."""
    narrow = tuple(n if rng.random() < 0.6 else 1 for n in shape)[int(rng.integers(0, len(shape))) :]
    roll = int(rng.integers(0, 5))
    if roll == 0:
        return net.weights(shape[-1])
    if roll == 1:
        return net.input(*narrow)
    if roll == 2:
        return net.op("ReLU", net.input(*narrow))
    if roll == 3:
        return net.weights(*narrow)
    return net.transpose(net.op("ReLU", net.input(*shape[::-1])), *reversed(range(len(shape))))


def random_epilogue(net: Exact, rng: np.random.Generator, y: ir.Ref, shape: tuple[int, ...]) -> ir.Ref:
    """The result after up to four random elementwise layers."""
    for _ in range(int(rng.integers(0, 4))):
        other = operand(net, rng, shape)
        y = net.op("Maximum" if rng.random() < 0.2 else "Add", *((y, other) if rng.random() < 0.7 else (other, y)))
    return net.op("ReLU", y) if rng.random() < 0.3 else y


@pytest.mark.one_in(2)
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
@pytest.mark.parametrize("seed", range(14))
def test_by_constant_matrices(seed: int, small: bool, in_place: bool) -> None:
    rng = np.random.default_rng([seed, 4])
    net = Exact(seed)
    rows, k, n = (int(v) for v in rng.choice([1, 2, 3, 5, 8, 16, 17, 32, 48], 3))
    lead = ((), (1,), (2,), (2, 3))[seed % 4]
    count = int(np.prod(lead)) * rows
    ta, tb = bool(rng.random() < 0.25), bool(rng.random() < 0.5)
    x = net.input(*lead, *((k, rows) if ta else (rows, k)))
    x = net.op("ReLU", x) if rng.random() < 0.3 else x
    w = net.weights(*((n, k) if tb else (k, n)))
    y = random_epilogue(net, rng, net.op("MatMul", x, w, transpose_a=ta, transpose_b=tb), (*lead, rows, n))
    with lowered_thresholds() if small else nullcontext():
        names = same(net.model(y), net.shapes) - {"tiles", "copy"}
    stacked = ta and int(np.prod(lead)) > 1 and k > 1 and rows > 1
    if stacked:
        assert names == {"batched matmul"}
    else:
        dozens = {"weight streaming"} if 2 <= count <= 160 else set()
        assert names == {"matmul by rows", "matmul by columns"} | dozens


@pytest.mark.one_in(2)
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
@pytest.mark.parametrize("seed", range(14))
def test_products_with_computed_operands(seed: int, small: bool) -> None:
    rng = np.random.default_rng([seed, 5])
    net = Exact(seed)
    rows, k, n = (int(v) for v in rng.integers(1, 9, 3))
    lead = tuple(int(v) for v in rng.integers(1, 4, seed % 4))
    ta, tb = bool(rng.random() < 0.4), bool(rng.random() < 0.5)

    leads: list[tuple[int, ...]] = []

    def matrix(a: int, b: int, turned: bool) -> ir.Ref:
        own = tuple(v if rng.random() < 0.7 else 1 for v in lead)[int(rng.integers(0, len(lead) + 1)) :]
        leads.append(own)
        shape = (*own, *((b, a) if turned else (a, b)))
        roll = rng.random()
        if roll < 0.2:
            return net.weights(*shape)
        if roll < 0.5:
            order = [*range(len(own)), len(own) + 1, len(own)]
            return net.transpose(net.input(*own, *shape[:-3:-1]), *order)
        return net.op("ReLU", net.input(*shape)) if roll < 0.8 else net.input(*shape)

    a, b = matrix(rows, k, ta), matrix(k, n, tb)
    y = net.op("MatMul", a, b, transpose_a=ta, transpose_b=tb)
    shape = (*np.broadcast_shapes(*leads), rows, n)
    with lowered_thresholds() if small else nullcontext():
        same(net.model(random_epilogue(net, rng, y, shape)), net.shapes)


@pytest.mark.parametrize(
    ("rows", "k", "n", "threads", "kernel"),
    [
        (15, 8, 8, 1, "matmul by columns"),
        (16, 8, 8, 1, "matmul by rows"),
        (31, 8, 8, 2, "matmul by columns"),
        (32, 8, 8, 2, "matmul by rows"),
        (16, 512, 512, 1, "matmul by rows"),
        (16, 512, 513, 1, "weight streaming"),
        (2, 512, 513, 1, "weight streaming"),
        (1, 512, 513, 1, "matmul by columns"),
        (160, 512, 513, 1, "weight streaming"),
        (161, 512, 513, 1, "matmul by rows"),
    ],
)
def test_the_rule(rows: int, k: int, n: int, threads: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Exact()
    y = net.op("MatMul", net.input(rows, k), net.weights(k, n), transpose_a=False, transpose_b=False)
    monkeypatch.setattr(streamed, "small_kernels", lambda: True)
    assert kernels(net.model(y), net.shapes, threads) == [kernel]


@pytest.mark.parametrize(
    ("rows", "kernel"),
    [(31, "matmul by rows"), (32, "weight streaming"), (160, "weight streaming"), (161, "matmul by rows")],
)
def test_the_rule_for_a_blas_that_copies(rows: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Exact()
    y = net.op("MatMul", net.input(rows, 8), net.weights(8, 8), transpose_a=False, transpose_b=False)
    monkeypatch.setattr(streamed, "small_kernels", lambda: False)
    assert kernels(net.model(y), net.shapes) == [kernel]
