"""The report of a campaign: the number of mutants, their outcomes, the largest and the slowest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.play import FAILURES

SHOWN = 3
"""Failures of one kind that are shown in full."""


@dataclass
class Tally:
    """Counts outcomes."""

    seed: int
    count: int = 0
    wall: float = 0.0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    errors: Counter[str] = field(default_factory=Counter[str])
    also: Counter[str] = field(default_factory=Counter[str])
    warned: Counter[str] = field(default_factory=Counter[str])
    failures: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    seconds: list[float] = field(default_factory=list[float])
    peak: tuple[int, int] = (0, -1)

    def add(self, verdict: dict[str, Any]) -> None:
        """Count one outcome."""
        self.count += 1
        self.outcomes[verdict.get("family", "?"), verdict["outcome"]] += 1
        if "error" in verdict:
            self.errors[verdict["error"]] += 1
        self.also.update(verdict.get("also", ()))
        if "warned" in verdict:
            self.warned[verdict["warned"]] += 1
        if verdict["outcome"] in FAILURES:
            self.failures.append(verdict)
        self.seconds.append(verdict["seconds"])
        self.peak = max(self.peak, (verdict["peak"], verdict["index"]))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data. Times in seconds of the processor, memory in bytes."""
        ordered = sorted(self.seconds) or [0.0]
        total = {name: sum(n for (_, o), n in self.outcomes.items() if o == name) for name in FAILURES}
        return {
            "mutants": self.count,
            "seed": self.seed,
            "failures": total,
            "outcomes": [{"family": f, "outcome": o, "count": n} for (f, o), n in sorted(self.outcomes.items())],
            "errors": dict(self.errors.most_common()),
            "also": dict(self.also.most_common()),
            "warnings": dict(self.warned.most_common(20)),
            "lies": self._family("lie"),
            "harmless": self._family("harmless"),
            "peak_bytes": self.peak[0],
            "peak_mutant": self.peak[1],
            "median_seconds": round(ordered[len(ordered) // 2], 4),
            "p99_seconds": round(ordered[int(len(ordered) * 0.99)], 4),
            "slowest_seconds": round(ordered[-1], 4),
            "wall_seconds": round(self.wall, 1),
            "failed": self.failures,
        }

    def _family(self, family: str) -> int:
        return sum(n for (f, _), n in self.outcomes.items() if f == family)

    def text(self, folder: Path) -> str:
        """The report as text."""
        data = self.to_dict()
        lines = [f"{self.count} mutants, seed {self.seed}, {data['wall_seconds']} s"]
        lines += [f"{n:8}  {family}: {outcome}" for (family, outcome), n in sorted(self.outcomes.items())]
        lines += ["", *(f"{n:8}  {name}" for name, n in self.errors.most_common())]
        lines += ["", *(f"{n:8}  also {words}" for words, n in self.also.most_common())]
        lines += ["", *(f"{n:8}  warning: {words}" for words, n in self.warned.most_common(10))]
        lines.append(f"\nlargest {self.peak[0] / 2**20:.0f} MB (mutant {self.peak[1]}), per mutant: ")
        lines[-1] += f"median {data['median_seconds']:.3f} s, p99 {data['p99_seconds']:.3f} s, "
        lines[-1] += f"slowest {data['slowest_seconds']:.2f} s of the processor"
        lines.append(", ".join(f"{name}: {n}" for name, n in data["failures"].items()))
        lines += self._failed(folder)
        return "\n".join(lines)

    def _failed(self, folder: Path) -> list[str]:
        kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for failure in self.failures:
            words = failure.get("place") or failure.get("words", "")[:60]
            kinds.setdefault((failure["outcome"], words), []).append(failure)
        lines: list[str] = []
        for (outcome, place), failures in sorted(kinds.items(), key=lambda item: -len(item[1])):
            lines.append(f"\n{outcome} ({len(failures)}): {place}")
            for one in failures[:SHOWN]:
                done = "; ".join(one.get("done", ()))
                lines.append(f"  {self.seed}_{one['index']} {one.get('base')} [{one.get('stage')}] {done}")
                lines.append(f"    {one.get('words', '')[:400]}")
        return [*lines, f"\nfiles: {folder}"] if lines else lines
