"""The report of `irrun infer` as JSON or as text: each layer's outputs as inferred and as declared."""

from __future__ import annotations

from pathlib import Path

from irload.graph import Declared
from irload.validation.declared import compare, declares_static
from irrun.document import Document
from irrun.render import safe, show_warnings, stdout, table
from irrun.survey import Layer, Survey, is_unknown, layers_of, warnings_of

MARKS = {"same": "", "differs": "[red]≠[/]", "failed": "[red]✗[/]", "unknown": "[yellow]?[/]"}


def report(path: Path, surveyed: Survey) -> Document:
    """Return the document of schemas/infer.schema.json."""
    static = declares_static(surveyed.model)
    layers = [_layer(layer, surveyed, static) for layer in layers_of(surveyed.model)]
    states = [layer["state"] for layer in layers]
    return {
        "model": str(path),
        "agrees": not (surveyed.faults or "differs" in states or "failed" in states),
        "layer_count": len(layers),
        "differing": states.count("differs"),
        "failing": states.count("failed"),
        "unknown": states.count("unknown"),
        "layers": layers,
        "warnings": warnings_of(surveyed),
    }


def _layer(layer: Layer, surveyed: Survey, static: bool) -> Document:
    node = layer.node
    outputs = [
        {
            "inferred": str(output.type),
            "declared": _declared(output.declared),
            "differs": bool(compare(output, static_file=static)),
        }
        for output in node.outputs
    ]
    fault = surveyed.failed.get(node)
    if fault is not None:
        state = "failed"
    elif is_unknown(node):
        state = "unknown"
    else:
        state = "differs" if any(o["differs"] for o in outputs) else "same"
    return {
        "id": node.id,
        "body": layer.path,
        "type": node.type,
        "name": node.name,
        "line": node.line,
        "state": state,
        "outputs": outputs,
        "error": None if fault is None else fault.message,
    }


def _declared(declared: Declared | None) -> str | None:
    """Return the declared type and shape; only the type if the file declares no dims."""
    if declared is None:
        return None
    element = declared.element or "?"
    return str(element) if declared.dims is None else f"{element}{declared.shape}"


# -- text output
# --------------------------------------------------------------------------------------------------------


def render(document: Document, *, differences_only: bool) -> None:
    """Show a report on stdout."""
    console = stdout()
    shown = table("", "id", "operation", "name", "inferred", "declared", right=("id",))
    for layer in document["layers"]:
        if differences_only and layer["state"] not in ("differs", "failed"):
            continue
        name = f"{layer['body']}/{layer['name']}" if layer["body"] else layer["name"]
        cells = (MARKS[layer["state"]], str(layer["id"]), safe(layer["type"]), safe(name))
        for k, output in enumerate(layer["outputs"] or [None]):
            lead = cells if k == 0 else ("", "", "", "")
            if output is not None:
                ends = (safe(output["inferred"]), safe(output["declared"] or ""))
                shown.add_row(*lead, *(f"[red]{e}[/]" for e in ends) if output["differs"] else ends)
            elif layer["state"] != "same" or not differences_only:
                shown.add_row(*lead, "", "")
        if layer["error"] is not None:
            shown.add_row("", "", "", "", f"[red]{safe(layer['error'])}[/]", "")
    if shown.row_count:
        console.print(shown)
        console.print()
    show_warnings(document["warnings"])
    console.print(_verdict(document))


def _verdict(document: Document) -> str:
    parts = [f"{document['layer_count']} layers"]
    parts += [f"[red]{document[key]} {key}[/]" for key in ("differing", "failing") if document[key]]
    parts += [f"[yellow]{document['unknown']} unknown[/]"] if document["unknown"] else []
    return ", ".join(parts) + (": all as declared" if document["agrees"] and not document["unknown"] else "")
