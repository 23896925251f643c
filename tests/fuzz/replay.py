"""Runs files that once failed: `python -m tests.fuzz.replay FILE.xml…`. Prints a line of JSON for each.

An XML may be accompanied by its .bin, and an .npz of its inputs. A file named lie_… is one that `check` has to report.
`--open` runs them in this process without limits, for a debugger.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.bases import Base
from tests.fuzz.confine import Confinement, confine
from tests.fuzz.make import LIE, SPOILT, MutantFiles
from tests.fuzz.play import FAILURES, play
from tests.harness.children import preload


def loaded(file: Path) -> MutantFiles:
    """The files as a mutant."""
    blob, inputs = file.with_suffix(".bin"), file.with_suffix(".npz")
    arrays = list(np.load(inputs).values()) if inputs.exists() else []
    family = LIE if file.name.startswith("lie_") else SPOILT
    data = blob.read_bytes() if blob.exists() else None
    return MutantFiles(Base(file.stem, b"", b""), family, file.read_bytes(), data, arrays, [])


def replay(files: Sequence[Path], folder: Path) -> list[dict[str, Any]]:
    """The outcome of each file, each in a separate process."""
    preload()
    confinement = Confinement(folder)
    outcomes: list[dict[str, Any]] = []
    for file in files:

        def task(inside: Path, stage: Callable[[str], None], file: Path = file) -> dict[str, Any]:
            mutant = loaded(file)
            written = mutant.write(inside)
            confine()
            return play(mutant, written, stage)

        outcomes.append({"file": str(file)} | confinement.run(task))
    return outcomes


def main(arguments: Sequence[str]) -> int:
    """Run the files. Returns 1 if anything failed, else 0."""
    files = [Path(a).resolve() for a in arguments if not a.startswith("--")]
    folder = Path(tempfile.mkdtemp(prefix="irload-fuzz-"))
    try:
        if "--open" in arguments:
            mutant = loaded(files[0])
            print(json.dumps(play(mutant, mutant.write(folder), print), indent=2))
            return 0
        outcomes = replay(files, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for one in outcomes:
        print(json.dumps(one), flush=True)
    return int(any(one["outcome"] in FAILURES for one in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
