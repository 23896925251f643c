"""Regular expressions as programs of few instructions, for patterns that need no backtracking.

These patterns consist of sets of characters, groups, alternatives, repetitions, and assertions about the next
character. An equivalent automaton then selects the same match as PCRE2: of all matches at a position, the first one in
the order in which a backtracking matcher tries them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field

from irload.ops.text.dialect import tokens
from irload.record import record

LARGEST = 2000
"""Maximum number of instructions in a program."""
_SINGLE = re.compile(r"\\[pP](?:\{\^?[\w&]+\}|\w)|\\[sSwWdDhHvVNtnrfe]|\\\W|[^\\]", re.DOTALL)
"""Tokens that match exactly one character."""
_COUNTS = re.compile(r"(\d+)(?:(,)(\d*))?")


class Unfit(Exception):
    """A pattern that needs backtracking, or another syntax."""


@record()
class Atom:
    """A set of characters: the text of a pattern that matches one of them."""

    source: str
    ignores_case: bool = False


@record(frozen=False)
class PatternInstruction:
    """Continue at one of `next`, in this order of preference; None in a program: a match.

    `atom`: the character that is consumed, or with `asserts` the one that must follow (True) or must not (False).
    """

    next: list[int]
    atom: Atom | None = None
    asserts: bool | None = None


Emit = Callable[[int], int]
"""Appends instructions that continue at an index, and returns the index of the first one."""


@record(frozen=False)
class PatternPart:
    """A part of a pattern; `empty`: it matches the empty text, perhaps depending on the next character."""

    emit: Emit
    empty: bool


@record(frozen=False)
class PatternProgram:
    """The instructions of a pattern, and the index of the first one."""

    instructions: list[PatternInstruction | None] = field(default_factory=lambda: [None])
    start: int = 0

    @staticmethod
    def of(pattern: str) -> PatternProgram:
        """The program of a pattern. Raises Unfit for other syntax, and for patterns that match the empty text."""
        program = PatternProgram()
        parser = _Parser(pattern, program)
        whole = parser.alternatives(ignores_case=False)
        if parser.peek() or whole.empty:
            raise Unfit
        program.start = whole.emit(0)
        return program

    def add(self, instruction: PatternInstruction) -> int:
        """Append an instruction and return its index. Raises Unfit beyond the largest program."""
        if len(self.instructions) >= LARGEST:
            raise Unfit
        self.instructions.append(instruction)
        return len(self.instructions) - 1


class _Parser:
    def __init__(self, pattern: str, program: PatternProgram) -> None:
        self._tokens = tokens(pattern)
        self._at = 0
        self._program = program

    def peek(self) -> str:
        """The next token, empty at the end."""
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self, *expected: str) -> bool:
        """Skip these tokens if they follow."""
        following = tuple(token for token, _ in self._tokens[self._at : self._at + len(expected)])
        if following == expected:
            self._at += len(expected)
        return following == expected

    def alternatives(self, *, ignores_case: bool) -> PatternPart:
        """Alternatives up to a closing parenthesis or the end."""
        parts = [self._sequence(ignores_case=ignores_case)]
        while self._take("|"):
            parts.append(self._sequence(ignores_case=ignores_case))
        if len(parts) == 1:
            return parts[0]

        def emit(following: int) -> int:
            return self._program.add(PatternInstruction([part.emit(following) for part in parts]))

        return PatternPart(emit, any(part.empty for part in parts))

    def _sequence(self, *, ignores_case: bool) -> PatternPart:
        parts: list[PatternPart] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._term(ignores_case=ignores_case)))

        def emit(following: int) -> int:
            for part in reversed(parts):
                following = part.emit(following)
            return following

        return PatternPart(emit, all(part.empty for part in parts))

    def _term(self, *, ignores_case: bool) -> PatternPart:
        if self._take("("):
            return self._group(ignores_case=ignores_case)
        return self._character(ignores_case=ignores_case, asserts=None)

    def _group(self, *, ignores_case: bool) -> PatternPart:
        if self._take("?", "!") or self._take("?", "="):
            asserts = self._tokens[self._at - 1][0] == "="
            part = self._character(ignores_case=ignores_case, asserts=asserts)
        elif self._take("?", "i", ":"):
            part = self.alternatives(ignores_case=True)
        elif self._take("?", ":") or self.peek() not in ("?", "*"):
            part = self.alternatives(ignores_case=ignores_case)
        else:
            raise Unfit
        if not self._take(")"):
            raise Unfit
        return part

    def _character(self, *, ignores_case: bool, asserts: bool | None) -> PatternPart:
        atom = Atom(self._set(), ignores_case)

        def emit(following: int) -> int:
            return self._program.add(PatternInstruction([following], atom, asserts))

        return PatternPart(emit, asserts is not None)

    def _set(self) -> str:
        token, _ = self._tokens[self._at] if self._at < len(self._tokens) else ("", False)
        self._at += 1
        if token.startswith("[") and not token.startswith("[:"):
            parts = [token]
            while self._at < len(self._tokens) and self._tokens[self._at][1]:
                parts.append(self._tokens[self._at][0])
                self._at += 1
                if parts[-1] == "]":
                    return "".join(parts)
            raise Unfit
        if token in ("", "^", "$", "*", "+", "?", "{", ")", "|") or not _SINGLE.fullmatch(token):
            raise Unfit
        return token

    def _repeated(self, part: PatternPart) -> PatternPart:
        least, most = self._counts()
        if (least, most) == (1, 1):
            return part
        if part.empty or self.peek() in ("+", "?", "*"):  # possessive or lazy repetitions
            raise Unfit

        def emit(following: int) -> int:
            if most is None:
                loop = self._program.add(PatternInstruction([]))
                body = part.emit(loop)
                self._program.instructions[loop] = PatternInstruction([body, following])
                following = loop if least == 0 else body
            else:
                for _ in range(most - least):
                    following = self._program.add(PatternInstruction([part.emit(following), following]))
            for _ in range(least - (1 if most is None and least else 0)):
                following = part.emit(following)
            return following

        return PatternPart(emit, least == 0)

    def _counts(self) -> tuple[int, int | None]:
        for token, counts in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if self._take(token):
                return counts
        if self.peek() != "{":
            return 1, 1
        text = "".join(token for token, _ in self._tokens[self._at + 1 :])
        match = _COUNTS.match(text)
        if match is None or text[match.end() : match.end() + 1] != "}":
            raise Unfit
        self._at += match.end() + 2
        least = int(match[1])
        most = least if not match[2] else int(match[3]) if match[3] else None
        if most is not None and (most < least or most == 0):
            raise Unfit
        return least, most
