"""Bytes and the characters that stand for them: byte tokens, and the alphabet of byte-level tokenizers."""

from __future__ import annotations

import re

import numpy as np

from irload.core.element import i32
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.ops.ports import require_element
from irload.ops.text.base import Text
from irload.ops.text.ragged import (
    joined,
    pieces_of,
    ragged_strings_of,
    require_count,
    require_offsets,
    require_ragged_strings,
    require_strings,
    strings_of,
)

_BYTE_TOKEN = re.compile(rb"<0x([0-9A-F]{2})>")


def _alphabet() -> list[str]:
    """The character of each byte: printable bytes of Latin-1 stand for themselves, others for those from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(k) if k in printable else chr(next(others)) for k in range(256)]


CHARACTERS = [c.encode() for c in _alphabet()]
_TO_BYTES = {ord(c): chr(k) for k, c in enumerate(_alphabet())}


class ByteFallback(Text, opset="extension"):
    """Strings, with tokens like `<0x0A>` replaced by their byte; other tokens of this form become a byte 255."""

    def infer(self, begins: TensorType, ends: TensorType, chars: TensorType) -> tuple[TensorType, ...]:
        require_strings("string", begins, ends, chars)
        return strings_of(begins.shape)

    def compute(self, begins: Array, ends: Array, chars: Array) -> tuple[Array, ...]:
        return joined(map(byte_token, pieces_of(begins, ends, chars)), begins.shape)


def byte_token(token: bytes) -> bytes:
    """The byte of a token like `<0x0A>`; other tokens unchanged."""
    if len(token) != 6 or token[0] != ord("<") or token[5] != ord(">"):
        return token
    match = _BYTE_TOKEN.fullmatch(token)
    return b"\xff" if match is None else bytes.fromhex(match[1].decode())


class BytesToChars(Text, opset="extension"):
    """Strings with each byte as a printable character.

    Inputs and outputs: a ragged tensor of strings, optionally a boolean per string that leaves it unchanged.
    """

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 5, 6)
        require_ragged_strings(inputs)
        return (*ragged_strings_of(inputs[0].shape), *(t.without_value() for t in inputs[5:]))

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        ragged_begins, ragged_ends, begins, ends, chars = inputs[:5]
        skips = inputs[5].tolist() if len(inputs) == 6 else [False] * begins.size
        shown = [
            piece if skip else b"".join(map(CHARACTERS.__getitem__, piece))
            for piece, skip in zip(pieces_of(begins, ends, chars), skips, strict=True)
        ]
        return (ragged_begins, ragged_ends, *joined(shown, begins.shape), *inputs[5:])


class CharsToBytes(Text, opset="extension"):
    """The strings of each row, joined, with the characters of BytesToChars as bytes.

    Input: a ragged tensor of strings. Output: a tensor of strings, one per row. Characters outside of the alphabet keep
    their bytes.
    """

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 5)
        require_ragged_strings(inputs)
        return strings_of(inputs[0].shape)

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        ragged_begins, ragged_ends, begins, ends, chars = inputs
        require_offsets(ragged_begins, ragged_ends, begins.size)
        pieces = [bytes_of_characters(piece) for piece in pieces_of(begins, ends, chars)]
        rows = zip(ragged_begins.ravel().tolist(), ragged_ends.ravel().tolist(), strict=True)
        return joined((b"".join(pieces[first:last]) for first, last in rows), ragged_begins.shape)


def bytes_of_characters(piece: bytes) -> bytes:
    """The bytes of a string of the alphabet."""
    text = piece.decode("utf-8", "surrogateescape")
    return b"".join(
        _TO_BYTES[ord(c)].encode("latin-1") if ord(c) in _TO_BYTES else c.encode("utf-8", "surrogateescape")
        for c in text
    )


class FuzeRagged(Text, opset="extension"):
    """The strings of each row as one string, if they are consecutive in memory.

    Inputs: the begins and ends of rows, and the begins and ends of their strings, all i32. Outputs: the begins and ends
    of the joined strings.
    """

    def infer(
        self, ragged_begins: TensorType, ragged_ends: TensorType, begins: TensorType, ends: TensorType
    ) -> tuple[TensorType, ...]:
        ports = {"ragged_begins": ragged_begins, "ragged_ends": ragged_ends, "begins": begins, "ends": ends}
        for name, tensor in ports.items():
            require_element(name, tensor, i32)
        offsets = TensorType(i32, ragged_begins.shape)
        return offsets, offsets

    def compute(self, ragged_begins: Array, ragged_ends: Array, begins: Array, ends: Array) -> tuple[Array, ...]:
        if ragged_begins.size and (ragged_begins.max() >= begins.size or ragged_begins.min() < 0):
            raise ExecutionError(f"rows begin within the {begins.size} strings, found {int(ragged_begins.max())}")
        last = np.where(ragged_ends > ragged_begins, ragged_ends - 1, ragged_ends)
        if last.size and last.max() >= ends.size:
            raise ExecutionError(f"rows end within the {ends.size} strings, found {int(last.max())}")
        return begins.ravel()[ragged_begins], ends.ravel()[last]
