"""Checks one model: its file, the inferred types, and the results of plan, plain execution and runtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import irload
from irload.checks import Finding, check
from tests.agreement import feeding
from tests.agreement.layers import compare_layers, compare_relaxed
from tests.harness.runtime import array_of, core

THREADS = (1, 2)
PLAN_TOLERANCE = {"f32": 2e-4, "f16": 2e-2}
"""Tolerance between the plan and its reference, in standard deviations of the output, by the type of the graph."""
RUNTIME_TOLERANCE = {"f32": 1e-3, "f16": 0.2}
"""Tolerance between plain execution and OpenVINO, which computes f16 graphs in f32."""
EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "INFERENCE_NUM_THREADS": 2,
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",  # otherwise activations of compressed models are rounded to 8 bits
    "LP_TRANSFORMS_MODE": "NO",  # otherwise the plugin moves FakeQuantize and runs quantized models in u8 · i8
}
"""Settings for which the CPU plugin computes the graph literally."""
ROUNDING = {"f32": 2.0**-24, "f16": 2.0**-11}
"""Half a unit in the last place of each type, relative."""
DECLARATIONS = ("IR401", "IR402", "IR403", "IR404")
"""The rules of `check` that compare declarations with inference."""
STEPS = 2
"""Consecutive inferences of a model with state."""


@dataclass
class Row:
    """The measurements of one model. Differences are in standard deviations of an output; None: not measured."""

    model: str
    precision: str = ""
    quantized: bool = False
    """True for models with FakeQuantize: a rounding error at the border of two levels selects another level there.

    Later layers amplify this difference.
    """
    load: str = ""
    layers: int = 0
    errors: int = 0
    warnings: int = 0
    declared: int = 0
    false_errors: list[str] = field(default_factory=list[str])
    shapes_compared: int = 0
    shapes_differing: list[str] = field(default_factory=list[str])
    plan: dict[str, float | str] = field(default_factory=dict[str, "float | str"])
    """Difference of the plan from its reference, by number of threads."""
    judge: str = "plain"
    """The reference of the plan: "plain" execution, or "OpenVINO" for f16 graphs.

    OpenVINO and plans compute f16 graphs in f32, unlike plain execution.
    """
    runtime: float | str | None = None
    sensitivity: float = 0.0
    """Difference between two runs of OpenVINO whose inputs differ by a rounding error, if measured."""
    refused: str = ""
    """Why OpenVINO rejects or cannot run the model; then there is no comparison."""
    inputs: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        """The faults of the model; empty if it passes."""
        differences = [self.load] if self.load else []
        differences += [f"false error {e}" for e in self.false_errors]
        differences += [f"shape of {s}" for s in self.shapes_differing]
        limit = max(PLAN_TOLERANCE.get(self.precision, 0), 4 * self.sensitivity if self.quantized else 0)
        for threads, value in self.plan.items():
            if isinstance(value, str) or not value <= limit:
                differences.append(f"plan at {threads} threads against {self.judge}: {shown(value)}")
        value = self.runtime
        limit = max(RUNTIME_TOLERANCE.get(self.precision, 0), 4 * self.sensitivity)
        if isinstance(value, str) or (value is not None and not value <= limit):
            differences.append(f"against OpenVINO: {shown(value)}")
        return differences


def shown(value: float | str | None) -> str:
    """A difference as text of the table."""
    return "–" if value is None else value if isinstance(value, str) else f"{value:.1e}"


def judge(file: Path, name: str, *, relaxed: bool = False) -> Row:
    """Measure one model. `relaxed`: compare inference with dynamic inputs as well."""
    row, start = Row(name), time.perf_counter()
    try:
        _judge(row, file, relaxed=relaxed)
    except Exception as error:  # no failure of a model may end the run
        row.load = f"{type(error).__name__}: {error}"
    row.seconds = round(time.perf_counter() - start, 2)
    return row


def _judge(row: Row, file: Path, *, relaxed: bool) -> None:
    theirs = _by_the_runtime(row, file)
    try:
        model = irload.read_model(file)
        plain = irload.compile_model(model, optimize=False)
    except irload.IRError as error:
        row.load = f"{type(error).__name__}: {error}"
        _check(row, file, set())
        return
    row.layers = sum(len(g.nodes) for g in model.walk())
    row.precision = arithmetic(model)
    row.quantized = any(n.type == "FakeQuantize" for g in model.walk() for n in g.nodes)
    if theirs is not None:
        row.shapes_compared, row.shapes_differing = compare_layers(model, theirs)
        if relaxed:
            count, differing = compare_relaxed(file)
            row.shapes_compared, row.shapes_differing = row.shapes_compared + count, [*row.shapes_differing, *differing]
    _check(row, file, {line.split("'")[1] for line in row.shapes_differing})
    _run(row, file, theirs, plain)


def _by_the_runtime(row: Row, file: Path) -> ov.Model | None:
    try:
        return core().read_model(file)
    except RuntimeError as error:
        row.refused = _last_line(error)
        return None


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1][:200]


def arithmetic(model: irload.Model) -> str:
    """ "f16" if any layer other than a constant and its Convert computes in a narrow float, else "f32"."""
    narrow = {"f16", "bf16"}
    computed = (n for g in model.walk() for n in g.nodes if n.type not in ("Const", "Convert", "Result", "Parameter"))
    return "f16" if any(o.type.element.name in narrow for n in computed for o in n.outputs) else "f32"


def _check(row: Row, file: Path, differing: set[str]) -> None:
    """Count the findings of `check`. An error is false if OpenVINO accepts the file and infers the same types."""
    findings = check(file).findings
    row.warnings = sum(f.severity == "warning" for f in findings)
    for finding in findings:
        if finding.severity != "error":
            continue
        if finding.code in DECLARATIONS and (finding.layer_name or "") not in differing:
            row.declared += 1
        else:
            row.errors += 1
            if not row.refused:
                row.false_errors.append(_brief(finding))


def _brief(finding: Finding) -> str:
    return f"{finding.code} {finding.layer}: {finding.message}"


def _run(row: Row, file: Path, theirs: ov.Model | None, compiled: irload.CompiledModel) -> None:
    steps = STEPS if any(g.sinks for g in compiled.model.walk()) else 1
    inputs, expected, run = feeding.stored(file), None, None
    if theirs is not None:
        inputs, expected, run = _computed_by_the_runtime(row, theirs, inputs, steps)
    if expected is None:  # irload may support it nevertheless
        inputs = inputs or next(feeding.candidates(feeding.wanted_by_irload(compiled.model)))
    row.inputs = [f"{np.asarray(a).dtype}{list(np.shape(a))}" for a in inputs]
    try:
        plain = _by_irload(compiled, inputs, steps)
    except irload.IRError as error:
        row.load = f"{type(error).__name__}: {error}"
        return
    if expected is not None and run is not None:
        row.runtime = _safely(lambda: worst(plain, expected))
    wanted = plain
    if expected is not None and row.precision == "f16":
        wanted, row.judge = expected, "OpenVINO"
    for threads in THREADS:
        row.plan[str(threads)] = _safely(lambda t=threads: _plan(compiled.model, t, inputs, steps, wanted))
    if row.faults and expected is not None and run is not None:
        # Quantized models and detectors amplify rounding errors; two runs of OpenVINO measure by how much.
        row.sensitivity = worst(run([_nudged(a, ROUNDING[row.precision]) for a in inputs]), expected)


def _computed_by_the_runtime(
    row: Row, theirs: ov.Model, inputs: list[Any], steps: int
) -> tuple[list[Any], list[list[Any]] | None, Callable[[list[Any]], list[list[Any]]] | None]:
    """The inputs, OpenVINO's results, and a function that computes them; no results if it rejects all inputs."""
    wanted = feeding.wanted_by_runtime(theirs)
    try:
        compiled = core().compile_model(theirs, "CPU", EXACT)
    except RuntimeError as error:
        row.refused = _last_line(error)
        return inputs, None, None

    def run(arrays: list[Any]) -> list[list[Any]]:
        return _by_runtime(compiled, feeding.tensors(wanted, arrays), steps)

    for arrays in [inputs] if inputs else feeding.candidates(wanted):
        try:
            expected = run(arrays)
        except RuntimeError as error:
            row.refused = _last_line(error)
        else:
            row.refused = ""
            return arrays, expected, run
    return inputs, None, None


def _nudged(array: Any, rounding: float) -> Any:
    """The array with each float moved by a rounding error, alternately up and down."""
    if array.dtype.kind != "f":
        return array
    signs = np.resize(np.array([1, -1], array.dtype), array.shape)
    return (array * (1 + rounding * signs)).astype(array.dtype)


def _safely(measure: Callable[[], float]) -> float | str:
    try:
        return measure()
    except Exception as error:  # any exception of the plan is a finding
        return f"{type(error).__name__}: {error}"


def _plan(model: irload.Model, threads: int, inputs: Sequence[Any], steps: int, wanted: list[list[Any]]) -> float:
    """The difference of the plan from the expected results; each run twice, with results overwritten in between."""
    compiled = irload.compile_model(model, threads=threads)
    largest = 0.0
    for _ in range(2):
        results = _by_irload(compiled, inputs, steps)
        largest = max(largest, worst(results, wanted))
        for array in (a for step in results for a in step):
            array[...] = "" if array.dtype == object else 77
    return largest


def _by_runtime(compiled: Any, inputs: Sequence[Any], steps: int) -> list[list[Any]]:
    request = compiled.create_infer_request()
    results: list[list[Any]] = []
    for _ in range(steps):
        request.infer(list(inputs))
        results.append([array_of(request.get_output_tensor(k)) for k in range(len(compiled.outputs))])
    return results


def _by_irload(compiled: irload.CompiledModel, inputs: Sequence[Any], steps: int) -> list[list[Any]]:
    request = compiled.create_infer_request()
    return [[np.array(a) for a in request.infer(list(inputs)).values()] for _ in range(steps)]


def worst(mine: Sequence[Sequence[Any]], other: Sequence[Sequence[Any]]) -> float:
    """The largest difference of any output of any step, in standard deviations of the output."""
    return max(
        (deviation(a, b) for m, o in zip(mine, other, strict=True) for a, b in zip(m, o, strict=True)), default=0
    )


def deviation(mine: Any, other: Any) -> float:
    """max |mine − other| / std(other); infinite if shapes, kinds of type, NaNs or infinities differ.

    For outputs of a single value, whose deviation is zero, its magnitude is used.
    """
    if mine.shape != other.shape:
        return float("inf")
    if mine.dtype.kind in "OUS" or other.dtype.kind in "OUS":
        return 0.0 if mine.tolist() == other.tolist() else float("inf")
    if (mine.dtype.kind in "biu") != (other.dtype.kind in "biu"):
        return float("inf")
    a, b = mine.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    a, b = a[finite], b[finite]
    if not a.size:
        return 0.0
    if not np.isfinite(a).all():
        return float("inf")
    scale = float(b.std()) or float(np.abs(b).max()) or 1.0
    return float(np.abs(a - b).max()) / scale


__all__ = ["Row", "arithmetic", "deviation", "judge", "shown", "worst"]
