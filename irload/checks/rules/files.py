"""IR0xx: the file and its XML."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule
from irload.checks.subject import Subject
from irload.errors import IRError, LimitExceeded, TypeMismatch


def hit_of(error: IRError) -> Hit:
    """A hit at the location of an error."""
    return Hit(error.where, error.message)


@file_rule("IR001", "error", "not readable as IR")
def unreadable(subject: Subject) -> Iterator[Hit]:
    """The file is not well-formed XML, or not an OpenVINO IR of version 2 to 7, 10 or 11.

    The message names the actual format (an ONNX file, a Git-LFS pointer, …) and the remedy. Nothing else can be
    checked.

    Example: `<net name="m" version="9">`.
    """
    if subject.fatal is not None and not isinstance(subject.fatal, LimitExceeded):
        yield hit_of(subject.fatal)


@file_rule("IR002", "error", "malformed element")
def malformed(subject: Subject) -> Iterator[Hit]:
    """An element lacks an attribute that the reader needs, or the attribute has no usable value.

    Required are a layer's id, name and type, an output port's id and precision, an edge's four ends, and dims of at
    least −1.

    Example: `<port id="1">` in an `<output>`, without a precision.
    """
    for error in subject.read_faults:
        yield hit_of(error)
    for error in subject.build_faults:
        if isinstance(error, TypeMismatch):  # an invalid precision
            yield hit_of(error)


@file_rule("IR003", "warning", "unknown element or attribute")
def unknown_element(subject: Subject) -> Iterator[Hit]:
    """The file has an element, or an attribute of a layer, port or edge, that is not part of the format.

    OpenVINO skips it without a warning. Attributes of `data` are checked by operation: see IR306.

    Example: `<dataa shape="1"/>` inside a layer, or `<port id="1" precision="FP32" name="x">` (it is `names`).
    """
    for text in subject.net.warnings:
        line, _, rest = text.partition(": ")
        number = line.removeprefix("line ")
        yield Hit(None, rest, line=int(number)) if number.isdigit() else Hit(None, text)
