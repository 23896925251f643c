"""`irrun inspect --constants`: every constant, with the statistics of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload import IRError
from irload.core.tensor import Array
from irload.graph import Node
from irrun.render import safe, size_text, stdout, table
from irrun.survey import Layer, is_unknown
from irrun.values import json_value, value_text

Document = dict[str, Any]

BLOCK = 1 << 20
"""Values taken at a time, so that statistics of big tensors need little memory."""


def weights_report(every: Sequence[Layer], chosen: Sequence[Layer]) -> list[Document]:
    """One row for each of the chosen constants. `every` gives those that share its bytes."""
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
    """Over the finite values; nothing where the weights are missing or are no numbers."""
    nothing: Document = dict.fromkeys(("min", "max", "mean", "std", "sparsity", "nonfinite"))
    try:
        values = node.op.attributes["data"]()
    except IRError:
        return nothing
    if values.dtype == object or not values.size:
        return nothing
    flat = values.reshape(-1)
    blocks = [flat[k : k + BLOCK] for k in range(0, flat.size, BLOCK)]
    zeros = sum(int(np.count_nonzero(b == 0)) for b in blocks)
    finite = [f for b in blocks if (f := _finite(b)).size]
    count = sum(f.size for f in finite)
    found = {**nothing, "sparsity": zeros / flat.size, "nonfinite": flat.size - count}
    if count:
        mean = sum(float(f.sum()) for f in finite) / count
        spread = sum(float(np.square(f - mean).sum()) for f in finite) / count
        low, high = _extremes(blocks if values.dtype.kind in "biu" else finite, values.dtype)
        found |= {"min": low, "max": high, "mean": mean, "std": spread**0.5}
    return found


def _finite(block: Array) -> Array:
    numbers = block.astype(np.float64)
    return numbers if block.dtype.kind in "biu" else numbers[np.isfinite(numbers)]


def _extremes(blocks: Sequence[Array], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest value in the digits of their type: big integers exactly, f32 as short as it is."""
    low, high = min(b.min() for b in blocks), max(b.max() for b in blocks)
    if dtype.kind in "biu":
        return int(low), int(high)
    short = np.float64 if dtype == np.float64 else np.float32
    return json_value(short(low)), json_value(short(high))


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
