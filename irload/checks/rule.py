"""Rules and their registry: one rule, one code, one small function."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from irload.checks.report import Finding, Severity
from irload.checks.subject import Scope, Subject
from irload.graph import Node
from irload.read.raw import RawLayer

Place = RawLayer | Node | None


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found; the registry adds code, severity and place."""

    place: Place
    message: str
    because: str = ""
    line: int | None = None
    port: str | None = None
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """`code`, the default `severity`, a `title` in a few words, and the function's docstring as explanation."""

    code: str
    severity: Severity
    title: str
    explanation: str
    run: Callable[[Subject], Iterator[Hit]]

    @property
    def category(self) -> str:
        """The group that the code's first digit stands for."""
        return CATEGORIES[self.code[2]]

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """The findings of this rule on one file."""
        for hit in self.run(subject):
            place = hit.place
            yield Finding(
                self.code,
                hit.severity or self.severity,
                hit.message,
                hit.because,
                subject.file,
                hit.line if hit.line is not None else None if place is None else place.line,
                None if place is None else place.id,
                None if place is None else place.name,
                None if place is None else place.type,
                hit.port,
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

_rules: dict[str, Rule] = {}


def file_rule(
    code: str, severity: Severity, title: str
) -> Callable[[Callable[[Subject], Iterable[Hit]]], Callable[[Subject], Iterable[Hit]]]:
    """Register a function that looks at a whole file."""

    def register(function: Callable[[Subject], Iterable[Hit]]) -> Callable[[Subject], Iterable[Hit]]:
        _enter(Rule(code, severity, title, (function.__doc__ or "").strip(), lambda s: iter(function(s))))
        return function

    return register


def graph_rule(
    code: str, severity: Severity, title: str
) -> Callable[[Callable[[Scope], Iterable[Hit]]], Callable[[Scope], Iterable[Hit]]]:
    """Register a function that looks at one graph: it runs on the outer graph and on every body."""

    def register(function: Callable[[Scope], Iterable[Hit]]) -> Callable[[Scope], Iterable[Hit]]:
        def everywhere(subject: Subject) -> Iterator[Hit]:
            for scope in subject.scopes:
                yield from function(scope)

        _enter(Rule(code, severity, title, (function.__doc__ or "").strip(), everywhere))
        return function

    return register


def _enter(rule: Rule) -> None:
    if rule.code in _rules:
        raise TypeError(f"two rules have the code {rule.code}")
    _rules[rule.code] = rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    package = importlib.import_module("irload.checks.rules")
    for module in pkgutil.iter_modules(package.__path__, "irload.checks.rules."):
        importlib.import_module(module.name)
    return tuple(_rules[code] for code in sorted(_rules))
