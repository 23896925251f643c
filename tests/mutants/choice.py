"""The choice of tests for a mutant, from the tests that reach each line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

Lines = dict[str, dict[int, set[str]]]


@dataclass
class Reach:
    """The result of a run of all tests."""

    seconds: dict[str, float]
    """Processor seconds of every test that passed."""
    tests: Lines
    """Ids of tests by file and line; the id "" is the import of modules and the collection of tests."""
    failed: list[str]
    """Tests that fail without any mutant while lines are counted, and are excluded."""

    def of(self, file: str, lines: range, function: range, budget: float) -> list[str]:
        """The tests that reach one of the lines, up to `budget` seconds.

        Half of the budget is for tests that also reach a rare line of the function, which at most a tenth of the tests
        reach. For example, every test of `check` runs all rules, but each rule reports a finding in few tests.
        """
        return self._rarest(file, function, self._at(file, lines), budget)

    def around(self, file: str, budget: float) -> list[str]:
        """The tests for code that runs at import: half of the budget for tests that reach the file, then any others."""
        lines = self.tests.get(file, ())
        first = self._rarest(file, lines, self._at(file, lines), budget / 2)
        used = sum(self.seconds[t] for t in first)
        return [*first, *self._promising(self.seconds.keys() - set(first), budget - used)]

    def _rarest(self, file: str, lines: Iterable[int], tests: set[str], budget: float) -> list[str]:
        """The tests within the budget, first tests that reach one of the lines that at most a tenth of them reach."""
        by_line = [self._at(file, [n]) & tests for n in lines]
        rare = set[str]().union(*(reaching for reaching in by_line if 10 * len(reaching) <= len(tests)))
        first = self._promising(rare, budget / 2)
        used = sum(self.seconds[t] for t in first)
        return [*first, *self._promising(tests - set(first), budget - used)]

    def _at(self, file: str, lines: Iterable[int]) -> set[str]:
        reached = self.tests.get(file, {})
        return set().union(*(reached.get(n, set()) for n in lines)) & self.seconds.keys()

    def _promising(self, tests: set[str], budget: float) -> list[str]:
        """The tests within the budget, in an order that prefers fast tests, and first cases of parametrized tests."""
        cases: dict[str, int] = defaultdict(int)
        order: dict[str, float] = {}
        for test in sorted(tests, key=lambda t: (self.seconds[t], t)):
            name = test.split("[")[0]
            cases[name] += 1
            order[test] = self.seconds[test] * cases[name]
        ordered = sorted(tests, key=lambda t: (order[t], t))
        ends = accumulate(self.seconds[t] for t in ordered)
        return [test for test, end in zip(ordered, ends, strict=True) if end <= budget]

    def at_import(self, file: str, lines: range) -> bool:
        """Whether one of the lines runs before the first test."""
        return any("" in self.tests.get(file, {}).get(line, ()) for line in lines)
