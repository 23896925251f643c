"""Mixture-of-experts layers: rows are sorted by expert, and each is multiplied by the matrices of its expert.

Exporters write Concat(f₀(Slice(data, 0, c₀)), f₁(Slice(data, c₀, c₀ + c₁)), …), where `counts` are the tokens that the
router assigned to each expert. The shapes of the slices depend on values. Their rows add up to the rows of the data,
because the router chooses k different experts for each token. An expert is one MatMul (Granite) or several (DeepSeek).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irload.core.element import INDEX, f32
from irload.core.size import alike
from irload.core.tensor import UNKNOWN, TensorType
from irload.graph import Node, Output
from irload.ops.elementwise import Binary, Unary
from irload.record import record

__all__ = ["ExpertBody", "ExpertProduct", "ExpertRows", "Signature", "expert_product", "is_index", "number", "uniform"]

Types = Mapping[Output, TensorType]

_RESHAPES = ("Convert", "Reshape", "Squeeze", "Unsqueeze")
"""Operations that keep the number in a tensor of one element."""
_UNIFORM = (*_RESHAPES, "Broadcast", "ConvertLike", "Slice", "StridedSlice")
"""Operations whose outputs contain only elements of their first input."""
_LONGEST = 64
"""Maximum operations of _UNIFORM in a sequence."""


Signature = tuple[object, ...]
"""Describes how rows are computed, without the weights of MatMuls."""


class ExpertRows:
    """The nodes that compute rows [rows, columns] of one expert, each from the same row of a source.

    `nodes`: in order; `matrices`: the MatMuls among them; `sources`: the rows from which they start.
    """

    def __init__(self, types: Types, source: Callable[[Output], Signature | None]) -> None:
        self.nodes: list[Node] = []
        self.matrices: list[Node] = []
        self.sources: list[Output] = []
        self.signature: Signature | None = None
        self._types = types
        self._source = source
        self._known: dict[Output, Signature | None] = {}

    def match(self, output: Output) -> bool:
        """True if a value is computed row by row, and multiplied by weights. `source` returns signatures of sources."""
        self.signature = self._of(output)
        return self.signature is not None and bool(self.matrices)

    def _of(self, output: Output) -> Signature | None:
        """Return the signature of rows, or their number if another node reads them again.

        Experts with equal signatures therefore reuse rows in the same way.
        """
        if output in self._known:
            return None if self._known[output] is None else ("again", list(self._known).index(output))
        signature = self._known[output] = self._computed(output)
        return signature

    def _computed(self, output: Output) -> Signature | None:
        node = output.node
        if self._types.get(output, UNKNOWN).rank != 2:
            return None
        source = self._source(output)
        if source is not None:
            self.sources.append(output)
            return source
        if node.type == "MatMul":
            return self._product(node)
        if not isinstance(node.op, Unary | Binary) and node.type != "Swish":
            return None
        operands = [self._operand(i) for i in node.inputs]
        if None in operands or all(o is None or o[0] == "number" for o in operands):
            return None
        self.nodes.append(node)
        return node.type, node.op.opset, repr(node.op.attributes), *operands

    def _operand(self, output: Output) -> Signature | None:
        single, rank = number(output, self._types), self._types.get(output, UNKNOWN).rank
        return ("number", single) if single is not None and rank is not None and rank <= 2 else self._of(output)

    def _product(self, node: Node) -> Signature | None:
        matrix, transposes = self._types.get(node.inputs[1], UNKNOWN), node.op.attributes
        if matrix.rank != 2 or not matrix.is_static or transposes["transpose_a"]:
            return None
        data = self._of(node.inputs[0])
        if data is None:
            return None
        self.nodes.append(node)
        self.matrices.append(node)
        return "MatMul", transposes["transpose_b"], matrix.shape.static, data


@record(eq=False)
class ExpertBody:
    """The nodes of the first expert, from rows of its `sources` to its result, and the `weights` of all experts.

    Only the weights differ between experts. Each MatMul of the first expert has a list of weights, one per expert. The
    last node computes the result.
    """

    sources: Sequence[Output]
    nodes: Sequence[Node]
    weights: Mapping[Node, Sequence[Output]]

    @staticmethod
    def of(experts: Sequence[ExpertRows]) -> ExpertBody | None:
        """Return the common body of experts; None if more than their weights differs."""
        first = experts[0]
        if any(e.signature != first.signature for e in experts):
            return None
        columns = zip(*(e.matrices for e in experts), strict=True)
        weights = {nodes[0]: [node.inputs[1] for node in nodes] for nodes in columns}
        return ExpertBody(first.sources, first.nodes, weights)


@record(eq=False)
class ExpertProduct:
    """Functions of the rows of `data`, sorted by expert. `counts`: the number of rows per expert."""

    data: Output
    counts: Output
    body: ExpertBody


def expert_product(concat: Node, types: Types) -> ExpertProduct | None:
    """Return the product that a Concat computes, if the types prove that its parts contain all rows of the data."""
    if len(concat.inputs) < 2 or concat.op.attributes["axis"] not in (0, -2):
        return None
    experts: list[ExpertRows] = []
    for part in concat.inputs:
        experts.append(ExpertRows(types, lambda output: _slice(output, types)))
        if not experts[-1].match(part) or len({o.node for o in experts[-1].sources}) != 1:
            return None
    body = ExpertBody.of(experts)
    if body is None:
        return None
    slices = [expert.sources[0].node for expert in experts]
    data, counts = slices[0].inputs[0], _counts(slices, types)
    return ExpertProduct(data, counts, body) if counts is not None and _covers(data, counts, types) else None


def _slice(output: Output, types: Types) -> Signature | None:
    """Return the signature of consecutive rows of a matrix."""
    node = output.node
    is_part = node.type == "Slice" and types.get(node.inputs[0], UNKNOWN).rank == 2 and _is_range(node, types)
    return ("rows", node.inputs[0]) if is_part else None


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
        if node.type in ("Gather", "Split"):
            index = self._element(output)
            if index is None:
                return None
            self.counts.add(node.inputs[0])
            return frozenset((index,))
        terms = [self._terms[i] for i in _operands(output)]
        if not terms or any(t is None for t in terms):
            return None
        together = frozenset[int]().union(*(t for t in terms if t is not None))
        return together if len(together) == sum(len(t) for t in terms if t is not None) else None

    def _element(self, output: Output) -> int | None:
        """Return the index of the element of a vector that a Gather or a Split returns."""
        node, vector = output.node, self._types.get(output.node.inputs[0], UNKNOWN)
        if vector.rank != 1:
            return None
        if node.type == "Split":
            return output.index if vector.shape == (node.op.attributes["num_splits"],) else None
        index = number(node.inputs[1], self._types)
        return None if index is None or index < 0 else int(index)


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
    if not is_index(total.inputs[0], types) and types.get(total.inputs[0], UNKNOWN).element is not f32:
        return False  # the sum would be rounded, or wrap; f32 counts up to 2²⁴ tokens
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
    """Return the number in a tensor of one known element, which may be a part of a shape."""
    value = types.get(output, UNKNOWN).value
    item = None if value is None or value.size != 1 else value.reshape(-1)[0]
    return float(item) if isinstance(item, int | float | np.number | np.bool_) else None
