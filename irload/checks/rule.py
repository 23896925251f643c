"""Rules and the decorators that register them: one rule, one code, one small function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from irload.checks.report import Finding, Severity
from irload.checks.subject import Scope, Subject
from irload.errors import Where
from irload.graph import Node
from irload.read.raw import RawLayer

HitLocation = RawLayer | Node | Where | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A violation of a rule; the registry adds code, severity and file. `covers`: lines of other layers involved."""

    location: HitLocation
    message: str
    cause: str = ""
    line: int | None = None
    port: str | None = None
    severity: Severity | None = None
    covers: Sequence[int | None] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """`code`, the default `severity`, a `title` in a few words, and the function's docstring as explanation."""

    code: str
    severity: Severity
    title: str
    explanation: str
    run: Callable[[Subject], Iterator[Hit]]
    last: bool = False

    @property
    def example(self) -> str:
        """The last paragraph of the explanation: an example of a file that breaks the rule."""
        return " ".join(self.explanation.rpartition("Example: ")[2].split())

    @property
    def text(self) -> str:
        """The explanation without its example."""
        return self.explanation.rpartition("Example: ")[0].strip()

    @property
    def category(self) -> str:
        """The group given by the code's first digit."""
        return CATEGORIES[self.code[2]]

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """The findings of this rule on one file."""
        for hit in self.run(subject):
            where = _where(hit.location)
            line = where.line if hit.line is None else hit.line
            severity = hit.severity or self.severity
            if severity == "error":
                subject.explained.update(n for n in (line, where.line, *hit.covers) if n is not None)
            yield Finding(
                self.code,
                severity,
                hit.message,
                hit.cause,
                subject.file,
                line,
                where.layer_id if isinstance(where.layer_id, int) else None,
                where.layer_name,
                where.layer_type,
                hit.port,
                subject.paths.get(where.line, "") if where.line is not None else "",
            )


CATEGORIES = {
    "0": "file and XML",
    "1": "identity",
    "2": "edges",
    "3": "operations",
    "4": "types and shapes",
    "5": "bodies and state",
    "6": "weights",
    "7": "hygiene",
    "8": "portability",
    "9": "limits",
}

table: dict[str, Rule] = {}
"""The rules by code."""


def file_rule(
    code: str, severity: Severity, title: str, *, last: bool = False
) -> Callable[[Callable[[Subject], Iterable[Hit]]], Callable[[Subject], Iterable[Hit]]]:
    """Register a function that checks a whole file. `last`: run it after all other rules, which explain faults."""

    def register(function: Callable[[Subject], Iterable[Hit]]) -> Callable[[Subject], Iterable[Hit]]:
        explanation = inspect.getdoc(function) or ""
        _enter(Rule(code, severity, title, explanation, lambda s: iter(function(s)), last))
        return function

    return register


def graph_rule(
    code: str, severity: Severity, title: str
) -> Callable[[Callable[[Scope], Iterable[Hit]]], Callable[[Scope], Iterable[Hit]]]:
    """Register a function that checks one graph: it runs on the outer graph and on every body."""

    def register(function: Callable[[Scope], Iterable[Hit]]) -> Callable[[Scope], Iterable[Hit]]:
        def everywhere(subject: Subject) -> Iterator[Hit]:
            for scope in subject.scopes:
                yield from function(scope)

        _enter(Rule(code, severity, title, inspect.getdoc(function) or "", everywhere))
        return function

    return register


def _where(location: HitLocation) -> Where:
    if location is None or isinstance(location, Where):
        return location or Where()
    return Where(None, location.line, location.id, location.name, location.type)


def _enter(rule: Rule) -> None:
    if rule.code in table:
        raise TypeError(f"two rules have the code {rule.code}")
    table[rule.code] = rule
