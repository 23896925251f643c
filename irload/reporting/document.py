"""Everything that a report shows of a model, as plain data that JSON can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, cast

from irload.checks import check
from irload.comparison.compare import Comparison, LayerError, compare
from irload.comparison.diff import diff
from irload.comparison.edits import Difference
from irload.comparison.measures import Measures
from irload.compiling import compile_model
from irload.graph import Port
from irload.memory import Lifetimes, constant_bytes
from irload.model import Model
from irload.plan.profile import StepTime
from irload.reporting.layers import Layers, layers_of

__all__ = ["document_of"]

Document = dict[str, Any]
_ITERATION = re.compile(r"\[\d+\]/")


def document_of(
    model: Model,
    inputs: Any,
    *,
    constants: bool,
    profile: bool,
    comparison: Comparison | Model | str | Path | None,
    difference: Difference | Model | str | Path | None,
    options: Mapping[str, Any],
) -> Document:
    """The data of a report. What is None, or False, is left out of it; `options` are those of `compile_model`."""
    layers = layers_of(model, constants=constants)
    found: Document = {
        "model": _model(model, layers),
        "graphs": layers.graphs,
        "layers": layers.entries,
        "findings": _findings(model, layers),
        "memory": _memory(model, layers),
    }
    if profile:
        found["profile"] = _profile(compile_model(model, **options).profile(inputs), layers)
    if comparison is not None:
        done = comparison if isinstance(comparison, Comparison) else compare(model, comparison, inputs)
        found["comparison"] = _comparison(done, layers)
    if difference is not None:
        edits = difference if isinstance(difference, Difference) else diff(model, difference)
        found["difference"] = _difference(edits, layers)
    return _finite(found)


def _model(model: Model, layers: Layers) -> Document:
    outer = [e for e in layers.entries if e["graph"] == 0 and "macs" in e]
    return {
        "name": model.name,
        "file": model.file,
        "ir_version": model.ir_version,
        "layers": sum("constant" not in e for e in layers.entries),
        "constants": sum("constant" in e for e in layers.entries),
        "constant_bytes": constant_bytes(model),
        "macs": sum(e["macs"] or 0 for e in outer),
        "macs_unknown": sum(e["macs"] is None for e in outer),
        "parameters": sum(e["constant"]["size"] for e in layers.entries if _is_weight(e)),
        "inputs": [_port(p, layers) for p in model.inputs],
        "outputs": [_port(p, layers) for p in model.outputs],
    }


def _is_weight(entry: Document) -> bool:
    constant = entry.get("constant")
    return constant is not None and constant["size"] > 1 and not re.match(r"[iu](16|32|64)|bool|str", _type(entry))


def _type(entry: Document) -> str:
    return entry["outputs"][0]["type"] if entry["outputs"] else ""


def _port(port: Port, layers: Layers) -> Document:
    return {"name": port.any_name, "type": str(port.type), "layer": layers.index[port.node]}


def _findings(model: Model, layers: Layers) -> list[Document] | None:
    """What check reports; None where the model is of no file. Each finding with its layer."""
    if model.file is None or not Path(model.file).exists():
        return None
    keys = ("code", "severity", "message", "cause", "line", "port")
    found: list[Document] = []
    for finding in check(model.file, model.weights_file, limits=model.limits).findings:
        shown: Document = {key: value for key, value in asdict(finding).items() if key in keys}
        layer = None if finding.layer_id is None else layers.by_id.get((finding.body, finding.layer_id))
        found.append({**shown, "layer": layer})
    return found


def _memory(model: Model, layers: Layers) -> Document:
    lifetimes = Lifetimes(model, lambda output: output.type)
    return {
        "series": [[layers.index[node], alive] for node, alive in lifetimes.series],
        "peak": lifetimes.peak,
        "at": None if lifetimes.at is None else layers.index.get(lifetimes.at),
        "unknown": lifetimes.unknown,
    }


def _profile(steps: Sequence[StepTime], layers: Layers) -> list[Document]:
    """The steps; a layer that several stand for takes their time, one that is fused into another none of its own."""
    return [
        {
            "operation": s.operation,
            "kernel": s.kernel,
            "seconds": s.seconds,
            "rate": s.rate,
            "layers": [layers.index[node] for node in s.origin if node in layers.index],
        }
        for s in steps
    ]


def _comparison(found: Comparison, layers: Layers) -> Document:
    rows: list[Document] = []
    for layer in found.layers:
        path = _ITERATION.sub("/", layer.name)
        at = layers.by_name.get(path, layers.by_name.get(path.rpartition(":")[0]))
        rows.append({"layer": at, "name": layer.name, "operation": layer.operation, **_error(layer)})
    return {"a": found.a, "b": found.b, "passed": found.passed, "verdict": str(found), "layers": rows}


def _error(layer: LayerError) -> Document:
    def shown(measures: Measures | None) -> Document | None:
        keys = ("max_abs", "mean_abs", "needed", "cosine", "psnr", "beyond", "size")
        return None if measures is None else {k: getattr(measures, k) for k in keys}

    return {
        "passed": layer.passed,
        "problem": layer.problem,
        "tolerance": layer.tolerance,
        "own": shown(layer.own),
        "total": shown(layer.total),
    }


def _difference(found: Difference, layers: Layers) -> Document:
    rows: list[Document] = []
    for edit in found.edits:
        changes = [
            {"label": c.label, "a": c.a, "b": c.b, "values": "" if c.values is None else str(c.values)}
            for c in edit.changes
        ]
        at = None if edit.kind == "added" else layers.by_name.get(edit.name)
        shown = {"kind": edit.kind, "name": edit.name, "operation": edit.operation, "place": edit.place}
        rows.append({**shown, "changes": changes, "layer": at})
    follows = [{"name": f.name, "operation": f.operation, "a": f.a, "b": f.b} for f in found.follows]
    return {"a": found.a, "b": found.b, "summary": found.summary, "edits": rows, "follows": follows}


def _finite(value: Any) -> Any:
    """The same without what JSON cannot say of numbers: NaN and infinities become text."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in cast("list[Any]", value)]
    return value
