"""Matches mixtures of experts whose rows NonZero selects, as optimum-intel exported them before version 2.

Exporters write a ScatterElementsUpdate for each expert:

    mask = Transpose(OneHot(chosen))                                  # [experts, k, tokens]
    column, token = NonZero(mask[expert])
    sums = ScatterElementsUpdate(sums, token, expert(x[token]) · weights[k · token + column])

The rows of each expert are functions of rows of x, in which only the weights of the MatMuls differ between experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from irload.core.element import f32
from irload.core.shape import Dim
from irload.core.size import alike
from irload.core.tensor import UNKNOWN, TensorType
from irload.experts import ExpertBody, ExpertRows, Signature, is_index, number, uniform
from irload.graph import Node, Output
from irload.record import record

Types = Mapping[Output, TensorType]

MOVES = ("Reshape", "Squeeze", "Unsqueeze")
"""Operations that keep the order of the elements."""


@record(eq=False)
class Selected:
    """A mixture of experts.

    `gather`: the node that selects the rows of the first expert; `chosen` [tokens, k]: the experts of each token;
    `weights`: their weights, tokens · k elements.
    """

    gather: Node
    chosen: Output
    weights: Output
    experts: int
    body: ExpertBody


def selected(last: Node, types: Types) -> Selected | None:
    """Return the mixture whose last Scatter is a node. None for any other node."""
    experts: dict[int, _Expert] = {}
    router: _Router | None = None
    scatter = last
    while scatter.type == "ScatterElementsUpdate":
        expert = _Expert.of(scatter, types)
        if expert is None or expert.index in experts or (router is not None and router.mask is not expert.router.mask):
            return None
        router, experts[expert.index] = expert.router, expert
        scatter = scatter.inputs[0].node
    if router is None or sorted(experts) != list(range(router.experts)):
        return None
    ordered = [experts[k] for k in range(router.experts)]
    first, body = ordered[0], ExpertBody.of([expert.rows for expert in ordered])
    if body is None or any(e.weights is not first.weights for e in ordered):
        return None
    if first.gather is None or first.weights is None or uniform(scatter.outputs[0], types) != 0:
        return None
    return Selected(first.gather, router.chosen, first.weights, router.experts, body)


@record()
class _Router:
    """The `mask` [experts, k, tokens] of the `chosen` experts [tokens, k]."""

    mask: Output
    chosen: Output
    experts: int
    tokens: int
    k: int

    @staticmethod
    def of(mask: Output, types: Types) -> _Router | None:
        """Return the router of a mask; None for a mask that is computed in another way."""
        transpose = mask.node
        order = types.get(transpose.inputs[1], UNKNOWN).value if transpose.type == "Transpose" else None
        hot = transpose.inputs[0].node if order is not None and order.tolist() == [2, 1, 0] else None
        if hot is None or hot.type != "OneHot" or hot.op.attributes["axis"] not in (2, -1):
            return None
        chosen, (depth, on, off) = hot.inputs[0], (number(i, types) for i in hot.inputs[1:])
        shape = types.get(chosen, UNKNOWN)
        if depth is None or not on or off != 0 or shape.rank != 2 or not shape.is_static:
            return None
        return _Router(mask, chosen, int(depth), *shape.shape.static) if _in_range(chosen, depth, types) else None


def _in_range(chosen: Output, experts: float, types: Types) -> bool:
    """True for the positions that TopKs of `experts` scores return."""
    node = chosen.node
    if node.type in ("Concat", "Convert") and is_index(chosen, types):
        return all(_in_range(i, experts, types) for i in node.inputs)
    scores = types.get(node.inputs[0], UNKNOWN) if node.type == "TopK" else UNKNOWN
    if chosen.index != 1 or scores.rank is None or not scores.is_static:
        return False
    return alike(scores.shape.static[node.op.attributes["axis"]], int(experts))


class _Expert:
    """One expert: see `Selected`."""

    def __init__(self, nonzero: Node, router: _Router, index: int, types: Types) -> None:
        self.router = router
        self.index = index
        self.rows = ExpertRows(types, self._source)
        self.gather: Node | None = None
        self.weights: Output | None = None
        self._nonzero = nonzero
        self._types = types

    @staticmethod
    def of(scatter: Node, types: Types) -> _Expert | None:
        """Return the expert whose results a Scatter adds; None for any other Scatter."""
        data, indices, updates, axis = scatter.inputs
        shape = types.get(data, UNKNOWN)
        if (
            scatter.op.attributes.get("reduction") != "sum"
            or not scatter.op.attributes["use_init_val"]
            or number(axis, types) != 0
            or shape.rank != 2
            or not shape.is_static
        ):
            return None
        tokens, columns = shape.shape.static
        token, product = (_before_broadcast(i, columns, types) for i in (indices, updates))
        nonzero = None if token is None or not types[token].shape.dims[1].is_one else _nonzero(token, 1, types)
        masked = None if nonzero is None else _masked(nonzero, types)
        if nonzero is None or masked is None or product is None or product.node.type != "Multiply":
            return None
        expert = _Expert(nonzero, *masked, types)
        fits = alike(masked[0].tokens, tokens) and types[product].shape.dims[1].is_same(Dim.of(columns))
        return expert if fits and expert._matches(product.node) else None

    def _matches(self, product: Node) -> bool:
        """Match the result times the weights of the router."""
        for result, weights in (product.inputs, product.inputs[::-1]):
            self.weights = self._weights(weights)
            if self.weights is not None:
                return self._types.get(result, UNKNOWN).element is f32 and self.rows.match(result)
        return False

    def _weights(self, output: Output) -> Output | None:
        """Return the source of the weights [rows, 1]."""
        shape, gather = self._types.get(output, UNKNOWN).shape, _moved(output).node
        if shape.rank != 2 or not shape.dims[1].is_one or not _selects_rows(gather, self._types):
            return None
        source, pair = gather.inputs[0], _moved(gather.inputs[1])
        count, known = self.router.tokens * self.router.k, self._types.get(source, UNKNOWN)
        if not known.is_static or not alike(known.shape.static[0], count) or not alike(prod(known.shape.static), count):
            return None
        if pair.node.type != "Add" or known.element is not f32:
            return None
        for column, start in (pair.node.inputs, pair.node.inputs[::-1]):
            if _nonzero(column, 0, self._types) is self._nonzero and self._is_start(start):
                return _moved(source)
        return None

    def _is_start(self, output: Output) -> bool:
        """True for the positions of the tokens' first weights, k · token."""
        product = _moved(output).node
        return product.type == "Multiply" and any(
            _nonzero(token, 1, self._types) is self._nonzero and number(k, self._types) == self.router.k
            for token, k in (product.inputs, product.inputs[::-1])
        )

    def _source(self, output: Output) -> Signature | None:
        """Return the signature of rows of x."""
        gather = _moved(output).node
        if output.node.type not in (*MOVES, "Gather") or not _selects_rows(gather, self._types):
            return None
        source = self._types.get(gather.inputs[0], UNKNOWN)
        columns = self._types[output].shape.dims[1]
        if source.rank != 2 or not source.is_static or not source.shape.dims[1].is_same(columns):
            return None
        of_tokens = _nonzero(gather.inputs[1], 1, self._types) is self._nonzero
        if not of_tokens or not alike(source.shape.static[0], self.router.tokens):
            return None
        self.gather = gather
        return "rows", gather.inputs[0]


def _moved(output: Output) -> Output:
    """Return the value before operations that keep the order of the elements."""
    while output.node.type in MOVES:
        output = output.node.inputs[0]
    return output


def _before_broadcast(output: Output, columns: int, types: Types) -> Output | None:
    """Return the rows [rows, columns] or [rows, 1] that a Broadcast extends to `columns`; None for other shapes."""
    if output.node.type == "Broadcast":
        target = types.get(output.node.inputs[1], UNKNOWN).value
        if target is None or target.shape != (2,) or not alike(target[0], 1) or not alike(target[1], columns):
            return None
        return output.node.inputs[0] if output.node.op.attributes["mode"] == "bidirectional" else None
    dims = types.get(output, UNKNOWN).shape
    return output if dims.rank == 2 and dims.dims[1].is_same(Dim.of(columns)) else None


def _nonzero(output: Output, row: int, types: Types) -> Node | None:
    """Return the NonZero whose result has the value as this row; None for any other value."""
    while output.node.type in MOVES or (output.node.type == "Convert" and is_index(output, types)):
        output = output.node.inputs[0]
    split = output.node
    if split.type != "Split" or output.index != row or split.op.attributes["num_splits"] != 2:
        return None
    node = split.inputs[0].node
    return node if node.type == "NonZero" and number(split.inputs[1], types) == 0 else None


def _masked(nonzero: Node, types: Types) -> tuple[_Router, int] | None:
    """Return the router and the index of the expert whose mask [k, tokens] NonZero reads."""
    source = nonzero.inputs[0]
    gather, shape = _moved(source).node, types.get(source, UNKNOWN)
    if not _selects_rows(gather, types) or not shape.is_static:
        return None
    router, expert = _Router.of(gather.inputs[0], types), number(gather.inputs[1], types)
    if router is None or expert is None or expert < 0 or shape.rank != 2:
        return None
    return (router, int(expert)) if alike(shape.shape.static[0], router.k) else None


def _selects_rows(node: Node, types: Types) -> bool:
    """True for a Gather along the first axis."""
    return node.type == "Gather" and number(node.inputs[2], types) == 0
