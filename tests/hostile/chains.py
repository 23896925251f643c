"""Very long or very wide graphs: chains of one operation, one output with many consumers, and others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models.ir import Graph, Ref


def relu(count: int) -> Graph:
    """A chain of ReLUs."""
    return _chain(count, (1, 4), lambda g, x: g.layer("ReLU", [x], [("f32", x.dims)])[0])


def add(count: int) -> Graph:
    """A chain of Adds, each with a separate constant."""
    return _chain(
        count, (1, 4), lambda g, x: g.layer("Add", [x, g.constant(np.ones((1, 4), np.float32))], [("f32", x.dims)])[0]
    )


def matmul(count: int) -> Graph:
    """A chain of MatMuls by one matrix."""
    return _shared(
        count,
        (1, 4),
        np.eye(4, dtype=np.float32),
        lambda g, x, w: g.layer("MatMul", [x, w], [("f32", x.dims)])[0],
    )


def convolution(count: int) -> Graph:
    """A chain of 1×1 convolutions with one shared kernel."""
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    return _shared(
        count,
        (1, 2, 3, 3),
        np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1),
        lambda g, x, w: g.layer("Convolution", [x, w], [("f32", x.dims)], attributes=attributes)[0],
    )


def tail(count: int) -> Graph:
    """A convolution followed by a chain of ReLUs, all of which fit its epilogue."""
    g = Graph()
    x = g.parameter("x", "f32", (1, 2, 3, 3))
    w = g.constant(np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1))
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    x = g.layer("Convolution", [x, w], [("f32", x.dims)], attributes=attributes)[0]
    for _ in range(count):
        x = g.layer("ReLU", [x], [("f32", x.dims)])[0]
    g.result(x)
    return g


def reshape(count: int) -> Graph:
    """A chain of Reshapes, each a view of the previous one."""

    def turned(g: Graph, x: Ref) -> Ref:
        dims = tuple(reversed(x.dims))
        attributes = {"special_zero": "false"}
        return g.layer("Reshape", [x, g.constant(np.array(dims))], [("f32", dims)], attributes=attributes)[0]

    return _chain(count, (1, 4), turned)


def concat(count: int) -> Graph:
    """A chain of Concats of an empty part, each of which may write into the next one."""
    return _shared(
        count,
        (1, 4),
        np.zeros((1, 0), np.float32),
        lambda g, x, w: g.layer("Concat", [x, w], [("f32", x.dims)], attributes={"axis": 1})[0],
    )


def shapes(count: int) -> Graph:
    """A chain of Adds of an integer constant to a shape, whose values inference computes."""
    g = Graph()
    x = g.parameter("x", "f32", (1, 4))
    ends = g.layer("ShapeOf", [x], [("i64", (2,))])[0]
    one = g.constant(np.array([1, 1]))
    for _ in range(count):
        ends = g.layer("Add", [ends, one], [("i64", (2,))])[0]
    g.result(g.layer("Broadcast", [x, g.constant(np.array([3, 4]))], [("f32", (3, 4))], version="opset3")[0])
    g.result(ends)
    return g


def constants(count: int) -> Graph:
    """A chain of additions to a constant: all of it is folded."""
    g = Graph()
    one = g.constant(np.ones((1, 4), np.float32))
    x = g.parameter("x", "f32", (1, 4))
    y = one
    for _ in range(count):
        y = g.layer("Add", [y, one], [("f32", (1, 4))])[0]
    g.result(g.layer("Add", [x, y], [("f32", (1, 4))])[0])
    return g


def consumers(count: int) -> Graph:
    """One output consumed by `count` layers, and as many Results."""
    g = Graph()
    x = g.parameter("x", "f32", (1, 4))
    x = g.layer("Exp", [x], [("f32", (1, 4))])[0]
    for _ in range(count):
        g.result(g.layer("ReLU", [x], [("f32", (1, 4))])[0])
    return g


def inputs(count: int) -> Graph:
    """A Concat of `count` inputs, each the output of a separate layer."""
    g = Graph()
    x = g.parameter("x", "f32", (1, 4))
    parts = [g.layer("ReLU", [x], [("f32", (1, 4))])[0] for _ in range(count)]
    g.result(g.layer("Concat", parts, [("f32", (count, 4))], attributes={"axis": 0})[0])
    return g


def weights(count: int) -> Graph:
    """`count` constants, concatenated a hundred at a time."""
    g = Graph()
    x = g.parameter("x", "f32", (1, 4))
    for k in range(count // 100):
        parts = [g.constant(np.full((1, 4), k, np.float32)) for _ in range(100)]
        joined = g.layer("Concat", [x, *parts], [("f32", (101, 4))], attributes={"axis": 0})[0]
        x = g.layer(
            "ReduceMax", [joined, g.constant(np.array([0]))], [("f32", (1, 4))], attributes={"keep_dims": "true"}
        )[0]
    g.result(x)
    return g


def doubling(count: int) -> Graph:
    """Repeated x + x, which makes 2 ** `count` paths."""
    return _chain(count, (1, 4), lambda g, x: g.layer("Add", [x, x], [("f32", x.dims)])[0])


KINDS: dict[str, Callable[[int], Graph]] = {
    f.__name__: f
    for f in (
        *(relu, add, matmul, convolution, tail, reshape, concat, shapes, constants),
        *(consumers, inputs, weights, doubling),
    )
}
"""Every kind by name; each takes the number of links."""


def _chain(count: int, dims: tuple[int, ...], link: Callable[[Graph, Ref], Ref]) -> Graph:
    g = Graph()
    x = g.parameter("x", "f32", dims)
    for _ in range(count):
        x = link(g, x)
    g.result(x)
    return g


def _shared(count: int, dims: tuple[int, ...], weights: np.ndarray, link: Callable[[Graph, Ref, Ref], Ref]) -> Graph:
    g = Graph()
    w = g.constant(weights)
    x = g.parameter("x", "f32", dims)
    for _ in range(count):
        x = link(g, x, w)
    g.result(x)
    return g
