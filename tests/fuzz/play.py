"""The stages of a mutant: read, check, infer, compile and run, with assertions after each."""

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
from tests.fuzz.around import COMMANDS, command, same, saved_again
from tests.fuzz.confine import LIMITS
from tests.fuzz.feed import inputs_for
from tests.fuzz.make import HARMLESS, LIE, MutantFiles
from tests.harness.case import Array, Random
from tests.harness.material import pick
from tests.harness.verify import same_up_to_rounding

ERROR, RAN, TOO_LARGE = "typed error", "ran", "accepted, inputs too large to feed"
UNTYPED, ACCEPTED, CHANGED, FLAGGED = "untyped exception", "lie accepted", "result changed", "harmless rewrite reported"
PLAN, MISLEADING, SAVED = "plan differs from compute", "not as inferred", "not as saved"
EXIT = "bad exit code"
REPORTED, PRESERVED, SKIPPED = "lie reported", "result preserved", "base does not settle"
FAILURES = (
    *(UNTYPED, ACCEPTED, CHANGED, FLAGGED, PLAN, MISLEADING, SAVED, EXIT),
    *("crash", "hang", "file left behind", "broken harness"),
)
"""Outcomes that count as failures."""

AROUND = 0.15
"""Share of mutants that also run a command of irrun, and share of runnable mutants that are also saved."""
ODD_WEIGHTS = ("IR608", "IR609", "IR611")
Stage = Callable[[str], None]
Verdict = dict[str, Any]


class Fault(Exception):
    """An outcome that counts as a failure: `str` is its kind, `words` the reason."""

    def __init__(self, outcome: str, words: str) -> None:
        super().__init__(outcome)
        self.words = words


def play(mutant: MutantFiles, file: Path, stage: Stage) -> Verdict:
    """Run the mutant in `file` through all stages. `stage` receives the name of each stage before it starts."""
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            verdict = _play(mutant, file, stage)
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


def _play(mutant: MutantFiles, file: Path, stage: Stage) -> Verdict:
    stage("check")
    report = irload.check(file, limits=LIMITS)
    json.dumps(report.to_dict())
    errors = Counter(f.code for f in report.findings if f.severity != "note")
    if mutant.family == LIE and not errors:
        raise Fault(ACCEPTED, "; ".join(mutant.done))
    if mutant.family == HARMLESS and errors:
        finding = next(f for f in report.findings if f.severity != "note")
        raise Fault(FLAGGED, f"{'; '.join(mutant.done)}: {finding.code} {finding.layer} {finding.message}")
    verdict: Verdict = {"codes": sorted(errors), "also": []}
    rng = np.random.default_rng(mutant.seed)
    if mutant.family != HARMLESS and rng.random() < AROUND:
        words = pick(rng, COMMANDS)
        stage(f"irrun {' '.join(words)}")
        _none(command(file, words))
        verdict["also"] += [f"irrun {words[0]}"]
    if mutant.family == LIE:
        verdict |= {"outcome": REPORTED}
    odd = any(f.code in ODD_WEIGHTS for f in report.findings)
    try:
        fed, results = run(file, mutant.inputs, np.random.default_rng(mutant.seed), stage, odd=odd)
    except irload.IRError as error:
        if mutant.family == HARMLESS:
            raise Fault(CHANGED, f"{'; '.join(mutant.done)}: {error}") from None
        return {"outcome": ERROR, "error": type(error).__name__, "words": str(error)[:200]} | verdict
    if results is not None and rng.random() < AROUND:
        stage("save")
        _none(saved_again(file, fed, results[0]))
        verdict["also"] += ["saved"]
    if mutant.family == HARMLESS:
        stage("compare")
        return verdict | {"outcome": PRESERVED if _as_base(mutant, results) else SKIPPED}
    return {"outcome": TOO_LARGE if results is None else RAN} | verdict


def _none(complaint: str | None) -> None:
    if complaint is not None:
        raise Fault(SAVED if complaint.startswith("saved") else EXIT, complaint)


def run(
    file: Path, good: Sequence[Array], rng: Random, stage: Stage, *, odd: bool
) -> tuple[list[Array], list[list[Array]] | None]:
    """Compare the plan with `compute`. Returns the inputs and the results of both; None if inputs are too large.

    `odd`: the constants contain NaN or infinities, or values so large that sums overflow.
    """
    stage("read")
    read_graph(file)
    stage("infer")
    model = irload.read_model(file, limits=LIMITS)
    stage("compile")
    compiled = [
        irload.compile_model(model, threads=1, optimize=False),
        irload.compile_model(model, threads=2 if rng.random() < 0.15 else 1),
    ]
    inputs = inputs_for(model, good, rng)
    if inputs is None:
        return [], None
    stage("run")
    plain = _settled(compiled[0], inputs)
    stage("run the plan")
    planned = _settled(compiled[1], inputs)
    if isinstance(plain, irload.IRError):
        if not isinstance(planned, irload.IRError) and not isinstance(plain, irload.LimitExceeded):
            raise Fault(PLAN, f"compute: {plain}; the plan: runs")
        raise plain
    if isinstance(planned, irload.IRError):
        raise Fault(PLAN, f"compute: runs; the plan: {planned}")
    # Fast kernels add and multiply in another order, so infinities may cancel in one result and not in the other.
    finite = not odd and all(np.isfinite(a).all() for a in inputs if a.dtype.kind == "f")
    finite = finite and not any(np.isinf(a).any() for a in (*plain, *planned) if a.dtype.kind == "f")
    for port, a, b in zip(model.outputs, plain, planned, strict=True):
        if a.dtype != port.element_type.dtype and port.element_type is not irload.elements.dynamic:
            raise Fault(MISLEADING, f"'{port.any_name}': computed {a.dtype}, inferred {port.element_type}")
        if not port.partial_shape.contains(irload.Shape(*a.shape)):
            raise Fault(MISLEADING, f"'{port.any_name}': computed {a.shape}, inferred {port.partial_shape}")
        if finite and not same_up_to_rounding(a, b, 1e-4):
            raise Fault(PLAN, f"'{port.any_name}': compute {_brief(a)}, the plan {_brief(b)}")
    return inputs, [plain, planned]


def _settled(compiled: irload.CompiledModel, inputs: list[Array]) -> list[Array] | irload.IRError:
    try:
        return list(compiled(inputs).values())
    except irload.IRError as error:
        return error


def _as_base(mutant: MutantFiles, results: list[list[Array]] | None) -> bool:
    """Compare the results with the base's bit by bit. False if the base is not deterministic (random numbers)."""
    model = irload.read_model(mutant.base.xml, mutant.base.blob, limits=LIMITS)
    inputs = inputs_for(model, mutant.inputs, np.random.default_rng(mutant.seed))
    if inputs is None or results is None:
        return False
    for optimize, result in zip((False, True), results, strict=True):
        one, two = (list(irload.compile_model(model, 1, optimize=optimize)(inputs).values()) for _ in range(2))
        if any(not same(a, b) for a, b in zip(one, two, strict=True)):
            return False
        for k, (a, b) in enumerate(zip(one, result, strict=True)):
            if not same(a, b):
                raise Fault(CHANGED, f"{'; '.join(mutant.done)}: output {k}: {_brief(a)}, now {_brief(b)}")
    return True


def _brief(a: Array) -> str:
    return f"{a.dtype}{list(a.shape)} {np.array2string(a.ravel()[:6], precision=7)}"
