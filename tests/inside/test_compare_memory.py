"""compare needs the memory of both runs and a few layer outputs, for any number of layers. Allocations are traced."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irload
from models.ir import Graph, Ref
from tests.inside.nets import binary, iterated, model, unary, with_constant

ROWS, COLUMNS, BLOCKS = 512, 256, 12
LAYER = ROWS * COLUMNS * 4
SCRATCH = 1 << 21
"""Constant overhead of measuring, and of the queues between layers."""
X = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)


def chain(g: Graph, x: Ref, blocks: int = BLOCKS) -> Ref:
    """Blocks of matmul, bias, activation and residual, for which a plan has fewer values than there are layers."""
    rng = np.random.default_rng(1)
    for k in range(blocks):
        weights = g.constant(rng.standard_normal((COLUMNS, COLUMNS)).astype(np.float32) / 16)
        y = g.layer("MatMul", [x, weights], [("f32", x.dims)], name=f"matmul{k}")[0]
        y = with_constant(g, "Add", y, rng.standard_normal((1, COLUMNS)), f"bias{k}")
        x = binary(g, "Add", unary(g, "Tanh", y, f"tanh{k}"), x, f"sum{k}")
    return x


def peak(run: Callable[[], Any]) -> int:
    """The peak of allocated bytes during a call, minus the bytes allocated before it."""
    run()  # imports and compilation allocate only once
    tracemalloc.start()
    run()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("a", "optimize"), [("fast", True), ("plain", False)])
def test_memory_beyond_both_runs(a, optimize):
    g = Graph()
    net = model(g, chain(g, g.parameter("x", "f32", X.shape)))
    runs = [peak(lambda o=o: irload.compile_model(net, optimize=o, jit=False)(X)) for o in (optimize, False)]
    beyond = peak(lambda: irload.compare(a, net, X)) - sum(runs)
    assert beyond < 3 * LAYER + SCRATCH
    assert BLOCKS * LAYER > 3 * LAYER + SCRATCH  # storing one output per block would exceed the bound


def test_passes_of_a_body_are_not_gathered():
    """All outputs in the body are twice as large as the input."""
    net = iterated(lambda g, x: unary(g, "Tanh", unary(g, "Sin", x, "sin"), "tanh"), "f32", [64, 32, 1024])
    x = np.random.default_rng(0).standard_normal((64, 32, 1024)).astype(np.float32)
    run = peak(lambda: irload.compile_model(net, optimize=False)(x))
    assert peak(lambda: irload.compare("plain", net, x)) - 2 * run < x.nbytes
