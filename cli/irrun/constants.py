"""`irrun inspect --constants`: every constant, with the statistics of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload import IRError
from irload.graph import Node
from irload.reporting.statistics import moments
from irrun.document import Document
from irrun.render import safe, size_text, stdout, table
from irrun.survey import Layer, is_unknown
from irrun.values import json_value, value_text


def weights_report(every: Sequence[Layer], chosen: Sequence[Layer]) -> list[Document]:
    """Return one row per constant in `chosen`, with the constants in `every` that share its bytes."""
    sharing: dict[tuple[int, int], list[Node]] = {}
    for layer in every:
        if _is_constant(layer.node):
            sharing.setdefault(_span(layer.node), []).append(layer.node)
    return [_row(layer, sharing[_span(layer.node)]) for layer in chosen if _is_constant(layer.node)]


def _is_constant(node: Node) -> bool:
    return node.type == "Const" and not is_unknown(node)


def _span(node: Node) -> tuple[int, int]:
    return node.op.attributes["offset"], node.op.attributes["size"]


def _row(layer: Layer, sharing: Sequence[Node]) -> Document:
    node = layer.node
    offset, size = _span(node)
    return {
        "id": node.id,
        "body": layer.path,
        "name": node.name,
        "type": node.op.attributes["element_type"].name,
        "shape": str(node.op.attributes["shape"]),
        "offset": offset,
        "bytes": size,
        **_statistics(node),
        "shared_with": [other.name for other in sharing if other is not node],
    }


def _statistics(node: Node) -> Document:
    """Return statistics over the finite values; empty if the weights are missing or not numeric."""
    nothing: Document = dict.fromkeys(("min", "max", "mean", "std", "sparsity", "nonfinite"))
    try:
        values = node.op.attributes["data"]()
    except IRError:
        return nothing
    if values.dtype == object or not values.size:
        return nothing
    statistics = moments(values.reshape(-1))
    shown = {**nothing, "sparsity": statistics.zeros / values.size, "nonfinite": values.size - statistics.count}
    if statistics.count:
        low, high = (_digits(x, values.dtype) for x in (statistics.low, statistics.high))
        shown |= {"min": low, "max": high, "mean": statistics.mean, "std": statistics.std}
    return shown


def _digits(x: Any, dtype: np.dtype[Any]) -> Any:
    """Format a value in the precision of its type: integers exactly, f32 with its shortest digits."""
    if dtype.kind in "biu":
        return int(x)
    return json_value((np.float64 if dtype == np.float64 else np.float32)(x))


def render_weights(rows: Sequence[Document]) -> None:
    """Show the constants on stdout."""
    numbers = ("min", "max", "mean", "std")
    shown = table(
        *("constant", "type", "shape", "bytes", *numbers, "zeros", "shared with"), right=("bytes", *numbers, "zeros")
    )
    for row in rows:
        sparsity = "–" if row["sparsity"] is None else f"{row['sparsity']:.1%}"
        others = row["shared_with"]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        name = f"{row['body']}/{row['name']}" if row["body"] else row["name"]
        cells = [safe(name), row["type"], safe(row["shape"]), size_text(row["bytes"])]
        cells += [value_text(row[key]) for key in numbers]
        shown.add_row(*cells, sparsity, safe(others[0]) + more if others else "")
    stdout().print(shown)
    odd = sum(bool(row["nonfinite"]) for row in rows)
    if odd:
        stdout().print(f"[yellow]{odd} of these constants hold NaN or infinite values[/]")
