"""Plays programs from files again: `python -m tests.fuzz.programs.replay FILE.xml…`. Exits 1 when one fails.

Each runs as its name says, and with thresholds the other way, so that it goes on to test something when kernels are
chosen otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.programs.play import Wrong, play


def replayed(file: Path) -> list[str]:
    """What is wrong with a program, in the way that its name says and with thresholds the other way."""
    xml, blob = file.read_bytes(), file.with_suffix(".bin").read_bytes()
    lowered = (
        xml.replace(b"-lowered", b"", 1) if b"-lowered" in xml else xml.replace(b'"program', b'"program-lowered', 1)
    )
    found: list[str] = []
    for way in (xml, lowered):
        try:
            play(way, blob)
        except Wrong as wrong:
            found.append(f"{wrong.kind}: {wrong}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Play the files; 1 when anything failed."""
    wrong = 0
    for argument in arguments:
        found = replayed(Path(argument))
        wrong += bool(found)
        print(f"{argument}: {'; '.join(found) or 'ok'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
