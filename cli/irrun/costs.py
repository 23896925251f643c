"""`irrun inspect --macs` and `--memory`: the cost of running a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irload import Model
from irload.analysis.macs import macs
from irload.analysis.memory import memory
from irrun.document import Document
from irrun.render import safe, size_text, stdout, table
from irrun.survey import Layer


def macs_report(chosen: Sequence[Layer]) -> Document:
    """Count multiply-accumulates of the chosen layers of the outer graph; a layer with bodies includes them."""
    layers: list[Document] = []
    by_operation: Counter[str] = Counter()
    for layer in chosen:
        count = 0 if layer.path or not layer.node.reachable else macs(layer.node)
        if count != 0:
            node = layer.node
            layers.append({"id": node.id, "type": node.type, "name": node.name, "macs": count})
            by_operation[node.type] += count or 0
    return {
        "total": by_operation.total(),
        "unknown": sum(row["macs"] is None for row in layers),
        "operations": [{"type": t, "macs": n} for t, n in by_operation.most_common()],
        "layers": layers,
    }


def memory_report(model: Model) -> Document:
    """Return the bytes of constants, and of activations by their lifetimes."""
    estimate = memory(model)
    at = None if estimate.at is None else {"id": estimate.at.id, "type": estimate.at.type, "name": estimate.at.name}
    return {
        "constants": estimate.constants,
        "activations": estimate.activations,
        "peak": estimate.peak,
        "at": at,
        "unknown": estimate.unknown,
    }


def render_macs(document: Document) -> None:
    """Show the counts on stdout."""
    shown = table("id", "operation", "name", "MACs", "share", right=("id", "MACs", "share"))
    total = document["total"]
    for row in document["layers"]:
        count = "?" if row["macs"] is None else f"{row['macs']:,}"
        share = f"{row['macs'] / total:.1%}" if row["macs"] and total else ""
        shown.add_row(str(row["id"]), safe(row["type"]), safe(row["name"]), count, share)
    for row in document["operations"] if len(document["operations"]) > 1 else ():
        shown.add_row(
            "", safe(row["type"]), "[dim]all of them[/]", f"{row['macs']:,}", f"{row['macs'] / (total or 1):.1%}"
        )
    stdout().print(shown)
    stdout().print(f"[bold]{total:,} MACs[/] ({2 * total / 1e9:.4g} GFLOPs)")
    if document["unknown"]:
        _render_unknown(f"{document['unknown']} layers")


def render_memory(document: Document) -> None:
    """Show the estimate on stdout."""
    shown = table("memory", "bytes", right=("bytes",))
    at = document["at"]
    where = f", at {safe(at['type'])} '{safe(at['name'])}' (id {at['id']})" if at else ""
    shown.add_row("constants", size_text(document["constants"]))
    shown.add_row(f"activations at their peak{where}", size_text(document["peak"]))
    shown.add_row("all activations together", size_text(document["activations"]))
    stdout().print(shown)
    if document["unknown"]:
        _render_unknown(f"{document['unknown']} tensors")


def _render_unknown(subject: str) -> None:
    stdout().print(f"[yellow]not counted, as their shapes are dynamic: {subject}.[/] --shape gives the inputs sizes")
