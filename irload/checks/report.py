"""What a check says: findings, and the report that holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: what (`code`, `severity`, `message`), where (`file`, `line`, layer, port), and why (`cause`).

    `code` is stable over releases. `cause` names the producer or attribute that made the inferred value; empty where
    the message suffices. `body` is the path of layers and bodies that leads to the layer (`loop/body`), as layer ids
    are unique in their own graph only; empty in the outer graph.
    """

    code: str
    severity: Severity
    message: str
    cause: str = ""
    file: str | None = None
    line: int | None = None
    layer_id: int | None = None
    layer_name: str | None = None
    layer_type: str | None = None
    port: str | None = None
    body: str = ""

    @property
    def layer(self) -> str:
        """The layer as people name it: `Convolution 'conv1' (id 12)`; empty for findings about the file."""
        if self.layer_id is None:
            return ""
        inside = f" in {self.body}" if self.body else ""
        return f"{self.layer_type} '{self.layer_name}' (id {self.layer_id}){inside}"


@dataclass(frozen=True, slots=True)
class Suppression:
    """What suppresses findings: `source` names it (`ignore IR705 of .irload.toml`), `reason` is what a project says."""

    source: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that is not reported, and what suppresses it."""

    finding: Finding
    by: Suppression


@dataclass(slots=True)
class Report:
    """All findings of one file, in the order of its lines."""

    file: str
    findings: list[Finding] = field(default_factory=list[Finding])
    layers: int = 0
    seconds: float = 0.0
    readable: bool = True
    """False when the file is no IR that can be read; then nothing else was checked."""
    strict: bool = False
    """True when the project's configuration sets `strict`: see `ok`."""
    suppressed: list[Suppressed] = field(default_factory=list[Suppressed])
    """What options and configuration ignore, in the order of lines. Counts for nothing else."""

    def count(self, severity: Severity) -> int:
        """How many findings of that severity there are."""
        return Counter(f.severity for f in self.findings)[severity]

    @property
    def errors(self) -> int:
        """The number of errors."""
        return self.count("error")

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return self.count("warning")

    @property
    def notes(self) -> int:
        """The number of notes."""
        return self.count("note")

    def ok(self, *, strict: bool = False) -> bool:
        """True when there is no error; with `strict`, no warning either."""
        return not self.errors and not (strict and self.warnings)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, as schemas/check-report.schema.json describes it."""
        return {
            "file": self.file,
            "readable": self.readable,
            "layers": self.layers,
            "seconds": round(self.seconds, 4),
            "errors": self.errors,
            "warnings": self.warnings,
            "notes": self.notes,
            "findings": [asdict(f) for f in self.findings],
            "suppressed": [{**asdict(s.finding), "suppressed_by": asdict(s.by)} for s in self.suppressed],
        }


def reports_to_dict(reports: Sequence[Report], version: str, unused: Sequence[Suppression] = ()) -> dict[str, Any]:
    """Several reports as the one document that `irrun check --format json` prints."""
    return {
        "tool": "irload",
        "version": version,
        "errors": sum(r.errors for r in reports),
        "warnings": sum(r.warnings for r in reports),
        "notes": sum(r.notes for r in reports),
        "suppressed": sum(len(r.suppressed) for r in reports),
        "unused_suppressions": [asdict(s) for s in unused],
        "files": [r.to_dict() for r in reports],
    }
