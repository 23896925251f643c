"""IR6xx: the weights in the .bin file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irload.checks.rule import Hit, file_rule
from irload.checks.subject import Subject
from irload.checks.weightscan import Scan, scan
from irload.core import element as et
from irload.core.element import ElementType, element
from irload.core.shape import Shape
from irload.errors import IRError
from irload.read.raw import RawLayer

ConstantRange = tuple[RawLayer, ElementType, tuple[int, ...], int, int]
_FEW = 16
"""Constants of fewer values are parameters of operations rather than weights."""


def constants(subject: Subject) -> list[ConstantRange]:
    """(layer, element type, shape, offset, size) of every Const in the .bin file whose attributes can be read."""
    if subject.constants is None:
        subject.constants = list(_constants(subject))
    return subject.constants


def _constants(subject: Subject) -> Iterator[ConstantRange]:
    for scope in subject.scopes:
        for layer in scope.layers.values():
            if layer.type != "Const" or layer.values is not None:
                continue
            offset, size = layer.data.get("offset", ""), layer.data.get("size", "")
            try:
                element_type, shape = element(layer.data["element_type"]), Shape.parse(layer.data["shape"]).static
            except (IRError, KeyError):
                continue
            if offset.isascii() and offset.isdigit() and size.isascii() and size.isdigit() and len(offset + size) < 38:
                yield layer, element_type, shape, int(offset), int(size)


def _scanned(subject: Subject, element_type: ElementType, shape: tuple[int, ...], offset: int) -> Scan | None:
    """The scan of a constant, shared by all rules."""
    count = int(np.prod(shape, dtype=object)) if shape else 1
    key = (offset, count, element_type)
    if key not in subject.scans:
        subject.scans[key] = scan(subject.weights, element_type, count, offset)
    return subject.scans[key]


def _needed(element_type: ElementType, shape: tuple[int, ...]) -> int:
    return element_type.bytes_for(int(np.prod(shape, dtype=object)) if shape else 1)


def _used(constant: ConstantRange) -> tuple[int, int]:
    """The range of bytes that a constant takes, regardless of its stated size; for strings, the stated size."""
    _, element_type, shape, offset, size = constant
    return offset, offset + (size if element_type is et.string else max(_needed(element_type, shape), min(size, 1)))


def _inside(subject: Subject, offset: int, size: int) -> bool:
    return offset <= subject.weights.size and size <= subject.weights.size - offset


@file_rule("IR601", "error", "weights missing")
def missing(subject: Subject) -> Iterator[Hit]:
    """The model has constants, but there is no .bin file beside it, or it cannot be opened.

    Example: a model.xml that was copied without its model.bin.
    """
    if subject.weights_fault is not None:
        yield Hit(None, subject.weights_fault.message, covers=[layer.line for layer, *_ in constants(subject)])
        return
    if subject.weights.present:
        return
    needing = [
        (layer, size) for layer, element_type, shape, _, size in constants(subject) if _needed(element_type, shape)
    ]
    if needing:
        total = sum(size for _, size in needing)
        first = needing[0][0]
        yield Hit(
            None,
            f"there is no .bin file beside the model, and {len(needing)} constants need {total:,} bytes of it",
            f"the first is '{first.name}' (id {first.id})",
            covers=[layer.line for layer, _ in needing],
        )


@file_rule("IR602", "error", "constant outside the .bin file")
def outside(subject: Subject) -> Iterator[Hit]:
    """The byte range of a constant is outside the .bin file, although the file is large enough for all constants.

    Example: `offset="100000" size="400"` with a .bin of 1200 bytes.
    """
    if not subject.weights.present or _is_truncated(subject):
        return
    for layer, _, _, offset, size in constants(subject):
        if not _inside(subject, offset, size):
            yield Hit(
                layer,
                f"takes bytes {offset} to {offset + size}, but the .bin file has {subject.weights.size}",
                f'offset="{offset}", size="{size}"',
            )


@file_rule("IR612", "error", "weights truncated")
def truncated(subject: Subject) -> Iterator[Hit]:
    """The .bin file ends before its constants do: it was cut off, or belongs to another model.

    Example: a .bin of 4096 bytes for constants of 5000 bytes.
    """
    if subject.weights.present and _is_truncated(subject):
        lost = [c for c in constants(subject) if not _inside(subject, *c[3:])]
        end = max(offset + size for *_, offset, size in lost)
        first = lost[0][0]
        yield Hit(
            None,
            f"the .bin file has {subject.weights.size:,} bytes, but its constants reach up to {end:,}",
            f"{len(lost)} constants are outside, first '{first.name}' (id {first.id})",
            covers=[c[0].line for c in lost],
        )


def _misplaced(subject: Subject) -> bool:
    """True if some constant is outside the file; the range it should cover is then not reported as unused."""
    return subject.weights.present and any(
        not _inside(subject, offset, size) for *_, offset, size in constants(subject)
    )


def _is_truncated(subject: Subject) -> bool:
    """True if constants are outside the file and together exceed its size, so their offsets may be right."""
    ranges = {(offset, offset + size) for *_, offset, size in constants(subject)}
    end = max((end for _, end in ranges), default=0)
    together = sum(end - start for start, end in ranges) + _PADDING * len(ranges)
    return subject.weights.size < end <= together


@file_rule("IR603", "error", "constant smaller than its shape")
def too_small(subject: Subject) -> Iterator[Hit]:
    """The size of a constant is less than its element type and shape take.

    Example: `element_type="f32" shape="4,3,3,3" size="400"`: 432 bytes are needed.
    """
    for layer, element_type, shape, _, size in constants(subject):
        needed = _needed(element_type, shape)
        if size < needed:
            yield Hit(layer, f"size {size} is less than the {needed} bytes that {element_type}{list(shape)} takes")


@file_rule("IR604", "warning", "constant larger than its shape")
def too_large(subject: Subject) -> Iterator[Hit]:
    """The size of a constant is more than its element type and shape take; OpenVINO ignores the rest.

    Example: `element_type="f32" shape="4,3,3,2" size="432"`: 288 bytes are needed.
    """
    for layer, element_type, shape, offset, size in constants(subject):
        needed = _needed(element_type, shape)
        # Zero-element tensors are written with one byte of filler; strings have a header.
        # IR602 reports ranges outside the file.
        inside = not subject.weights.present or _inside(subject, offset, size)
        if size > max(needed, 1) and element_type is not et.string and inside:
            yield Hit(layer, f"size {size} is more than the {needed} bytes that {element_type}{list(shape)} takes")


@file_rule("IR605", "warning", "constants that overlap")
def overlap(subject: Subject) -> Iterator[Hit]:
    """Two constants take ranges of the .bin file that overlap but are not equal. No known tool writes this.

    Example: offset 0, size 400 and offset 200, size 400.
    """
    ranges = sorted({_used(c): c[0] for c in reversed(constants(subject))}.items(), key=_key)
    reach, holder = 0, None
    for (start, end), layer in ranges:
        if start < reach and holder is not None and end > start:
            yield Hit(layer, f"takes bytes {start} to {end}, which overlap '{holder.name}' (id {holder.id})")
        if end > reach:
            reach, holder = end, layer


def _key(item: tuple[tuple[int, int], RawLayer]) -> tuple[int, int]:
    return item[0]


@file_rule("IR606", "warning", "trailing bytes")
def trailing(subject: Subject) -> Iterator[Hit]:
    """The .bin file continues after the last constant: it belongs to another model, or data was appended to it.

    Example: a .bin of 5000 bytes whose last constant ends at 1200.
    """
    end = max((offset + size for _, _, _, offset, size in constants(subject)), default=0)
    if subject.weights.size > end + _PADDING and not _misplaced(subject):
        extra = subject.weights.size - end
        yield Hit(None, f"the .bin file has {extra:,} bytes after the last constant, which ends at {end:,}")


@file_rule("IR607", "note", "bytes that no constant uses")
def unused(subject: Subject) -> Iterator[Hit]:
    """Ranges inside the .bin file belong to no constant: layers were removed from the XML, but not their weights.

    Example: a constant was removed from the XML only.
    """
    reach, gaps, total = 0, 0, 0
    for start, end in sorted(_used(c) for c in constants(subject)):
        if start > reach + _PADDING:
            gaps, total = gaps + 1, total + start - reach
        reach = max(reach, end)
    if gaps and not _misplaced(subject):
        yield Hit(None, f"{total:,} bytes of the .bin file, in {gaps} ranges, belong to no constant")


_PADDING = 64
"""Gaps up to this many bytes are alignment."""


@file_rule("IR608", "warning", "NaN in weights")
def not_a_number(subject: Subject) -> Iterator[Hit]:
    """A floating-point constant holds NaN. Every result that depends on it will be NaN, too.

    Scalars are exempt: PyTorch's `xlogy` and `median` select NaN on purpose.

    Example: a checkpoint of a training that diverged.
    """
    for layer, element_type, shape, offset, _ in () if _odd(subject)[2] else constants(subject):
        stats = _scanned(subject, element_type, shape, offset) if shape else None
        if stats is not None and stats.nans:
            yield Hit(layer, f"holds {stats.nans:,} NaN among {stats.count:,} values of {element_type}{list(shape)}")


@file_rule("IR609", "note", "infinity in weights")
def infinite(subject: Subject) -> Iterator[Hit]:
    """A floating-point constant holds infinities. Attention masks do so on purpose; weights do not.

    Example: an f16 constant whose f32 original overflowed.
    """
    for layer, element_type, shape, offset, _ in () if _odd(subject)[2] else constants(subject):
        stats = _scanned(subject, element_type, shape, offset)
        if stats is not None and stats.infinities and not stats.nans:
            yield Hit(
                layer,
                f"holds {stats.infinities:,} infinities among {stats.count:,} values of {element_type}{list(shape)}",
            )


@file_rule("IR610", "note", "weights that are all zero")
def all_zero(subject: Subject) -> Iterator[Hit]:
    """A floating-point constant of 16 values or more contains only zeros. Often weights that were never loaded.

    Example: a .bin file that was preallocated and never written.
    """
    for layer, element_type, shape, offset, _ in constants(subject):
        stats = _scanned(subject, element_type, shape, offset)
        if stats is not None and stats.count >= _FEW and not stats.nonzero:
            yield Hit(layer, f"contains only zeros: {element_type}{list(shape)}")


@file_rule("IR611", "warning", "weights of another model")
def foreign(subject: Subject) -> Iterator[Hit]:
    """Many floating-point constants have implausible values: NaN, or magnitudes beyond 1e18.

    Example: two models' .bin files were swapped.
    """
    odd, floats, too_many = _odd(subject)
    if too_many:
        yield Hit(
            None,
            f"{odd} of {floats} floating-point constants hold implausible values",
            "the .bin file probably belongs to another model",
        )


def _odd(subject: Subject) -> tuple[int, int, bool]:
    """The number of floating-point constants with implausible values, the number of all, and whether too many have."""
    floats = odd = 0
    for _, element_type, shape, offset, _ in constants(subject):
        stats = _scanned(subject, element_type, shape, offset)
        if stats is not None and stats.count >= _FEW:
            floats += 1
            odd += stats.wild * 50 > stats.count
    return odd, floats, odd > 1 and odd * 4 >= floats
