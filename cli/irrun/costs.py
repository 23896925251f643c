"""`irrun inspect --macs` and `--memory`: the cost of running a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irload import Model
from irload.analysis.macs import macs
from irload.analysis.memory import memory
from irrun.document import Document
from irrun.render import counted, safe, size_text, stdout, table
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
    if total and len(document["operations"]) > 1:
        for row in document["operations"]:
            cells = f"{row['macs']:,}", f"{row['macs'] / total:.1%}"
            shown.add_row("", safe(row["type"]), "[dim]all of them[/]", *cells)
    stdout().print(shown)
    flops = f" ({2 * total / 1e9:.4g} GFLOPs)" if total else ""
    stdout().print(f"[bold]{macs_text(total, document['unknown'])}[/]{flops}")
    if document["unknown"]:
        show_not_counted(counted(document["unknown"], "layer"))


def render_memory(document: Document) -> None:
    """Show the estimate on stdout."""
    shown = table("memory", "bytes", right=("bytes",))
    at = document["at"]
    where = f", at {safe(at['type'])} '{safe(at['name'])}' (id {at['id']})" if at else ""
    shown.add_row("constants", size_text(document["constants"]))
    shown.add_row(f"activations at their peak{where}", _at_least(document["peak"], document["unknown"]))
    shown.add_row("all activations together", _at_least(document["activations"], document["unknown"]))
    stdout().print(shown)
    if document["unknown"]:
        show_not_counted(counted(document["unknown"], "tensor"))


def macs_text(total: int, unknown: int) -> str:
    """Format a number of MACs that excludes `unknown` layers of dynamic shape."""
    if unknown and not total:
        return "unknown number of MACs"
    return f"{'at least ' if unknown else ''}{counted(total, 'MAC')}"


def show_not_counted(subject: str) -> None:
    """Show which items the counts exclude, and the option that includes them."""
    stdout().print(
        f"[yellow]not counted, because shapes are dynamic: {subject}.[/] Set input sizes with --shape", soft_wrap=True
    )


def _at_least(size: int, unknown: int) -> str:
    """Format a size that excludes `unknown` tensors of dynamic shape."""
    if unknown and not size:
        return "unknown"
    return f"{'at least ' if unknown else ''}{size_text(size)}"
