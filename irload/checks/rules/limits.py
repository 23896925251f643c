"""IR9xx: safety limits."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule, graph_rule
from irload.checks.rules.files import hit_of
from irload.checks.subject import Scope, Subject
from irload.errors import LimitExceeded


@file_rule("IR901", "error", "file beyond a limit")
def file_limit(subject: Subject) -> Iterator[Hit]:
    """The file is larger, longer or more deeply nested than the limits allow (`irload.Limits`, `--limit`).

    Example: bodies nested 100 deep.
    """
    if isinstance(subject.fatal, LimitExceeded):
        yield hit_of(subject.fatal)


@graph_rule("IR902", "error", "tensor beyond the limit")
def tensor_limit(scope: Scope) -> Iterator[Hit]:
    """An output of the layer, but none of its inputs, would be larger than the limit `tensor_bytes`.

    Example: a Tile of [1024,1024] by [1024,1024].
    """
    limits = scope.subject.limits
    for layer, node in scope.pairs():
        if any((scope.type(i).nbytes or 0) > limits.tensor_bytes for i in node.inputs):
            continue
        for output in node.outputs:
            size = scope.type(output).nbytes
            if size is not None and size > limits.tensor_bytes:
                fact = f"its output {scope.type(output)} is too large: {size} bytes"
                yield Hit(layer, limits.exceeded("tensor_bytes", fact).message)
