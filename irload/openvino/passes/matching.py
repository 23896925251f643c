"""Matcher: compares a pattern with the graph upstream of an output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irload import graph
from irload.openvino import adapters
from irload.openvino.node import Node, as_output
from irload.openvino.passes.patterns import PatternOp, is_type
from irload.openvino.passes.predicates import Symbols
from irload.openvino.ports import Output

__all__ = ["Matcher"]

COMMUTATIVE = frozenset(
    {
        *("Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor"),
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "SquaredDifference"),
    }
)
"""Operations whose two inputs a pattern matches in either order."""


class Matcher:
    """A pattern, and after `match` the nodes that match it."""

    def __init__(self, pattern: Node | Output, name: str = "") -> None:
        self._pattern = as_output(pattern)
        self._pattern_node = pattern if isinstance(pattern, Node) else pattern.node
        self._name = name
        self._bindings: dict[graph.Output, graph.Output] = {}
        self._root: graph.Output | None = None
        self._symbols: Symbols = {}

    def get_name(self) -> str:
        """The name given to the matcher."""
        return self._name

    def match(self, value: Node | Output) -> bool:
        """Compare the pattern with an output, or the first output of a node. Records the match."""
        self._bindings, self._symbols, self._root = {}, {}, None
        output = value.output(0) if isinstance(value, Node) else value
        if output._node.type == "Result" or not output._node.outputs:  # noqa: SLF001
            return False
        source = as_output(output)
        if not self._matches(self._pattern, source):
            return False
        self._root = source
        return True

    def _matches(self, pattern: graph.Output, source: graph.Output) -> bool:
        if pattern in self._bindings:
            return self._bindings[pattern] is source
        before = dict(self._bindings), dict(self._symbols)
        if self._compared(pattern, source):
            self._bindings.setdefault(pattern, source)
            return True
        op, inputs = pattern.node.op, pattern.node.inputs
        self._bindings, self._symbols = before
        if isinstance(op, PatternOp) and op.kind == "optional" and inputs and self._matches(inputs[0], source):
            return True  # without the optional node, which the match does not list
        self._bindings, self._symbols = before
        return False

    def _compared(self, pattern: graph.Output, source: graph.Output) -> bool:
        op, node = pattern.node.op, source.node
        if not isinstance(op, PatternOp):
            same = node.type == op.type and type(node.op) is type(op)
            return same and pattern.index == source.index and self._inputs(pattern.node.inputs, node)
        if op.kind == "or":
            return any(self._matches(choice, source) for choice in pattern.node.inputs)
        output = Output(node, source.index)
        if op.kind == "any":
            return op.predicate(output, self._symbols)
        fits = any(is_type(node.op, name) for name in op.types) and op.predicate(output, self._symbols)
        return fits and (not pattern.node.inputs or self._inputs(pattern.node.inputs, node))

    def _inputs(self, patterns: Sequence[graph.Output], node: graph.Node) -> bool:
        if len(patterns) != len(node.inputs):
            return False
        orders = [node.inputs]
        if node.type in COMMUTATIVE and len(patterns) == 2:
            orders.append(node.inputs[::-1])
        for order in orders:
            before = dict(self._bindings), dict(self._symbols)
            if all(self._matches(p, s) for p, s in zip(patterns, order, strict=True)):
                return True
            self._bindings, self._symbols = before
        return False

    # -- results -------------------------------------------------------------------------------------------------------

    def get_match_value(self) -> Output:
        """The output that the pattern matches."""
        if self._root is None:
            raise RuntimeError(f"matcher '{self._name}' has not matched")
        return Output(self._root.node, self._root.index)

    def get_match_root(self) -> Node:
        """The node of that output."""
        return self.get_match_value().node

    def get_match_values(self) -> list[Output]:
        """All outputs of the match."""
        return [Output(s.node, s.index) for s in self._bindings.values()]

    def get_match_nodes(self) -> list[Node]:
        """All nodes of the match."""
        return [adapters.adapter(s.node) for s in self._bindings.values()]

    def get_pattern_value_map(self) -> dict[Node, Output]:
        """The output for each node of the pattern."""
        return {adapters.adapter(p.node): Output(s.node, s.index) for p, s in self._bindings.items()}

    def get_symbols(self) -> dict[str, Any]:
        """The sizes of the dims that `shape_matches` names."""
        return dict(self._symbols)
