"""IR408 and IR409: inputs of a layer that contradict each other. IR310: any other reason why it cannot be built."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule
from irload.checks.rules.bodies import feeds_too_little
from irload.checks.rules.files import hit_of
from irload.checks.subject import Subject
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.graph import Node


@file_rule("IR408", "error", "shapes do not agree")
def shapes_disagree(subject: Subject) -> Iterator[Hit]:
    """The shapes (or the values that make a shape) of a layer's inputs break a rule of its operation.

    Example: a Convolution whose data has 3 channels and whose filters expect 4.
    """
    yield from _faults(subject, ShapeMismatch)


@file_rule("IR409", "error", "element types do not agree")
def types_disagree(subject: Subject) -> Iterator[Hit]:
    """The element types of a layer's inputs break a rule of its operation.

    Example: an Add of an f32 and an i64 tensor.
    """
    yield from _faults(subject, TypeMismatch)


def _faults(subject: Subject, kind: type[IRError]) -> Iterator[Hit]:
    for node, error in subject.inference.faults:
        layer = subject.layers_by_line.get(node.line)
        starved = layer is not None and feeds_too_little(layer)  # IR504 reports it
        if isinstance(error, kind) and not starved and not _arity_is_wrong(node):
            inputs = ", ".join(
                f"{node.op.signature.name(k)} '{i.node.name}' {subject.inference.types[i].without_value()}"
                for k, i in enumerate(node.inputs)
            )
            yield Hit(node, error.message, inputs)


def _arity_is_wrong(node: Node) -> bool:
    try:
        node.op.signature.check(len(node.inputs))
    except ShapeMismatch:
        return True  # IR304 reports it
    return False


@file_rule("IR310", "error", "layer that cannot be built", last=True)
def anything_else(subject: Subject) -> Iterator[Hit]:
    """A layer cannot be built because of a fault that no other rule reports.

    Example: a Loop without a `<body>`.
    """
    for error in (*subject.build_faults, *(e for _, e in subject.inference.faults)):
        line = None if error.where is None else error.where.line
        if line not in subject.explained:
            yield hit_of(error)
