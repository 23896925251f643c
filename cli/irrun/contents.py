"""The report of a model's contents, as JSON or for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irload import Port
from irload.core.tensor import TensorType
from irrun.render import plain, safe, show_warnings, size_text, stdout, table
from irrun.survey import Layer, Survey, is_unknown, layers_of, warnings_of

Document = dict[str, Any]


def report(path: Path, found: Survey) -> Document:
    """The document of schemas/inspect.schema.json, without the parts that are only there when asked for."""
    model = found.model
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
        "metadata": model.rt_info,
        "warnings": warnings_of(found),
    }


def layers_report(layers: Sequence[Layer]) -> list[Document]:
    """One row a layer."""
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
    """Constants by element type. Bytes that several constants share are counted once, as the .bin file holds them."""
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


# -- for people --------------------------------------------------------------------------------------------------------


def render_header(document: Document) -> None:
    """Show on stdout in a line what model it is."""
    name = document["name"] or document["model"]
    where = f"weights {document['weights']}" if document["weights"] else "no weights"
    stdout().print(
        f"[bold]{safe(name)}[/]  IR version {document['ir_version']}, {document['layer_count']} layers, {safe(where)}"
    )


def render(document: Document) -> None:
    """Show a report on stdout."""
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
    facts = list(_flat(document["metadata"]))
    if facts:
        console.print()
        shown = table("metadata", "value")
        for key, value in facts:
            shown.add_row(safe(key), safe(_shortened(value)))
        console.print(shown)
    show_warnings(document["warnings"])


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
    """Show layers on stdout, one row for each."""
    shown = table("id", "operation", "name", "inputs", "outputs", right=("id",))
    for row in rows:
        name = f"{row['body']}/{row['name']}" if row["body"] else row["name"]
        ends = [", ".join(t["type"] + t["shape"] for t in row[side]) for side in ("inputs", "outputs")]
        shown.add_row(str(row["id"]), safe(row["type"]), safe(name), *map(safe, ends))
    stdout().print(shown)


def _flat(tree: Any, prefix: str = "") -> list[tuple[str, str]]:
    """The leaves of the metadata with their paths, joined by dots."""
    if not isinstance(tree, dict):
        return [(prefix, str(tree))]
    return [leaf for key, below in tree.items() for leaf in _flat(below, f"{prefix}.{key}" if prefix else str(key))]


def _shortened(text: str, limit: int = 120) -> str:
    shown = plain(text)
    return shown if len(shown) <= limit else f"{shown[:limit]}… ({len(text)} characters)"
