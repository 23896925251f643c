"""The contents of a report as plain data that JSON can represent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, cast

from irload.analysis.memory import Lifetimes, constant_bytes
from irload.analysis.parameters import parameters
from irload.checks import all_rules, check
from irload.comparison.compare import Comparison, LayerError, compare
from irload.comparison.diff import diff
from irload.comparison.edits import Difference
from irload.comparison.measures import Measures
from irload.compiling import compile_model
from irload.graph import Port
from irload.model import Model
from irload.options import CompileOptions
from irload.plan.profile import StepTime
from irload.reporting.arrays import hold_tensors
from irload.reporting.layers import LayerIndex, layers_of
from irload.runtime.observation import as_patterns

__all__ = ["document_of"]

PageData = dict[str, Any]


def document_of(
    model: Model,
    inputs: Any,
    *,
    constants: bool,
    profile: bool,
    comparison: Comparison | Model | str | Path | None,
    difference: Difference | Model | str | Path | None,
    tensors: str | Sequence[str],
    threads: int | None,
    options: CompileOptions,
) -> PageData:
    """Return the data of a report, without parts that are None or False.

    `threads`, `options`: as for `compile_model`.
    """
    layers = layers_of(model, constants=constants)
    page: PageData = {
        "model": _model(model, layers),
        "graphs": layers.graphs,
        "layers": layers.entries,
        "findings": _findings(model, layers),
        "memory": _memory(model, layers),
    }
    compiled = compile_model(model, threads, **options) if profile or tensors else None
    if compiled is not None and tensors:
        hold_tensors(compiled, inputs, as_patterns(tensors), layers)
    if compiled is not None and profile:
        page["profile"] = _profile(compiled.profile(inputs), layers)
    if comparison is not None:
        done = comparison if isinstance(comparison, Comparison) else compare(model, comparison, inputs)
        page["comparison"] = _comparison(done, layers)
    if difference is not None:
        edits = difference if isinstance(difference, Difference) else diff(model, difference)
        page["difference"] = _difference(edits, layers)
    return _finite(page)


def _model(model: Model, layers: LayerIndex) -> PageData:
    outer = [e for e in layers.entries if e["graph"] == 0 and "macs" in e]
    return {
        "name": model.name,
        "file": model.file,
        "ir_version": model.ir_version,
        "layers": len(layers.entries),
        "constants": sum("constant" in e for e in layers.entries),
        "constant_bytes": constant_bytes(model),
        "macs": sum(e["macs"] or 0 for e in outer),
        "macs_unknown": sum(e["macs"] is None for e in outer),
        "parameters": parameters(model),
        "inputs": [_port(p, layers) for p in model.inputs],
        "outputs": [_port(p, layers) for p in model.outputs],
    }


def _port(port: Port, layers: LayerIndex) -> PageData:
    return {"name": port.any_name, "type": str(port.type), "layer": layers.index[port.node]}


def _findings(model: Model, layers: LayerIndex) -> list[PageData] | None:
    """Return the findings of check, each with its layer; None if the model was not read from a file."""
    if model.file is None or not Path(model.file).exists():
        return None
    keys = ("code", "severity", "message", "cause", "line", "port")
    findings: list[PageData] = []
    titles = {rule.code: rule.title for rule in all_rules()}
    for finding in check(model.file, model.weights_file, limits=model.limits).findings:
        shown: PageData = {"title": titles[finding.code]} | {
            key: value for key, value in asdict(finding).items() if key in keys
        }
        layer = None if finding.layer_id is None else layers.by_id.get((finding.body, finding.layer_id))
        findings.append({**shown, "layer": layer})
    return findings


def _memory(model: Model, layers: LayerIndex) -> PageData:
    lifetimes = Lifetimes(model, lambda output: output.type)
    return {
        "series": [[layers.index[node], alive] for node, alive in lifetimes.series],
        "peak": lifetimes.peak,
        "at": None if lifetimes.at is None else layers.index.get(lifetimes.at),
        "unknown": lifetimes.unknown,
    }


def _profile(steps: Sequence[StepTime], layers: LayerIndex) -> list[PageData]:
    """Return the steps, including steps of bodies. The time of a step is attributed to its last layer."""
    return [
        {
            "operation": s.operation,
            "kernel": s.kernel,
            "seconds": s.seconds,
            "rate": s.rate,
            "layers": [layers.index[node] for node in s.origin if node in layers.index],
            "inside": _profile(s.inside, layers),
        }
        for s in steps
    ]


def _comparison(comparison: Comparison, layers: LayerIndex) -> PageData:
    rows = [
        {"layer": layers.of_run(layer.name), "name": layer.name, "operation": layer.operation, **_error(layer)}
        for layer in comparison.layers
    ]
    return {
        "a": comparison.a,
        "b": comparison.b,
        "passed": comparison.passed,
        "verdict": str(comparison),
        "layers": rows,
    }


def _error(layer: LayerError) -> PageData:
    def shown(measures: Measures | None) -> PageData | None:
        keys = ("max_abs", "mean_abs", "needed", "cosine", "psnr", "beyond", "size")
        return None if measures is None else {k: getattr(measures, k) for k in keys}

    return {
        "passed": layer.passed,
        "problem": layer.problem,
        "tolerance": layer.tolerance,
        "own": shown(layer.own),
        "total": shown(layer.total),
    }


def _difference(difference: Difference, layers: LayerIndex) -> PageData:
    rows: list[PageData] = []
    for edit in difference.edits:
        changes = [
            {"label": c.label, "a": c.a, "b": c.b, "values": "" if c.values is None else str(c.values)}
            for c in edit.changes
        ]
        at = None if edit.kind == "added" else layers.by_name.get(edit.name)
        shown = {"kind": edit.kind, "name": edit.name, "operation": edit.operation, "place": edit.place}
        rows.append({**shown, "changes": changes, "layer": at})
    follows = [{"name": f.name, "operation": f.operation, "a": f.a, "b": f.b} for f in difference.follows]
    return {"a": difference.a, "b": difference.b, "summary": difference.summary, "edits": rows, "follows": follows}


def _finite(value: Any) -> Any:
    """Return a copy with NaN and infinities as text, because JSON cannot represent them."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in cast("list[Any]", value)]
    return value
