"""The list of mutants that no test can notice, `equivalent.toml`: each with the reason."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.mutants.mutant import Mutant

LIST = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """An entry: in the files that `file` matches, the changed line is `code` and becomes `mutant`.

    Without `mutant` it speaks of all survivors among the mutants of the line: of another size of a block, say, but not
    of the size 0, which fails. Instead of `code`, `change` names a part of any line and, after it, what it may become.
    """

    file: str
    reason: str
    code: str | None = None
    mutant: str | None = None
    change: tuple[str, ...] | None = None

    @property
    def exact(self) -> bool:
        """True for an entry of one mutant, which no test may notice."""
        return self.mutant is not None

    def covers(self, mutant: Mutant) -> bool:
        """True for a mutant that the entry speaks of."""
        if not fnmatch(mutant.file, self.file):
            return False
        old, new = map(_bare, mutant.changed)
        if self.change is not None:
            part, *others = map(_bare, self.change)
            return any(new in _replacements(old, part, other) for other in others)
        return old == _bare(self.code or "") and (self.mutant is None or new == _bare(self.mutant))


def _bare(line: str) -> str:
    """Without blanks, of which tools leave more or less."""
    return "".join(line.split())


def _replacements(line: str, old: str, new: str) -> Iterator[str]:
    """The line with `old` replaced at one place or another."""
    at = line.find(old)
    while at >= 0:
        yield line[:at] + new + line[at + len(old) :]
        at = line.find(old, at + 1)


def equivalents(file: Path = LIST) -> list[Equivalent]:
    """All entries."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["equivalent"]
    return [Equivalent(**{k: tuple(v) if k == "change" else v for k, v in e.items()}) for e in entries]
