"""The report of `irrun run` as JSON or as text: each output with its range and first values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from irload import CompiledModel, Port
from irload.arrays.input_files import InputValue
from irload.core.shape import without_unit_axes
from irload.core.tensor import Array
from irload.runtime.compiled_model import Result
from irrun.document import Document
from irrun.render import safe, stderr, stdout, table
from irrun.values import json_element, json_value, value_text

FIRST = 8
"""Upper bound of the values shown per output."""
ROWS = 16
"""Upper bound of the rows of an output whose greatest values are shown."""


def report(
    model: Path,
    compiled: CompiledModel,
    fed: Sequence[InputValue],
    result: Result,
    seconds: tuple[float, float],
    top: int | None,
    labels: Sequence[str],
    *,
    cached: bool = False,
) -> Document:
    """Return the document of schemas/run.schema.json. `seconds`: of planning, and of the inference.

    `cached`: whether the plan comes from the cache.
    """
    inputs = [{**_tensor(port, f.value), "source": f.source} for port, f in zip(compiled.inputs, fed, strict=True)]
    outputs = [_output(port, array, top, labels) for port, array in zip(compiled.outputs, result.values(), strict=True)]
    planning, inference = (round(s, 6) for s in seconds)
    return {
        "model": str(model),
        "inputs": inputs,
        "outputs": outputs,
        "cached": cached,
        "planning_seconds": planning,
        "seconds": inference,
    }


def _tensor(port: Port, array: Array) -> Document:
    return {"name": port.any_name, "type": port.element_type.name, "shape": list(array.shape)}


def _output(port: Port, array: Array, top: int | None, labels: Sequence[str]) -> Document:
    document: Document = {**_tensor(port, array), **_extent(array)}
    document["first"] = [json_element(v) for v in array.ravel()[:FIRST]]
    if top is not None and array.dtype.kind not in "OUS" and array.ndim:
        length = without_unit_axes(array.shape, 2)[-1]
        rows = array.reshape(-1, length) if array.size else array.reshape(0, 0)
        document["top"] = [_greatest(row, top, labels) for row in rows[:ROWS]]
    return document


def _extent(array: Array) -> Document:
    """Return min, max and mean over the finite values, and the number of non-finite ones."""
    if array.dtype.kind in "OUS":
        return {"min": None, "max": None, "mean": None, "nonfinite": 0}
    numbers = array if array.dtype.kind in "biu" else array.astype(np.float64)
    finite = numbers if array.dtype.kind in "biu" else numbers[np.isfinite(numbers)]
    if not finite.size:
        return {"min": None, "max": None, "mean": None, "nonfinite": int(array.size)}
    return {
        "min": json_value(finite.min()),
        "max": json_value(finite.max()),
        "mean": json_value(finite.mean(dtype=np.float64)),
        "nonfinite": int(array.size - finite.size),
    }


def _greatest(row: Array, count: int, labels: Sequence[str]) -> list[Document]:
    numbers = row.astype(np.float64)
    names = labels if len(labels) == len(row) else [None] * len(row)
    order = np.argsort(np.where(np.isnan(numbers), np.inf, -numbers), kind="stable")[:count]
    return [{"index": int(k), "label": names[k], "value": json_element(row[k])} for k in order]


# -- text output -----------------------------------------------------------------------------------------------------


def render(document: Document) -> None:
    """Show results on stdout; warnings, files and times on stderr."""
    console = stdout()
    summary = table("output", "type", "shape", "min", "max", "mean", "first values", right=("min", "max", "mean"))
    for output in document["outputs"]:
        extent = [value_text(output[key]) for key in ("min", "max", "mean")]
        summary.add_row(safe(output["name"]), output["type"], _shape(output["shape"]), *extent, _first(output))
    console.print(summary)
    for output in document["outputs"]:
        if "top" in output:
            console.print()
            _render_top(output)
        if output["nonfinite"]:
            console.print(f"[yellow]{safe(output['name'])}: {output['nonfinite']} values are NaN or infinite[/]")
    for file in document["written"]:
        stderr().print(f"wrote {safe(file)}", soft_wrap=True)
    planning, inference = (_time(document[key]) for key in ("planning_seconds", "seconds"))
    planned = "loaded the plan from the cache" if document["cached"] else "planned"
    stderr().print(f"[dim]{planned} in {planning}, ran in {inference}[/]")


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _render_top(output: Document) -> None:
    rows = output["top"]
    labelled = any(item["label"] is not None for row in rows for item in row)
    columns = [*(["row"] if len(rows) > 1 else []), "index", *(["label"] if labelled else []), "value"]
    shown = table(*columns, right=("row", "index", "value"))
    for number, row in enumerate(rows):
        for item in row:
            cells = [str(number)] if len(rows) > 1 else []
            cells.append(str(item["index"]))
            cells += [safe(item["label"] or "")] if labelled else []
            shown.add_row(*cells, value_text(item["value"]))
    stdout().print(f"[bold]top of {safe(output['name'])}[/]")
    stdout().print(shown)
    total = math.prod(without_unit_axes(tuple(output["shape"]), 2)[:-1])
    if total > len(rows):
        stdout().print(f"[dim]and {total - len(rows)} more rows[/]")


def _shape(sizes: Sequence[int]) -> str:
    return safe(f"[{','.join(map(str, sizes))}]")


def _first(output: Document) -> str:
    shown = " ".join(value_text(v, 3) for v in output["first"])
    return safe(shown + (" …" if math.prod(output["shape"]) > len(output["first"]) else ""))
