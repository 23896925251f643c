"""UTF-8 as the extension reads it: valid texts decode as usual, invalid bytes as its libraries decode them."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.tensor import Array, TensorType
from irload.ops.text.base import Text
from irload.ops.text.ragged import joined, pieces_of, require_strings, strings_of

REPLACEMENT = "\ufffd".encode()
_SMALLEST = (0x0, 0x80, 0x800, 0x10000)
"""The smallest code point of a sequence of 1, 2, 3 and 4 bytes."""


class UTF8Validate(Text, opset="extension"):
    """Replaces invalid bytes of UTF-8 by U+FFFD, or removes them.

    Inputs and outputs: a tensor of strings. A sequence that stops early is replaced by one U+FFFD, an overlong one by
    as many as it has bytes. Encoded surrogates and code points beyond U+10FFFF are kept.
    """

    replace_mode = attr.boolean(default=False)

    def infer(self, begins: TensorType, ends: TensorType, chars: TensorType) -> tuple[TensorType, ...]:
        require_strings("string", begins, ends, chars)
        return strings_of(begins.shape)

    def compute(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, ...]:
        return joined(map(self.change, pieces_of(begins, ends, chars)), begins.shape)

    def change(self, text: bytes) -> bytes:
        """The valid text of a string."""
        return validated(text, REPLACEMENT if self.replace_mode else b"")


def validated(data: bytes, mark: bytes) -> bytes:
    """The text with `mark` in place of invalid sequences."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return _repaired(data, mark)
    return data


def _repaired(data: bytes, mark: bytes) -> bytes:
    result = bytearray()
    at = 0
    while at < len(data):
        length = _length(data[at])
        if length == 0:
            result += mark
            at += 1
            continue
        end = at + 1
        while end < at + length and end < len(data) and data[end] >> 6 == 0b10:
            end += 1
        if end < at + length:  # the next byte may start another sequence
            result += mark
        elif length > 1 and _point(data[at:end]) < _SMALLEST[length - 1]:
            result += mark * length
        else:
            result += data[at:end]
        at = end
    return bytes(result)


def _length(lead: int) -> int:
    """The bytes of a sequence that starts with `lead`, 0 if no sequence does."""
    if lead < 0x80:
        return 1
    return 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 0b11110 else 0


def _point(sequence: bytes) -> int:
    point = sequence[0] & (0x7F >> len(sequence))
    for byte in sequence[1:]:
        point = point << 6 | byte & 0x3F
    return point


def decoded(data: bytes) -> tuple[str, Array | None]:
    """The text, and the byte offset of each character and of the end; None if all characters are ASCII.

    Invalid texts are divided into characters as by PCRE2, which does not check subjects: a byte below 0xC0 is one
    character, any other byte is one character with as many following bytes as it announces.
    """
    if data.isascii():
        return data.decode("ascii"), None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _unchecked(data)
    starts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
    return text, np.append(starts, len(data))


def _unchecked(data: bytes) -> tuple[str, Array]:
    points: list[str] = []
    starts: list[int] = []
    at = 0
    while at < len(data):
        lead = data[at]
        length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        sequence = data[at : at + length]
        point = lead if length == 1 else sequence[0] & (0x7F >> length)
        for byte in sequence[1:]:
            point = point << 6 | byte & 0x3F
        points.append(chr(min(point, 0x10FFFF)))
        starts.append(at)
        at += length
    return "".join(points), np.array([*starts, len(data)])
