"""The findings of all rows as text: `python -m tests.checks.findings` writes findings.txt, which a test compares."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import irload
from irload.checks import Finding
from tests.checks.bases import BASES, net
from tests.checks.file_rows import FILE_ROWS
from tests.checks.graph_rows import GRAPH_ROWS
from tests.checks.table import Changes, Row, Weights

FILE = Path(__file__).with_name("findings.txt")


def numbered(rows: list[Row]) -> dict[str, Row]:
    """The rows by rule and number: `IR401-0`."""
    seen: Counter[str] = Counter()
    numbers: dict[str, Row] = {}
    for row in rows:
        numbers[f"{row.code}-{seen[row.code]}"] = row
        seen[row.code] += 1
    return numbers


ROWS = numbered([*GRAPH_ROWS, *FILE_ROWS])


def findings(
    folder: Path, base: str, changes: Changes, weights: Weights, options: dict[str, Any] | None
) -> list[Finding]:
    text, blob = net(BASES[base].edited(*changes))
    file = folder / "model.xml"
    file.write_text(text, encoding="utf-8")
    changed = weights(blob)
    file.with_suffix(".bin").unlink(missing_ok=True)
    if changed is not None:
        file.with_suffix(".bin").write_bytes(changed)
    return irload.check(file, **(options or {})).findings


def shown(finding: Finding) -> str:
    """The severity, the location, the message and the cause of a finding."""
    location = ", ".join(
        filter(None, (finding.severity, finding.line and f"line {finding.line}", finding.port, finding.layer))
    )
    message = finding.message if len(finding.message) < 400 else f"{finding.message[:400]}…"
    return "\n".join([f"  {location}", f"  {message}", *([f"  because {finding.cause}"] if finding.cause else [])])


def page() -> str:
    """The text of the file."""
    parts: list[str] = []
    with TemporaryDirectory() as folder:
        for name, row in ROWS.items():
            hits = findings(Path(folder), row.base, row.bad, row.weights, row.options)
            parts.append("\n".join([f"{name} on {row.base}", *map(shown, hits)]))
    return "\n\n".join(parts) + "\n"


@cache
def recorded() -> dict[str, str]:
    """The findings of each row in the file."""
    parts = (part.partition("\n") for part in FILE.read_text("utf-8").strip().split("\n\n"))
    return {head.split()[0]: text for head, _, text in parts}


if __name__ == "__main__":
    sys.exit(FILE.write_text(page(), encoding="utf-8", newline="\n") and 0)
