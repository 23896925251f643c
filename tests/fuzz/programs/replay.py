"""Runs saved programs again: `python -m tests.fuzz.programs.replay FILE.xml…`. Exits 1 if one fails.

Each runs in the configuration that its name encodes, and with the opposite thresholds, so that it remains useful after
changes to kernel selection.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.programs.play import Wrong, play


def replayed(file: Path) -> list[str]:
    """The faults of a program, in the configuration that its name encodes and with the opposite thresholds."""
    xml, blob = file.read_bytes(), file.with_suffix(".bin").read_bytes()
    lowered = (
        xml.replace(b"-lowered", b"", 1) if b"-lowered" in xml else xml.replace(b'"program', b'"program-lowered', 1)
    )
    outcomes: list[str] = []
    for way in (xml, lowered):
        try:
            play(way, blob)
        except Wrong as wrong:
            outcomes.append(f"{wrong.kind}: {wrong}")
    return outcomes


def main(arguments: Sequence[str]) -> int:
    """Run the files. Returns 1 if anything failed, else 0."""
    wrong = 0
    for argument in arguments:
        outcomes = replayed(Path(argument))
        wrong += bool(outcomes)
        print(f"{argument}: {'; '.join(outcomes) or 'ok'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
