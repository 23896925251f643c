"""Products of mixture-of-experts layers: rows are sorted by expert, and multiplied by the matrix of their expert.

Exporters write Concat(MatMul(Slice(data, 0, c₀), w₀), MatMul(Slice(data, c₀, c₀ + c₁), w₁), …), where `counts` are the
tokens that the router assigned to each expert. The shapes of the slices depend on values. Their rows add up to the rows
of the data, because the router chooses k different experts for each token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irload.core.element import INDEX
from irload.core.size import alike
from irload.core.tensor import UNKNOWN, TensorType
from irload.graph import Node, Output
from irload.record import record

__all__ = ["ExpertProduct", "expert_product", "is_index", "number", "uniform"]

Types = Mapping[Output, TensorType]

_RESHAPES = ("Convert", "Reshape", "Squeeze", "Unsqueeze")
"""Operations that keep the number in a tensor of one element."""
_UNIFORM = (*_RESHAPES, "Broadcast", "ConvertLike", "Slice", "StridedSlice")
"""Operations whose outputs contain only elements of their first input."""
_LONGEST = 64
"""Maximum operations of _UNIFORM in a sequence."""


@record(eq=False)
class ExpertProduct:
    """The rows of `data`, sorted by expert, times the weights of each expert.

    `counts`: the number of rows per expert. `transpose`: whether the weights are transposed, [columns, depth].
    """

    data: Output
    counts: Output
    weights: tuple[Output, ...]
    transpose: bool


def expert_product(concat: Node, types: Types) -> ExpertProduct | None:
    """Return the product that a Concat computes, if the types prove that its parts contain all rows of the data."""
    products = [i.node for i in concat.inputs]
    if len(products) < 2 or any(p.type != "MatMul" or p.inputs[0].node.type != "Slice" for p in products):
        return None
    slices = [p.inputs[0].node for p in products]
    data, transposes = slices[0].inputs[0], {p.op.attributes["transpose_b"] for p in products}
    if (
        types.get(data, UNKNOWN).rank != 2
        or concat.op.attributes["axis"] not in (0, -2)
        or len(transposes) > 1
        or any(p.op.attributes["transpose_a"] or types.get(p.inputs[1], UNKNOWN).rank != 2 for p in products)
        or any(s.inputs[0] is not data or not _is_range(s, types) for s in slices)
    ):
        return None
    counts = _counts(slices, types)
    if counts is None or not _covers(data, counts, types):
        return None
    return ExpertProduct(data, counts, tuple(p.inputs[1] for p in products), transposes.pop())


def _is_range(node: Node, types: Types) -> bool:
    """True for a Slice of consecutive rows."""
    return len(node.inputs) == 5 and number(node.inputs[3], types) == 1 and number(node.inputs[4], types) == 0


def _counts(slices: Sequence[Node], types: Types) -> Output | None:
    """Return the tensor of counts if slice e starts after the first e counts, and ends after the next one."""
    sums = _Sums(types)
    for expert, node in enumerate(slices):
        expected = (frozenset(range(expert)), frozenset(range(expert + 1)))
        if tuple(sums.terms(i) for i in node.inputs[1:3]) != expected:
            return None
    (counts,) = sums.counts
    return counts if types.get(counts, UNKNOWN).shape == (len(slices),) else None


class _Sums:
    """Sums of elements of one tensor, the `counts`."""

    def __init__(self, types: Types) -> None:
        self.counts: set[Output] = set()
        self._types = types
        self._terms: dict[Output, frozenset[int] | None] = {}

    def terms(self, output: Output) -> frozenset[int] | None:
        """Return the indices of the counts in a sum; None for any other value, or for elements of several tensors."""
        pending = [output]
        while pending:
            at = pending[-1]
            missing = [] if at in self._terms else [i for i in _operands(at) if i not in self._terms]
            pending += missing
            if not missing:
                self._terms.setdefault(at, self._sum(at))
                pending.pop()
        return self._terms[output] if len(self.counts) <= 1 else None

    def _sum(self, output: Output) -> frozenset[int] | None:
        node = output.node
        if not is_index(output, self._types):
            return None
        if number(output, self._types) == 0:
            return frozenset()
        if node.type == "Gather":
            index = number(node.inputs[1], self._types)
            if index is None or index < 0 or self._types.get(node.inputs[0], UNKNOWN).rank != 1:
                return None
            self.counts.add(node.inputs[0])
            return frozenset((int(index),))
        terms = [self._terms[i] for i in _operands(output)]
        if not terms or any(t is None for t in terms):
            return None
        together = frozenset[int]().union(*(t for t in terms if t is not None))
        return together if len(together) == sum(len(t) for t in terms if t is not None) else None


def _operands(output: Output) -> list[Output]:
    """Return the terms of an Add, or the input of an operation that keeps a number."""
    node = output.node
    if node.type == "Add":
        return list(node.inputs)
    return node.inputs[:1] if node.type in _RESHAPES else []


def _covers(data: Output, counts: Output, types: Types) -> bool:
    """True if the counts are the assignments of tokens to different experts, as many as the data have rows.

    They are ReduceSum(ScatterElementsUpdate(zeros, positions of a TopK, ones)) over the tokens.
    """
    total = _converted(counts, types).node
    if total.type != "ReduceSum" or total.op.attributes["keep_dims"] or number(total.inputs[1], types) != 0:
        return False
    if not is_index(total.inputs[0], types):
        return False  # the sum would be rounded, or wrap
    scatter = _converted(total.inputs[0], types).node
    if scatter.type != "ScatterElementsUpdate" or scatter.op.attributes.get("reduction", "none") != "none":
        return False
    zeros, positions, ones, axis = scatter.inputs
    positions = _converted(positions, types)
    ranking, chosen = positions.node, types.get(positions, UNKNOWN)
    if (
        ranking.type != "TopK"
        or positions.index != 1
        or chosen.rank != 2
        or ranking.op.attributes["axis"] not in (1, -1)
    ):
        return False
    scores, target, rows = (types.get(o, UNKNOWN) for o in (ranking.inputs[0], zeros, data))
    if not all(t.rank == 2 and t.is_static for t in (scores, chosen, target, rows)):
        return False
    tokens, k = chosen.shape.static
    return (
        number(axis, types) in (1, -1)
        and uniform(zeros, types) == 0
        and uniform(ones, types) == 1
        and alike(scores.shape.static[1], target.shape.static[1])
        and alike(tokens * k, rows.shape.static[0])
    )


def _converted(output: Output, types: Types) -> Output:
    """Return the value before conversions to indices."""
    while output.node.type == "Convert" and is_index(output, types):
        output = output.node.inputs[0]
    return output


def is_index(output: Output, types: Types) -> bool:
    """True for i32 and i64, in which counts and positions are exact."""
    return types.get(output, UNKNOWN).element in INDEX


def uniform(output: Output, types: Types) -> float | None:
    """Return the number that all elements of a tensor are equal to; None if it is unknown."""
    for _ in range(_LONGEST):
        value = types.get(output, UNKNOWN).value
        if value is not None and value.size and value.dtype != object:
            first = float(value.reshape(-1)[0])
            return first if np.all(value == value.reshape(-1)[0]) else None
        if output.node.type not in _UNIFORM:
            return None
        output = output.node.inputs[0]
    return None


def number(output: Output, types: Types) -> float | None:
    """Return the number in a tensor of one known element."""
    value = types.get(output, UNKNOWN).value
    return None if value is None or value.size != 1 or value.dtype == object else float(value.reshape(-1)[0])
