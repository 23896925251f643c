"""Further uses of a file: the commands of irrun, saving the model, and correcting its ports."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import irload
from irrun.main import FINDINGS, OK, UNREADABLE, UNSUPPORTED, USAGE, main
from tests.fuzz.confine import LIMITS, writing
from tests.harness.case import Array

CODES = (OK, FINDINGS, USAGE, UNREADABLE, UNSUPPORTED)
COMMANDS = (
    ("check", "--notes"),
    ("check", "--format", "sarif"),
    ("infer",),
    ("infer", "--json"),
    ("inspect", "--all"),
    ("inspect", "--json"),
    ("run", "--random", "1", "--threads", "1", "--explain"),
    ("run", "--random", "1", "--threads", "1", "--profile", "--json"),
)
BOUNDS = [f"--limit={n.replace('_', '-')}={getattr(LIMITS, n)}" for n in ("tensor_bytes", "peak_bytes", "iterations")]


def command(file: Path, words: Sequence[str]) -> str | None:
    """Why the exit code of a command of irrun is wrong, or None. Its output is discarded."""
    os.environ["IRRUN_TRACEBACK"] = "1"
    code = main([words[0], str(file), *words[1:], *BOUNDS])
    return None if code in CODES else f"irrun {' '.join(words)} exits {code}"


def saved_again(file: Path, inputs: Sequence[Array], plain: Sequence[Array]) -> str | None:
    """Why the model differs after saving and reading it again, or None if its results are bit-identical."""
    folder = file.parent / "saved"
    folder.mkdir()
    try:
        with writing():
            irload.save_model(irload.read_model(file, limits=LIMITS), folder / "model.xml")
        again = irload.read_model(folder / "model.xml", limits=LIMITS)
        results = list(irload.compile_model(again, 1, optimize=False)(list(inputs)).values())
        for k, (a, b) in enumerate(zip(plain, results, strict=True)):
            if not same(a, b):
                return f"saved and read again, output {k} is not the same"
        wrong = [f for f in irload.check(folder / "model.xml", limits=LIMITS).findings if f.code in DECLARED]
        return f"saved, its ports are wrong: {wrong[0].code} {wrong[0].layer} {wrong[0].message}" if wrong else None
    except irload.Unsupported:  # an unknown operation with bodies, which saving would lose
        return None
    except irload.IRError as error:
        return f"saved and read again: {error}"
    finally:
        shutil.rmtree(folder)


DECLARED = ("IR401", "IR402", "IR403", "IR404")


def same(a: Array, b: Array) -> bool:
    """Whether two results are bit-identical."""
    if a.dtype == object or b.dtype == object:
        return bool(np.array_equal(a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
