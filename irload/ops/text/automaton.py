"""Automata of patterns: tables of transitions that match with one step per character."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.dialect import converted, regex_package
from irload.ops.text.expressions import Atom, PatternProgram, Unfit
from irload.record import record

POINTS = 0x110000
MATCHED = 1 << 15
"""The bit of a transition that marks a match before the character."""
START, DEAD = 1, 0
_STATES, _SYMBOLS, _ATOMS = 4000, 250, 60


@record()
class Automaton:
    """The match of a pattern that starts at a position: the one that PCRE2 selects.

    `classes`: the symbol of each code point, u8. `steps`: u16 [states, symbols + 1], the next state for each symbol and
    for the end of the text, in the last column; 0 if no further characters can match. A transition with MATCHED marks a
    match that ends before the character; the last mark counts.
    """

    classes: Array
    steps: Array

    def end(self, text: str, at: int) -> int:
        """The end of the match that starts at `at`, −1 if there is none."""
        state, end = START, -1
        for k in range(at, len(text) + 1):
            step = int(self.steps[state, self.classes[ord(text[k])] if k < len(text) else -1])
            end = k if step & MATCHED else end
            state = step & ~MATCHED
            if state == DEAD:
                break
        return end


@lru_cache(maxsize=64)
def automaton_of(pattern: str) -> Automaton | None:
    """The automaton of a pattern in PCRE2's syntax; None if it matches the empty text, or needs backtracking.

    Raises Unsupported without the package `regex`.
    """
    try:
        program = PatternProgram.of(pattern)
        atoms = list(dict.fromkeys(i.atom for i in program.instructions if i is not None and i.atom is not None))
        classes, members = _symbols(atoms)
        return Automaton(classes, _Tables(program, {a: k for k, a in enumerate(atoms)}, members).steps())
    except Unfit:
        return None


def _symbols(atoms: Sequence[Atom]) -> tuple[Array, Array]:
    """Code points that no atom distinguishes are one symbol: the symbol of each, and the atoms of each symbol as bits.

    The last entry of the atoms is for the end of the text.
    """
    if len(atoms) > _ATOMS:
        raise Unfit
    members = [_members(atom) for atom in atoms]
    edges = np.unique(np.concatenate([[0], *(np.array(m, np.int64).ravel() for m in members)]))
    edges = edges[edges < POINTS]
    bits = np.zeros(edges.size, np.uint64)
    for k, spans in enumerate(members):
        for begin, end in spans:
            bits[np.searchsorted(edges, begin) : np.searchsorted(edges, end)] |= np.uint64(1 << k)
    kinds, symbols = np.unique(bits, return_inverse=True)
    if kinds.size > _SYMBOLS:
        raise Unfit
    lengths = np.diff(np.append(edges, POINTS))
    return np.repeat(symbols.astype(np.uint8), lengths), np.append(kinds, np.uint64(0))


@lru_cache(maxsize=256)
def _members(atom: Atom) -> tuple[tuple[int, int], ...]:
    """The ranges of code points that an atom matches."""
    if len(atom.source) == 1 and not atom.ignores_case and atom.source != ".":
        return ((ord(atom.source), ord(atom.source) + 1),)
    regex = regex_package()
    try:
        pattern: Any = regex.compile(f"(?{'i' if atom.ignores_case else ''}:{converted(atom.source)})+")
    except regex.error:
        raise Unfit from None
    if not _PLAIN.fullmatch(atom.source):
        return tuple(match.span() for match in pattern.finditer(_characters(0, POINTS)))
    ends = [match.span() for match in pattern.finditer(_characters(0, _EMPTY.start))]
    unassigned = [(_EMPTY.start, _EMPTY.stop)] if pattern.match(chr(_EMPTY.start)) else []
    later = (match.span() for match in pattern.finditer(_characters(_EMPTY.stop, POINTS)))
    return (*ends, *unassigned, *((begin + _EMPTY.stop, end + _EMPTY.stop) for begin, end in later))


_PLAIN = re.compile(r"(?a:\\[pP]\{\^?\w{1,2}\}|[\0-z|}~])*")
"""Matches a source of ASCII characters and general categories, without a code point in braces (`\\x{…}`)."""
_EMPTY = range(0x40000, 0xE0000)
"""Planes 4 to 13 have no characters, so only a pattern that names a code point can distinguish them."""


@cache
def _characters(begin: int, end: int) -> str:
    return np.arange(begin, end, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


State = tuple[int, ...]
"""Indices of instructions, in the order of preference."""


class _Tables:
    """The table of transitions: a state is the ordered list of instructions that a backtracking matcher tries."""

    def __init__(self, program: PatternProgram, numbers: dict[Atom, int], members: Array) -> None:
        self._program = program
        self._numbers = numbers
        self._members = [int(m) for m in members]

    def steps(self) -> Array:
        """The transitions of all states. Raises Unfit if there are too many."""
        start: State = (self._program.start,)
        numbers: dict[State, int] = {(): DEAD, start: START}
        waiting: list[State] = [start]
        rows = [[DEAD] * len(self._members)]
        for state in waiting:
            row: list[int] = []
            for symbol in range(len(self._members)):
                following, matched = self._step(state, symbol)
                if following not in numbers:
                    numbers[following] = len(numbers)
                    waiting.append(following)
                row.append(numbers[following] | (MATCHED if matched else 0))
            rows.append(row)
            if len(rows) > _STATES:
                raise Unfit
        return np.array(rows, np.uint16)

    def _step(self, state: State, symbol: int) -> tuple[State, bool]:
        """The state after a symbol, and whether a match ends before it, which excludes all later instructions."""
        members, is_end = self._members[symbol], symbol == len(self._members) - 1
        following: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(reversed(state))
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self._program.instructions[at]
            if instruction is None:
                return tuple(following), True
            if instruction.atom is None:
                stack += reversed(instruction.next)
                continue
            is_member = not is_end and bool(members >> self._numbers[instruction.atom] & 1)
            if instruction.asserts is not None:
                stack += instruction.next if is_member == instruction.asserts else ()
            elif is_member:
                following[instruction.next[0]] = None
        return tuple(following), False
