"""RegexNormalization, SpecialTokensSplit and RegexSplit: texts changed and split by regular expressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core import attribute as attr
from irload.core.element import boolean
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid
from irload.ops.text.patterns import Pattern, Replacement, pattern_of
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import (
    LINE,
    pieces_of,
    ragged_strings_of,
    require_count,
    require_offsets,
    require_ragged_strings,
    require_strings,
    require_text,
    strings_of,
    text_of,
)
from irload.ops.text.splits import BEHAVIOURS
from irload.ops.text.tools import TextOp

_OUTDATED = {
    rb" ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't)": rb"(?| ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't))",
    rb"(^)(.)": rb"(^)([\s\S])",
    rb"(^)(.+)": rb"(^)([\s\S])",
}
"""Patterns of old files, and the patterns that replace them."""


class RegexNormalization(TextOp, opset="extension"):
    """Replaces the matches of a pattern in each string.

    Inputs: a tensor of strings, optionally a boolean per string that leaves it unchanged, the pattern and the
    replacement as bytes. Outputs: the strings and the booleans, if given. As in the extension, a string stays unchanged
    if a group of the replacement is not set, or if the result does not fit the extension's buffer.
    """

    global_replace = attr.boolean(default=True)

    def infer(
        self, begins: TensorType, ends: TensorType, chars: TensorType, *inputs: TensorType
    ) -> tuple[TensorType, ...]:
        require_count(3 + len(inputs), 5, 6)
        require_strings("string", begins, ends, chars)
        for name, tensor in zip(("pattern", "replacement"), inputs[-2:], strict=True):
            require_text(name, tensor)
        return (*strings_of(begins.shape), *(t.without_value() for t in inputs[:-2]))

    def compute(self, begins: Array, ends: Array, chars: Array, *inputs: Array) -> tuple[Array, ...]:
        source = text_of(inputs[-2])
        pattern, replacement = _OUTDATED.get(source, source), text_of(inputs[-1])
        skips = inputs[0] if len(inputs) == 3 else None
        replaced = self.tools.replaced(pattern, replacement, self.global_replace, begins, ends, chars, skips)
        return (*replaced, *inputs[:-2])

    def change(self, pattern: Array, replacement: Array) -> Callable[[bytes], bytes]:
        """The replacement of matches in single strings."""
        source = text_of(pattern)
        compiled, new = pattern_of(_OUTDATED.get(source, source)), Replacement(text_of(replacement))
        return lambda text: compiled.substituted(text, new, everywhere=self.global_replace)


class SpecialTokensSplit(TextOp, opset="extension"):
    """Splits strings at special tokens, which later operations leave unchanged.

    Inputs: a ragged tensor of strings, optionally a boolean per string that leaves it unsplit, the pattern of all
    tokens as bytes. Outputs: the parts as a ragged tensor of strings, and a boolean per part that is true for tokens. A
    group of the pattern is the token without blanks around it, which are dropped.
    """

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 6, 7)
        require_ragged_strings(inputs)
        require_text("pattern", inputs[-1])
        return (*ragged_strings_of(inputs[0].shape), TensorType(boolean, LINE))

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        ragged_begins, ragged_ends, begins, ends, chars = inputs[:5]
        source = text_of(inputs[-1])
        require_offsets(ragged_begins, ragged_ends, begins.size)
        require_offsets(begins, ends, chars.size)
        matches = self.tools.matches(source, begins, ends, chars)
        if matches is not None and not matches.any() and _is_simple(*inputs[:4]):
            skips = np.zeros(begins.size, bool) if len(inputs) == 6 else inputs[5].copy()
            return ragged_begins, ragged_ends, begins, ends, chars, skips
        pattern = pattern_of(source)
        pieces = pieces_of(begins, ends, chars)
        skips = inputs[5].tolist() if len(inputs) == 7 else [False] * len(pieces)
        rows = zip(ragged_begins.ravel().tolist(), ragged_ends.ravel().tolist(), strict=True)
        parts: list[tuple[int, int, bool]] = []
        counts: list[int] = []
        offsets = begins.tolist()
        for first, last in rows:
            before = len(parts)
            for k in range(first, last):
                if skips[k]:
                    parts.append((offsets[k], offsets[k] + len(pieces[k]), True))
                else:
                    parts += _special(pattern, pieces[k], offsets[k])
            counts.append(len(parts) - before)
        new = np.array(parts, np.int32).reshape(-1, 3)
        stops = np.cumsum(counts, dtype=np.int32).reshape(ragged_begins.shape)
        starts = (stops - np.array(counts, np.int32).reshape(stops.shape)).astype(np.int32)
        return starts, stops, new[:, 0].copy(), new[:, 1].copy(), chars, new[:, 2].astype(bool)


def _is_simple(ragged_begins: Array, ragged_ends: Array, begins: Array, ends: Array) -> bool:
    """True if the rows contain all strings in order, and no string is empty."""
    edges = np.append(ragged_begins.ravel(), begins.size)
    return bool(edges[0] == 0 and (edges[1:] == ragged_ends.ravel()).all() and (begins < ends).all())


def _special(pattern: Pattern, piece: bytes, offset: int) -> list[tuple[int, int, bool]]:
    """The parts of one string: begin, end, and true for special tokens."""
    parts: list[tuple[int, int, bool]] = []
    at = 0
    for (begin, end), inner in pattern.groups(piece):
        if at < begin:
            parts.append((offset + at, offset + begin, False))
        first, last = (begin, end) if inner is None or inner[0] == inner[1] else inner
        parts.append((offset + first, offset + last, True))
        at = end
    if at < len(piece):
        parts.append((offset + at, offset + len(piece), False))
    return parts


class RegexSplit(TextOp, opset="extension"):
    """Splits strings at the matches of a pattern.

    Inputs: a ragged tensor of strings, optionally a boolean per string that leaves it unsplit, the pattern as bytes,
    and in old files a tensor of strings that stay unsplit. Outputs: the parts as a ragged tensor of strings, and the
    booleans, if given. `behaviour`: matches are removed, isolated, or merged with the part before or after; `invert`
    exchanges matches and the text between them; part `max_splits` extends to the end.
    """

    behaviour = attr.choice(*BEHAVIOURS, default="remove")
    invert = attr.boolean(default=False)
    max_splits = attr.integer(default=-1)

    def validate(self) -> None:
        if self.max_splits != -1 and not 0 < self.max_splits < 1 << 31:
            raise AttributeInvalid(f"attribute max_splits must be -1 or 1 to 2^31-1, found {self.max_splits}")

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_count(len(inputs), 6, 7, 9)
        require_ragged_strings(inputs)
        require_text("pattern", inputs[6] if len(inputs) == 7 else inputs[5])
        if len(inputs) == 9:
            require_strings("skip", *inputs[6:])
        flags = (TensorType(inputs[5].element, LINE),) if len(inputs) == 7 else ()
        return (*ragged_strings_of(inputs[0].shape), *flags)

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        has_skips = len(inputs) == 7
        pattern = inputs[6 if has_skips else 5]
        splitter = prepared(
            self,
            (pattern,),
            lambda: self.tools.splitter(text_of(pattern), self.behaviour, self.invert, self.max_splits),
        )
        unsplit = frozenset(pieces_of(*inputs[6:])) if len(inputs) == 9 else frozenset[bytes]()
        return splitter.split(*inputs[:5], skips=inputs[5] if has_skips else None, unsplit=unsplit)
