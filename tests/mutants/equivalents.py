"""The list of mutants that no test can notice, `equivalent.toml`: each with the reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant

LIST = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """An entry: the changed lines are `code`, and become `mutant`, or whatever they like where that is missing."""

    file: str
    code: str
    reason: str
    mutant: str | None = None

    def covers(self, mutant: Mutant) -> bool:
        """True for a mutant that the entry speaks of."""
        old, new = mutant.changed
        return mutant.file == self.file and old == self.code and self.mutant in (None, " ".join(new.split()))


def equivalents(file: Path = LIST) -> list[Equivalent]:
    """All entries."""
    return [Equivalent(**entry) for entry in tomllib.loads(file.read_text(encoding="utf-8"))["equivalent"]]
