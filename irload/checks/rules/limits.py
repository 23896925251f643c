"""IR9xx: safety limits."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule, graph_rule
from irload.checks.rules.files import hit_of
from irload.checks.subject import Scope, Subject
from irload.errors import LimitExceeded
from irload.safety import limits


@file_rule("IR901", "error", "file beyond a limit")
def file_limit(subject: Subject) -> Iterator[Hit]:
    """The file is larger, longer or more deeply nested than irload's limits allow (`irload.limits`).

    Example: bodies nested 100 deep.
    """
    if isinstance(subject.fatal, LimitExceeded):
        yield hit_of(subject.fatal)


@graph_rule("IR902", "error", "tensor beyond the limit")
def tensor_limit(scope: Scope) -> Iterator[Hit]:
    """Running the layer would make a tensor larger than `irload.limits.tensor_bytes`. Reported where it arises.

    Example: a Tile of [1024,1024] by [1024,1024].
    """
    for layer, node in scope.pairs():
        if any((scope.type(i).nbytes or 0) > limits.tensor_bytes for i in node.inputs):
            continue
        for output in node.outputs:
            size = scope.type(output).nbytes
            if size is not None and size > limits.tensor_bytes:
                yield Hit(
                    layer, f"its output {scope.type(output)} takes {size:,} bytes; the limit is {limits.tensor_bytes:,}"
                )
