"""Maps each graph node to its Node adapter, and to its consumers.

Graph nodes refer to their inputs only, but adapters also return the consumers of an output. This module records
consumers by weak references: of a node that Python code creates, at its creation; of the nodes of a model that was
read, when one of them is first accessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from irload import graph

if TYPE_CHECKING:
    from irload.openvino.node import Node

__all__ = ["adapter", "consumers", "edited", "edits", "kinds", "link", "linked", "number_of", "relink", "remember"]

_adapters: WeakValueDictionary[int, Node] = WeakValueDictionary()
_consumers: WeakKeyDictionary[graph.Node, WeakSet[graph.Node]] = WeakKeyDictionary()
_numbers: WeakKeyDictionary[graph.Node, int] = WeakKeyDictionary()
_next = count()
_edits = 0

kinds: dict[str, type[Node]] = {}
"""Type of operation → class of its adapter. "" → Node, the class for all other types."""


def adapter(node: graph.Node) -> Node:
    """The adapter of a graph node: the same object as long as one exists."""
    cached = _adapters.get(id(node))  # the adapter keeps the node alive, so its id is not reused
    owner = getattr(node.op, "node", None)  # set for an operation that is written in Python
    if owner is not None and owner._belongs_to(node):  # noqa: SLF001
        return owner
    if cached is None or cached._node is not node:  # noqa: SLF001
        kind = kinds.get(node.type) or kinds[""]
        cached = kind.__new__(kind)
        cached._node = node  # noqa: SLF001
        _adapters[id(node)] = cached
    return cached


def remember(node: Node) -> None:
    """Record the adapter of a node that Python code creates."""
    _adapters[id(node._node)] = node  # noqa: SLF001


def link(nodes: Iterable[graph.Node]) -> None:
    """Record the nodes as consumers of their inputs."""
    for node in nodes:
        _consumers.setdefault(node, WeakSet())
        for source in node.inputs:
            _consumers.setdefault(source.node, WeakSet()).add(node)


def linked(node: graph.Node) -> bool:
    """True if the consumers of the node are recorded."""
    return node in _consumers


def consumers(node: graph.Node) -> list[tuple[graph.Node, int]]:
    """The inputs that an output of the node feeds, as pairs (consumer, input), in order of creation."""
    users = sorted(_consumers.get(node, ()), key=number_of)
    return [(user, k) for user in users for k, source in enumerate(user.inputs) if source.node is node]


def relink(node: graph.Node, index: int, source: graph.Output) -> None:
    """Feed an input from another output."""
    node.inputs[index] = source
    link([node])
    edited()


def edited() -> None:
    """Record that some graph has changed."""
    global _edits
    _edits += 1


def edits() -> int:
    """The number of changes so far: models compare it to detect that they may have changed."""
    return _edits


def number_of(node: graph.Node) -> int:
    """The number of the node in this process, which its unique name contains."""
    number = _numbers.get(node)
    if number is None:
        number = _numbers[node] = next(_next)
    return number
