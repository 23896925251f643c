"""The cost of computing a model: multiply-accumulates by the standard formulas.

One MAC is one multiplication with its addition. As is customary, only sums of products count (convolutions, matrix
products, attention, recurrent cells); biases, activations, pooling and normalization do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from irload.core.shape import Shape
from irload.core.subgraph import Subgraph
from irload.errors import IRError
from irload.graph import Graph, Node, UnknownOp, subgraphs

__all__ = ["attention_macs", "convolution_macs", "macs", "matmul_macs"]


def macs(node: Node) -> int | None:
    """The multiply-accumulates of a layer, including its bodies. None if they depend on an unknown size."""
    count = _FORMULAS.get(node.type)
    if count is None or isinstance(node.op, UnknownOp) or len(node.inputs) < 1:
        return 0
    try:
        return count(node)
    except (_Unknown, IRError, ArithmeticError, IndexError, ValueError):  # also for inconsistent layers
        return None


def convolution_macs(weights: int, positions: int) -> int:
    """Of a convolution: each of the `weights` of all filters is used once per position (batch × spatial sizes).

    Positions are output positions; for a transposed convolution, input positions. Groups are included in `weights`.
    """
    return weights * positions


def matmul_macs(outputs: int, inner: int) -> int:
    """Of a matrix product: each output element is a sum of `inner` products."""
    return outputs * inner


def attention_macs(queries: int, keys: int, key_size: int, value_size: int) -> int:
    """Of attention: every query (of all heads and batches) times each of its `keys`, then the weighted sums."""
    return queries * keys * (key_size + value_size)


class _Unknown(Exception):
    """A size is not static."""


def _sizes(shape: Shape) -> list[int]:
    if not shape.is_static:
        raise _Unknown
    return list(shape.static)


def _input(node: Node, index: int) -> list[int]:
    return _sizes(node.inputs[index].type.shape)


def _output(node: Node, index: int = 0) -> list[int]:
    return _sizes(node.outputs[index].type.shape)


def _convolution(node: Node) -> int:
    return convolution_macs(prod(_input(node, 1)), _positions(node, _output(node)))


def _deformable(node: Node) -> int:
    return convolution_macs(prod(_input(node, 2)), _positions(node, _output(node)))


def _backprop(node: Node) -> int:
    return convolution_macs(prod(_input(node, 1)), _positions(node, _input(node, 0)))


def _positions(node: Node, sizes: list[int]) -> int:
    """Batch times the spatial sizes."""
    channels = -1 if node.op.attributes.get("data_format") == "NXC" else 1
    del sizes[channels]
    return prod(sizes)


def _matmul(node: Node) -> int:
    a = _input(node, 0)
    inner = a[-2] if node.op.attributes.get("transpose_a") and len(a) > 1 else a[-1]
    return matmul_macs(prod(_output(node)), inner)


def _einsum(node: Node) -> int:
    """The product of the sizes of all labels, once per operand beyond the first."""
    operands = [_input(node, k) for k in range(len(node.inputs))]
    left = node.op.attributes["equation"].replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for labels, shape in zip(left, operands, strict=True):
        head, ellipsis, tail = labels.partition("...")
        if len(head + tail) != len(shape) and not ellipsis:
            raise _Unknown
        sizes |= zip(head, shape, strict=False)
        sizes |= zip(reversed(tail), reversed(shape), strict=False)
        middle = shape[len(head) : len(shape) - len(tail)] if ellipsis else []
        for k, size in enumerate(reversed(middle)):
            sizes[f"...{k}"] = max(size, sizes.get(f"...{k}", 1))
    return prod(sizes.values()) * (len(operands) - 1)


def _attention(node: Node) -> int:
    """Masks do not reduce the count."""
    query, value = _input(node, 0), _input(node, 2)
    return attention_macs(prod(query[:-1]), value[-2], query[-1], value[-1])


def _recurrent(node: Node) -> int:
    """W and R are used once per step of each sequence; their shapes include the directions."""
    data = _input(node, 0)
    weights = node.op.signature.required.index("w")
    steps = prod(data[:-1])
    return steps * (prod(_input(node, weights)) + prod(_input(node, weights + 1)))


def _body(node: Node) -> int:
    """A body times its iterations; for branches, the most expensive one."""
    bodies = [*subgraphs(node).values()]
    counts = [_total(s.body) for s in bodies if isinstance(s.body, Graph)]
    if not any(counts):
        return 0
    return max(counts) * (1 if node.type == "If" else _iterations(node, bodies[0]))


def _total(graph: Graph) -> int:
    counts = [macs(n) for n in graph.nodes if n.reachable]
    if any(n is None for n in counts):
        raise _Unknown
    return sum(n or 0 for n in counts)


def _iterations(node: Node, subgraph: Subgraph) -> int:
    """The iterations of a Loop (at most) or a TensorIterator."""
    for line in subgraph.inputs:
        if line.axis is not None and line.port is not None:
            shape = node.inputs[line.port].type.shape
            return _sizes(Shape(shape[line.along(shape.rank)]))[0] // line.part_size if shape.rank else 1
    trips = node.inputs[0].type.ints if node.type == "Loop" else None
    if not trips or trips[0] < 0:
        raise _Unknown
    return trips[0]


_FORMULAS: Mapping[str, Callable[[Node], int]] = {
    "Convolution": _convolution,
    "GroupConvolution": _convolution,
    "BinaryConvolution": _convolution,
    "DeformableConvolution": _deformable,
    "ConvolutionBackpropData": _backprop,
    "GroupConvolutionBackpropData": _backprop,
    "MatMul": _matmul,
    "Einsum": _einsum,
    "ScaledDotProductAttention": _attention,
    **{f"{cell}{kind}": _recurrent for cell in ("RNN", "GRU", "LSTM") for kind in ("Cell", "Sequence")},
    "Loop": _body,
    "TensorIterator": _body,
    "If": _body,
}
