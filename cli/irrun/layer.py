"""`irrun inspect --layer NAME`: all details of one layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload import InputInvalid
from irload.analysis.macs import macs
from irload.core.tensor import TensorType
from irload.graph import Node, Output
from irload.model import Model
from irload.wording import near_names, suggestion
from irrun.document import Document
from irrun.render import plain, safe, stdout, table
from irrun.survey import Layer, Survey, is_unknown
from irrun.values import json_element, value_text

SHOWN = 64
"""Upper bound of the elements of a tensor whose values are listed."""


def layer_report(surveyed: Survey, every: Sequence[Layer], wanted: str) -> list[Document]:
    """Return the layers with that name or id, also in bodies. Raises InputInvalid if there are none."""
    chosen = [x for x in every if wanted in (x.node.name, f"{x.path}/{x.node.name}")]
    chosen = chosen or [x for x in every if wanted == str(x.node.id)]
    if not chosen:
        hint = suggestion(near_names(wanted, [x.node.name for x in every]))
        raise InputInvalid(f"no layer has the name or id '{wanted}'{hint}")
    consumers = _consumers(surveyed.model)
    return [_layer(x, consumers, surveyed) for x in chosen]


def _consumers(model: Model) -> dict[Output, list[tuple[Node, int]]]:
    consumers: dict[Output, list[tuple[Node, int]]] = {}
    for graph in model.walk():
        for node in graph.nodes:
            for k, source in enumerate(node.inputs):
                consumers.setdefault(source, []).append((node, k))
    return consumers


def _layer(layer: Layer, consumers: Mapping[Output, Sequence[tuple[Node, int]]], surveyed: Survey) -> Document:
    node = layer.node
    fault = surveyed.failed.get(node)
    return {
        "id": node.id,
        "body": layer.path,
        "type": node.type,
        "opset": node.version or "opset1",
        "known_since": None if is_unknown(node) else node.op.opset,
        "name": node.name,
        "line": node.line,
        "about": None if is_unknown(node) else (type(node.op).__doc__ or "").split("\n")[0],
        "reachable": node.reachable,
        "attributes": _attributes(node),
        "inputs": [_input(node, k, source) for k, source in enumerate(node.inputs)],
        "outputs": [_output(output, consumers.get(output, ())) for output in node.outputs],
        "macs": macs(node),
        "rt_info": [{k: v for k, v in entry.items() if not k.startswith("#")} for entry in node.rt_info],
        "fault": None if fault is None else str(fault),
    }


def _attributes(node: Node) -> list[Document]:
    """Return the attributes of the file, and the defaults of the omitted ones."""
    known = {d.xml_name: d for d in node.op.declared.values() if not d.supplied}
    rows: list[Document] = []
    for key, declaration in known.items():
        value = node.op.attributes[declaration.name]
        default = (
            None if declaration.required or declaration.default is None else declaration.write(declaration.default)
        )
        text = node.text.get(key, "" if value is None else declaration.write(value))
        rows.append({"name": key, "value": text, "given": key in node.text, "default": default})
    strange = [key for key in node.text if key not in known]
    return rows + [{"name": key, "value": node.text[key], "given": True, "default": None} for key in strange]


def _input(node: Node, index: int, source: Output) -> Document:
    declared = node.declared_inputs[index] if index < len(node.declared_inputs) else None
    return {
        "name": f"input {index}" if is_unknown(node) else node.op.signature.name(index),
        "from": _end(source.node, source.index),
        "declared": None if declared is None or declared.dims is None else str(declared),
        **_type(source.type),
    }


def _output(output: Output, consumers: Sequence[tuple[Node, int]]) -> Document:
    return {
        "names": sorted(output.names),
        "declared": None if output.declared is None else str(output.declared),
        **_type(output.type),
        "values": _values(output.type),
        "consumers": [_end(node, port) for node, port in consumers],
    }


def _end(node: Node, port: int) -> Document:
    return {"id": node.id, "type": node.type, "name": node.name, "port": port}


def _type(tensor: TensorType) -> Document:
    return {"type": tensor.element.name, "shape": str(tensor.shape)}


def _values(tensor: TensorType) -> list[Any] | None:
    """Return the values of a small tensor, flat, if they are known without running the model."""
    if tensor.value is None or tensor.value.size > SHOWN:
        return None
    return [json_element(v) for v in np.asarray(tensor.value).ravel()]


# -- text output
# --------------------------------------------------------------------------------------------------------


def render_layer(rows: Sequence[Document]) -> None:
    """Show the layers on stdout."""
    for row in rows:
        _render(row)


def _render(row: Document) -> None:
    console = stdout()
    where = f" in {safe(row['body'])}" if row["body"] else ""
    line = f", line {row['line']}" if row["line"] else ""
    console.print(
        f"[bold]{safe(row['name'])}[/]  {safe(row['type'])} {safe(row['opset'])}, id {row['id']}{where}{line}"
    )
    if row["about"]:
        console.print(f"[dim]{safe(row['about'])}[/]")
    if not row["reachable"]:
        console.print("[yellow]no output or state depends on it[/]")
    if row["fault"]:
        console.print(f"[red]{safe(row['fault'])}[/]", soft_wrap=True)
    if row["attributes"]:
        shown = table("attribute", "value", "default")
        for a in row["attributes"]:
            value = safe(a["value"]) if a["given"] else f"[dim]{safe(a['value'])}[/]"
            shown.add_row(safe(a["name"]), value, "required" if a["default"] is None else safe(a["default"]))
        console.print()
        console.print(shown)
    if row["inputs"]:
        shown = table("input", "from", "type", "shape", "declared")
        for k in row["inputs"]:
            shown.add_row(safe(k["name"]), _end_text(k["from"]), k["type"], safe(k["shape"]), safe(k["declared"] or ""))
        console.print()
        console.print(shown)
    if row["outputs"]:
        shown = table("output", "type", "shape", "declared", "goes to", "values")
        for k, o in enumerate(row["outputs"]):
            label = ", ".join(o["names"]) or str(k)
            ends = ", ".join(_end_text(c) for c in o["consumers"])
            cells = [safe(label), o["type"], safe(o["shape"]), safe(o["declared"] or ""), ends]
            shown.add_row(*cells, safe(" ".join(value_text(v) for v in o["values"] or ())))
        console.print()
        console.print(shown)
    if row["macs"] != 0:
        console.print(f"\n{'an unknown number of' if row['macs'] is None else format(row['macs'], ',')} MACs")
    for entry in row["rt_info"]:
        console.print(f"[dim]rt_info {safe(', '.join(f'{k}={plain(v)}' for k, v in entry.items()))}[/]", soft_wrap=True)
    console.print()


def _end_text(end: Document) -> str:
    return f"{safe(end['name'])}:{end['port']} [dim]({safe(end['type'])} {end['id']})[/]"
