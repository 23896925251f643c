"""The tools of text operations (splitting, replacing, tokenizing), implemented by kernels."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.automaton import Automaton, automaton_of
from irload.ops.text.patterns import Replacement
from irload.ops.text.ragged import require_offsets
from irload.ops.text.splits import Splitter
from irload.ops.text.tokens import TokenTable, columns, divided
from irload.ops.text.tools import SubwordModel, TextTools
from irload.plan.backends.llvm.kernels.text.splitting import ReplaceMatches, SplitTexts
from irload.plan.backends.llvm.kernels.text.tables import compiled_table
from irload.plan.backends.llvm.kernels.text.vocabulary import call
from irload.plan.backends.llvm.target import Target
from irload.record import record


@record()
class Parts:
    """The parts that splitting returns: `matches`, `gaps`, and texts that must not be split (`skipped`).

    With `merges`, a gap starts at the match before it.
    """

    matches: bool
    gaps: bool
    merges: bool = False
    skipped: bool = True


_MATCHES = Parts(matches=True, gaps=False, skipped=False)
_KEPT = {
    **{(how, i): Parts(matches=True, gaps=True) for how in ("isolate", "contiguous") for i in (False, True)},
    ("remove", False): Parts(matches=False, gaps=True),
    ("mergedwithnext", False): Parts(matches=False, gaps=True, merges=True),
}
"""The parts by behaviour and `invert`. Other combinations are computed in Python."""
_GROWTH = 3
"""The maximum number of bytes of a replacement for which the buffer of OpenVINO's extension always suffices."""


class CompiledTools(TextTools):
    """Splits, replaces and tokenizes texts by compiled code, if an automaton can match the pattern."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def splitter(self, source: bytes, behaviour: str, invert: bool, max_splits: int) -> Splitter:
        parts = _KEPT.get((behaviour, invert)) if max_splits == -1 else None
        if parts is None:
            return super().splitter(source, behaviour, invert, max_splits)
        return _CompiledSplitter(self._target, parts, source, behaviour, invert)

    def table(self, model: SubwordModel) -> TokenTable:
        return compiled_table(self._target, model) or super().table(model)

    def matches(self, source: bytes, begins: Array, ends: Array, chars: Array) -> Array | None:
        automaton = _automaton(source)
        if automaton is None:
            return None
        starts, stops = (np.ascontiguousarray(a.ravel(), np.int32) for a in (begins, ends))
        return split(self._target, automaton, _MATCHES, starts, stops, chars, None)[2] > 0

    def replaced(
        self,
        source: bytes,
        replacement: bytes,
        everywhere: bool,
        begins: Array,
        ends: Array,
        chars: Array,
        skips: Array | None,
    ) -> tuple[Array, Array, Array]:
        automaton = _automaton(source) if everywhere else None
        edges = _edges(source, Replacement(replacement))
        if automaton is None or edges is None:
            return super().replaced(source, replacement, everywhere, begins, ends, chars, skips)
        require_offsets(begins, ends, chars.size)
        starts, stops = (np.ascontiguousarray(a.ravel(), np.int32) for a in (begins, ends))
        firsts, lasts, counts = split(self._target, automaton, _MATCHES, starts, stops, chars, skips)
        if not firsts.size:
            return begins, ends, chars
        prefix, suffix = (np.frombuffer(edge + b"\0", np.uint8) for edge in edges[:2])
        size = int((stops - starts).sum(dtype=np.int64)) + firsts.size * (prefix.size + suffix.size - 2)
        result, new = np.empty(size + 1, np.uint8), np.empty((3, starts.size), np.int32)
        lengths = prefix.size - 1, suffix.size - 1
        results = result, new[0], new[1], starts.size, *lengths, int(edges[2])
        call(ReplaceMatches(), self._target, chars, starts, stops, counts, firsts, lasts, prefix, suffix, *results)
        total = int(new[1, -1])
        return new[0].reshape(begins.shape), new[1].reshape(begins.shape), result[:total]


def _automaton(source: bytes) -> Automaton | None:
    try:
        return automaton_of(source.decode())
    except UnicodeDecodeError:
        return None


def _edges(source: bytes, replacement: Replacement) -> tuple[bytes, bytes, bool] | None:
    """The bytes before and after the match in a replacement, and whether the match is kept; None for other forms."""
    whole = source[:1] == b"(" and source[1:2] != b"?" and source.endswith(b")") and source.count(b"(") == 1
    if not replacement.is_valid(1 if whole else 0):
        return None
    before, after, keeps_match = b"", b"", False
    for part in replacement.parts:
        if isinstance(part, bytes):
            before, after = (before, after + part) if keeps_match else (before + part, after)
        elif not keeps_match and (part == 0 or (part == 1 and whole)):
            keeps_match = True
        else:
            return None
    return (before, after, keeps_match) if len(before) + len(after) + keeps_match <= _GROWTH else None


def split(
    target: Target, automaton: Automaton, parts: Parts, begins: Array, ends: Array, chars: Array, skips: Array | None
) -> tuple[Array, Array, Array]:
    """The begins and ends of the parts of all texts, and the number of parts of each text, i32."""
    whole = np.zeros(begins.size, np.uint8) if skips is None else np.ascontiguousarray(skips.ravel()).view(np.uint8)
    capacity = int((ends - begins).sum(dtype=np.int64)) + begins.size
    firsts, lasts = np.empty(max(capacity, 1), np.int32), np.empty(max(capacity, 1), np.int32)
    counts, total = np.empty(max(begins.size, 1), np.int32), np.zeros(1, np.int64)
    flags = parts.matches, parts.gaps, parts.merges, parts.skipped
    call(
        *(SplitTexts(), target, np.ascontiguousarray(chars), begins, ends, whole, automaton.classes, automaton.steps),
        *(firsts, lasts, counts, total, begins.size, automaton.steps.shape[1], *map(int, flags)),
    )
    count = int(total[0])
    return firsts[:count].copy(), lasts[:count].copy(), counts[: begins.size]


class _CompiledSplitter(Splitter):
    """A splitter by an automaton. Python splits if there is no automaton, or if some strings must not be split."""

    def __init__(self, target: Target, parts: Parts, source: bytes, behaviour: str, invert: bool) -> None:
        super().__init__(source, behaviour, invert, -1)
        self._target = target
        self._selected_parts = parts
        self._automaton = _automaton(self.source)

    def split(
        self,
        ragged_begins: Array,
        ragged_ends: Array,
        begins: Array,
        ends: Array,
        chars: Array,
        *,
        skips: Array | None,
        unsplit: Set[bytes],
    ) -> tuple[Array, ...]:
        if self._automaton is None or unsplit:
            return super().split(ragged_begins, ragged_ends, begins, ends, chars, skips=skips, unsplit=unsplit)
        require_offsets(ragged_begins, ragged_ends, begins.size)
        require_offsets(begins, ends, chars.size)
        order = columns(ragged_begins, ragged_ends)
        whole = None if skips is None else skips[order]
        firsts, lasts, counts = split(
            self._target, self._automaton, self._selected_parts, begins[order], ends[order], chars, whole
        )
        starts, stops = divided(counts, ragged_begins, ragged_ends)
        flags = () if whole is None else (np.repeat(whole, counts),)
        return starts, stops, firsts, lasts, chars, *flags
