"""One worker: imports irload once, then forks a process for each of its mutants. Writes a line of JSON for each.

python -m tests.fuzz.server SEED FIRST COUNT STEP FOLDER
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import irrun
from irload.checks import all_rules
from tests.fuzz.bases import models
from tests.fuzz.confine import Confinement, confine
from tests.fuzz.make import MutantFiles, make
from tests.fuzz.play import FAILURES, play
from tests.harness.children import preload
from tests.ops.families import load_families


def serve(seed: int, indices: range, folder: Path) -> None:
    """Run these mutants of a seed. The files of failures are saved next to `folder`."""
    prepare()
    confinement = Confinement(folder)
    for index in indices:

        def task(inside: Path, stage: Callable[[str], None], index: int = index) -> dict[str, Any]:
            mutant = make(seed, index)
            file = mutant.write(inside)
            stage("made")
            confine()
            return about(mutant) | play(mutant, file, stage)

        outcome = confinement.run(task)
        if outcome["outcome"] in FAILURES:
            outcome = confinement.run(lambda _, stage, k=index: _keep(make(seed, k), folder.parent, seed, k)) | outcome
        print(json.dumps({"index": index} | outcome), flush=True)


def prepare() -> None:
    """Import and prepare everything that mutants share, before forking."""
    all_rules()
    for module in pkgutil.iter_modules(irrun.__path__, "irrun."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    load_families()
    preload()
    models()


def _keep(mutant: MutantFiles, folder: Path, seed: int, index: int) -> dict[str, Any]:
    """Write the files of a mutant that failed, and the inputs it was run with."""
    target = folder / f"{seed}_{index}.xml"
    target.write_bytes(mutant.xml)
    if mutant.blob is not None:
        target.with_suffix(".bin").write_bytes(mutant.blob)
    np.savez(target.with_suffix(".npz"), *[a for a in mutant.inputs if a.dtype != object])
    return {"outcome": "kept"} | about(mutant)


def about(mutant: MutantFiles) -> dict[str, Any]:
    """The description of a mutant: index, base, family, changes."""
    return {"base": mutant.base.name, "family": mutant.family, "done": list(mutant.done)}


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:5]]
    serve(numbers[0], range(numbers[1], numbers[2], numbers[3]), Path(sys.argv[5]))
