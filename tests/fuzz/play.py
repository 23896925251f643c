"""What a mutant goes through: read, check, infer, compile and run, and what is asked of it on the way."""

from __future__ import annotations

import json
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import irload
from irload.read import read_graph
from tests.fuzz.confine import LIMITS
from tests.fuzz.feed import inputs_for
from tests.fuzz.make import HARMLESS, LIE, Made
from tests.fuzz.mutant import generator
from tests.harness.case import Array
from tests.harness.verify import same_up_to_rounding

ERROR, RAN, TOO_LARGE = "typed error", "ran", "accepted, inputs too large to feed"
UNTYPED, ACCEPTED, CHANGED, FLAGGED = "untyped exception", "lie accepted", "result changed", "harmless rewrite reported"
PLAN, MISLEADING = "plan differs from compute", "not as inferred"
REPORTED, PRESERVED, SKIPPED = "lie reported", "result preserved", "base does not settle"
FAILURES = (
    UNTYPED,
    ACCEPTED,
    CHANGED,
    FLAGGED,
    PLAN,
    MISLEADING,
    "crash",
    "hang",
    "file left behind",
    "broken harness",
)
"""Outcomes that must not be."""

Stage = Callable[[str], None]
Verdict = dict[str, Any]


class Fault(Exception):
    """An outcome that is a failure: `str` is what, `words` why."""

    def __init__(self, outcome: str, words: str) -> None:
        super().__init__(outcome)
        self.words = words


def play(made: Made, file: Path, seed: int, stage: Stage) -> Verdict:
    """Take a mutant that lies in `file` through everything. `stage` hears what comes next."""
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            verdict = _play(made, file, seed, stage)
        return verdict | ({"warned": str(heard[0].message)[:100]} if heard else {})
    except Fault as fault:
        return {"outcome": str(fault), "words": fault.words}
    except Exception as error:
        frames = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)]
        trace = traceback.format_exc()[-3000:]
        return {
            "outcome": UNTYPED,
            "words": f"{type(error).__name__}: {str(error)[:200]}",
            "place": frames[-1],
            "trace": trace,
        }


def _play(made: Made, file: Path, seed: int, stage: Stage) -> Verdict:
    stage("check")
    report = irload.check(file, limits=LIMITS)
    json.dumps(report.to_dict())
    errors = Counter(f.code for f in report.findings if f.severity != "note")
    if made.family == LIE and not errors:
        raise Fault(ACCEPTED, "; ".join(made.done))
    if made.family == HARMLESS and errors:
        told = next(f for f in report.findings if f.severity != "note")
        raise Fault(FLAGGED, f"{'; '.join(made.done)}: {told.code} {told.layer} {told.message}")
    verdict: Verdict = {"codes": sorted(errors)}
    if made.family == LIE:
        verdict |= {"outcome": REPORTED}
    try:
        results = run(file, made.inputs, generator(seed, 0), stage)
    except irload.IRError as error:
        if made.family == HARMLESS:
            raise Fault(CHANGED, f"{'; '.join(made.done)}: {error}") from None
        return {"outcome": ERROR, "error": type(error).__name__, "words": str(error)[:200]} | verdict
    if made.family == HARMLESS:
        stage("compare")
        return verdict | {"outcome": PRESERVED if _as_base(made, seed, results, stage) else SKIPPED}
    return {"outcome": TOO_LARGE if results is None else RAN} | verdict


def run(file: Path, good: Sequence[Array], rng: np.random.Generator, stage: Stage) -> list[list[Array]] | None:
    """The results by `compute` and by the plan, after comparing them; None where the inputs would be too large."""
    stage("read")
    read_graph(file)
    stage("infer")
    model = irload.read_model(file, limits=LIMITS)
    stage("compile")
    compiled = [
        irload.compile_model(model, threads=1, optimize=False),
        irload.compile_model(model, threads=2 if rng.random() < 0.15 else 1),
    ]
    given = inputs_for(model, good, rng)
    if given is None:
        return None
    stage("run")
    plain = _settled(compiled[0], given)
    stage("run the plan")
    planned = _settled(compiled[1], given)
    if isinstance(plain, irload.IRError):
        if not isinstance(planned, irload.IRError) and not isinstance(plain, irload.LimitExceeded):
            raise Fault(PLAN, f"compute: {plain}; the plan: runs")
        raise plain
    if isinstance(planned, irload.IRError):
        raise Fault(PLAN, f"compute: runs; the plan: {planned}")
    finite = all(np.isfinite(a).all() for a in given if a.dtype.kind == "f")
    for port, a, b in zip(model.outputs, plain, planned, strict=True):
        if a.dtype != port.element_type.dtype and port.element_type is not irload.elements.dynamic:
            raise Fault(MISLEADING, f"'{port.any_name}': computed {a.dtype}, inferred {port.element_type}")
        if not port.partial_shape.contains(irload.Shape(*a.shape)):
            raise Fault(MISLEADING, f"'{port.any_name}': computed {a.shape}, inferred {port.partial_shape}")
        # Fast kernels add and multiply in another order, and infinity spreads on the way.
        if finite and not same_up_to_rounding(a, b, 1e-4):
            raise Fault(PLAN, f"'{port.any_name}': compute {_brief(a)}, the plan {_brief(b)}")
    return [plain, planned]


def _settled(compiled: irload.CompiledModel, given: list[Array]) -> list[Array] | irload.IRError:
    try:
        return list(compiled(given).values())
    except irload.IRError as error:
        return error


def _as_base(made: Made, seed: int, results: list[list[Array]] | None, stage: Stage) -> bool:
    """Compare with the base, bit by bit. False where the base gives not the same twice (random numbers)."""
    model = irload.read_model(made.base.xml, made.base.blob, limits=LIMITS)
    given = inputs_for(model, made.inputs, generator(seed, 0))
    if given is None or results is None:
        return False
    for optimize, found in zip((False, True), results, strict=True):
        one, two = (list(irload.compile_model(model, 1, optimize=optimize)(given).values()) for _ in range(2))
        if any(not _same(a, b) for a, b in zip(one, two, strict=True)):
            return False
        for k, (a, b) in enumerate(zip(one, found, strict=True)):
            if not _same(a, b):
                raise Fault(CHANGED, f"{'; '.join(made.done)}: output {k}: {_brief(a)}, now {_brief(b)}")
    return True


def _same(a: Array, b: Array) -> bool:
    if a.dtype == object or b.dtype == object:
        return bool(np.array_equal(a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _brief(a: Array) -> str:
    return f"{a.dtype}{list(a.shape)} {np.array2string(a.ravel()[:6], precision=7)}"
