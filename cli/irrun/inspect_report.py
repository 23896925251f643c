"""The report of `irrun inspect`: the contents of a model as JSON or as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irload import Port
from irload.analysis.macs import macs
from irload.analysis.memory import memory
from irload.analysis.parameters import parameters
from irload.core.tensor import TensorType
from irrun.costs import macs_text, show_not_counted
from irrun.document import Document
from irrun.render import counted, plain, safe, show_warnings, size_text, stdout, table
from irrun.survey import Layer, Survey, is_unknown, layers_of, warnings_of

FOLDED = ("cli_parameters", "conversion_parameters")
"""Subtrees of the metadata with one entry per option of Model Optimizer, mostly defaults."""


def report(path: Path, surveyed: Survey) -> Document:
    """Return the document of schemas/inspect.schema.json without the optional parts."""
    model = surveyed.model
    every = layers_of(model)
    return {
        "model": str(path),
        "name": model.name,
        "ir_version": model.ir_version,
        "weights": model.weights_file,
        "inputs": [_port(p) for p in model.inputs],
        "outputs": [_port(p) for p in model.outputs],
        "layer_count": len(every),
        "operations": _operations(every),
        "constants": _constants(every),
        "costs": _costs(surveyed),
        "metadata": model.rt_info,
        "warnings": warnings_of(surveyed),
    }


def layers_report(layers: Sequence[Layer]) -> list[Document]:
    """Return one row per layer."""
    return [_layer(layer) for layer in layers]


def _port(port: Port) -> Document:
    graph_type = port.output.type.element.name
    return {"name": port.any_name, "names": sorted(port.names), **_type(port.type), "graph_type": graph_type}


def _type(tensor: TensorType) -> Document:
    return {"type": tensor.element.name, "shape": str(tensor.shape)}


def _operations(layers: Sequence[Layer]) -> list[Document]:
    count = Counter((x.node.type, x.node.version or "opset1", is_unknown(x.node)) for x in layers)
    ordered = sorted(count.items(), key=lambda item: (-item[1], item[0]))
    return [{"type": t, "opset": v, "count": n, "known": not unknown} for (t, v, unknown), n in ordered]


def _constants(layers: Sequence[Layer]) -> list[Document]:
    """Count constants by element type. Bytes that several constants share count once, as in the .bin file."""
    rows: dict[str, Document] = {}
    seen: set[tuple[int, int]] = set()
    for layer in layers:
        node = layer.node
        if node.type != "Const" or is_unknown(node):
            continue
        element, shape = node.op.attributes["element_type"], node.op.attributes["shape"]
        row = rows.setdefault(element.name, {"type": element.name, "count": 0, "values": 0, "bytes": 0})
        row["count"] += 1
        span = (node.op.attributes["offset"], node.op.attributes["size"])
        if span not in seen:
            seen.add(span)
            row["values"] += shape.size.lo
            row["bytes"] += span[1] if shape.size.lo else 0
    return sorted(rows.values(), key=lambda row: -row["bytes"])


def _costs(surveyed: Survey) -> Document:
    """Return parameters, MACs and peak memory. `unknown_*` counts layers and tensors of dynamic shape."""
    nodes = [node for node in surveyed.model.nodes if node.reachable]
    counts = [macs(node) for node in nodes]
    needed = memory(surveyed.model)
    return {
        "parameters": parameters(surveyed.model),
        "macs": sum(count or 0 for count in counts),
        "unknown_macs": sum(count is None for count in counts),
        "constants": needed.constants,
        "peak": needed.peak,
        "unknown_peak": needed.unknown,
    }


def _layer(layer: Layer) -> Document:
    node = layer.node
    return {
        "id": node.id,
        "body": layer.path,
        "type": node.type,
        "opset": node.version or "opset1",
        "name": node.name,
        "inputs": [_type(source.type) for source in node.inputs],
        "outputs": [_type(output.type) for output in node.outputs],
        "reachable": node.reachable,
    }


# -- text output
# --------------------------------------------------------------------------------------------------------


def render_header(document: Document) -> None:
    """Show a one-line summary of the model on stdout."""
    name = document["name"] or document["model"]
    where = f"weights {document['weights']}" if document["weights"] else "no weights"
    stdout().print(
        f"[bold]{safe(name)}[/]  IR version {document['ir_version']}, {document['layer_count']} layers, {safe(where)}"
    )


def render(document: Document) -> None:
    """Show a report on stdout, with the options of Model Optimizer folded into one line."""
    console = stdout()
    render_header(document)
    for kind in ("inputs", "outputs"):
        shown = table(kind[:-1], "type", "shape")
        for port in document[kind]:
            kind, inside = port["type"], port["graph_type"]
            kind = kind if kind == inside else f"{kind} ({inside} in the graph)"
            shown.add_row(safe(", ".join(port["names"])), kind, safe(port["shape"]))
        console.print()
        console.print(shown)
    console.print()
    _render_operations(document["operations"])
    if document["constants"]:
        console.print()
        _render_constants(document["constants"])
    console.print()
    _render_costs(document["costs"])
    if document["metadata"]:
        console.print()
        render_metadata(document["metadata"], folded=FOLDED)
    show_warnings(document["warnings"])


def render_metadata(tree: Document, folded: Sequence[str] = ()) -> None:
    """Show rt_info on stdout, one entry per row; each subtree in `folded` takes one row."""
    shown = table("metadata", "value")
    for key, value in _flat(tree, folded=folded):
        shown.add_row(safe(key), safe(_shortened(value)))
    stdout().print(shown)


def _render_costs(costs: Document) -> None:
    console = stdout()
    console.print(f"{counted(costs['parameters'], 'parameter')}, {macs_text(costs['macs'], costs['unknown_macs'])}")
    activations = "unknown" if costs["unknown_peak"] and not costs["peak"] else size_text(costs["peak"])
    least = "at least " * bool(costs["unknown_peak"])
    console.print(
        f"{least}{size_text(costs['constants'] + costs['peak'])} of memory at the peak: "
        f"constants {size_text(costs['constants'])}, activations {activations}",
        soft_wrap=True,
    )
    unknown = (("layer", costs["unknown_macs"]), ("tensor", costs["unknown_peak"]))
    left_out = " and ".join(counted(count, kind) for kind, count in unknown if count)
    if left_out:
        show_not_counted(left_out)


def _render_operations(rows: Sequence[Document]) -> None:
    shown = table("operation", "opset", "layers", right=("layers",))
    for row in rows:
        mark = "" if row["known"] else " [red](unknown)[/]"
        shown.add_row(safe(row["type"]) + mark, safe(row["opset"]), str(row["count"]))
    stdout().print(shown)


def _render_constants(rows: Sequence[Document]) -> None:
    shown = table("constants", "count", "values", "bytes", right=("count", "values", "bytes"))
    for row in rows:
        shown.add_row(row["type"], str(row["count"]), f"{row['values']:,}", size_text(row["bytes"]))
    if len(rows) > 1:
        total = {key: sum(row[key] for row in rows) for key in ("count", "values", "bytes")}
        shown.add_row("all", str(total["count"]), f"{total['values']:,}", size_text(total["bytes"]))
    stdout().print(shown)


def render_layers(rows: Sequence[Document]) -> None:
    """Show layers on stdout, one row each."""
    shown = table("id", "operation", "name", "inputs", "outputs", right=("id",))
    for row in rows:
        name = f"{row['body']}/{row['name']}" if row["body"] else row["name"]
        ends = [", ".join(t["type"] + t["shape"] for t in row[side]) for side in ("inputs", "outputs")]
        shown.add_row(str(row["id"]), safe(row["type"]), safe(name), *map(safe, ends))
    stdout().print(shown)


def _flat(tree: Any, prefix: str = "", folded: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the leaves of the metadata with their dotted paths; of each `folded` subtree, the number of its leaves."""
    if not isinstance(tree, dict):
        return [(prefix, str(tree))]
    entries: list[tuple[str, str]] = []
    for key, below in tree.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        leaves = _flat(below, path, folded)
        if key in folded and len(leaves) > 1:
            leaves = [(path, f"{len(leaves)} options (--metadata shows them)")]
        entries += leaves
    return entries


def _shortened(text: str, limit: int = 120) -> str:
    shown = plain(text)
    return shown if len(shown) <= limit else f"{shown[:limit]}… ({len(text)} characters)"
