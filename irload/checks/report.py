"""The result of a check: findings, and the report that contains them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: identity (`code`, `severity`, `message`), location (`file`, `line`, layer, port) and `cause`.

    `code` is stable over releases. `cause` names the producer or attribute that determines the inferred value; it is
    empty if the message suffices. `body` is the path of layers and bodies to the layer's graph (`loop/body`), because
    layer ids are unique only within one graph; it is empty in the outer graph.
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
        """The layer as messages print it: `Convolution 'conv1' (id 12)`; empty for findings about the file."""
        if self.layer_id is None:
            return ""
        inside = f" in {self.body}" if self.body else ""
        return f"{self.layer_type} '{self.layer_name}' (id {self.layer_id}){inside}"


@dataclass(frozen=True, slots=True)
class Suppression:
    """A suppression: `source` names the entry (`ignore IR705 of .irload.toml`), `reason` is the text given there."""

    source: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A suppressed finding and its suppression."""

    finding: Finding
    by: Suppression


@dataclass(slots=True)
class Report:
    """All findings of one file, in line order."""

    file: str
    findings: list[Finding] = field(default_factory=list[Finding])
    layers: int = 0
    seconds: float = 0.0
    readable: bool = True
    """False if the file cannot be read as an IR; no other rule was checked in that case."""
    strict: bool = False
    """True if the project's configuration sets `strict`. `ok` does not read it; pass it as an argument."""
    suppressed: list[Suppressed] = field(default_factory=list[Suppressed])
    """Findings suppressed by options or configuration, in line order. Not included in any count."""

    def count(self, severity: Severity) -> int:
        """The number of findings of this severity."""
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
        """True if there are no errors and, with `strict`, no warnings."""
        return not self.errors and not (strict and self.warnings)

    def to_dict(self) -> dict[str, Any]:
        """The report as a dict in the format of an element of `files` in schemas/check-report.schema.json."""
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
    """The document that `irrun check --format json` prints for several reports."""
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
