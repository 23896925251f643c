"""Random edits of whole models: `python -m tests.edit.sweep N SEED FOLDER… [--tool NAME]`.

Applies each tool N times to random models of the folders. An edited model must give the expected outputs by irload and
by OpenVINO, pass `check` without new findings, and load. Prints each fault, and the counts.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import irload
from tests.edit.applications import APPLICATIONS
from tests.edit.source import Source

REFUSALS = {"set_batch": (irload.ShapeMismatch, irload.InputInvalid)}
"""Tool → errors that it may raise for a model that it does not support."""


def main(words: list[str]) -> int:
    """Run the sweep. Returns 1 if there are faults."""
    count, seed = int(words[0]), int(words[1])
    tools = [words[k + 1] for k, word in enumerate(words) if word == "--tool"] or list(APPLICATIONS)
    folders = [w for w in words[2:] if w not in tools and w != "--tool"]
    files = sorted(f for folder in folders for f in Path(folder).glob("**/*model.xml"))
    done, faults, refused = Counter[str](), Counter[str](), Counter[str]()
    order = np.random.default_rng(seed).permutation(len(files))
    turns = max(1, -(-count // max(1, len(files))))
    for at in order:
        file = files[at]
        try:
            source = Source.of(file, seed)
        except irload.IRError as error:
            print(f"skipped {file}: {error}")
            continue
        for tool in tools:
            rng = np.random.default_rng([seed, at])
            for _ in range(turns + 1):
                if done[tool] >= count:
                    break
                try:
                    edited = APPLICATIONS[tool](source, rng)
                except REFUSALS.get(tool, ()) as error:
                    refused[tool] += 1
                    print(f"refused {tool} {file.parent.name}: {error}")
                    break
                except irload.IRError as error:
                    done[tool] += 1
                    faults[tool] += 1
                    print(f"{tool} {file.parent.name}: raised {type(error).__name__}: {error}", flush=True)
                    continue
                if edited is None:
                    continue
                done[tool] += 1
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        errors = source.faults(edited, Path(folder))
                    except irload.IRError as error:
                        errors = [f"raised {type(error).__name__}: {error}"]
                faults[tool] += bool(errors)
                for fault in errors[:4]:
                    print(f"{tool} {file.parent.name} {edited.text[:200]}: {fault}", flush=True)
    for tool in tools:
        print(f"{tool}: {done[tool]} applications, {faults[tool]} with faults, {refused[tool]} models refused")
    return 1 if sum(faults.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
