"""A model as a notebook shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from irload.graph import Model, Port
from irload.memory import constant_bytes

__all__ = ["model_html"]


def model_html(model: Model) -> str:
    """Inputs, outputs and operations as HTML tables. All text from the model is escaped."""
    count = Counter(n.type for g in model.walk() for n in g.nodes)
    size = f"{constant_bytes(model) / 1e6:,.1f} MB"
    name = escape(model.name or model.file or "model")
    parts = [
        f"<b>{name}</b>: IR version {model.ir_version}, {count.total()} layers, {size} of constants",
        _ports("input", model.inputs),
        _ports("output", model.outputs),
        _table(("operation", "layers"), [(t, str(n)) for t, n in count.most_common()]),
    ]
    return "".join(f"<p>{part}</p>" if k == 0 else part for k, part in enumerate(parts))


def _ports(kind: str, ports: Sequence[Port]) -> str:
    rows = [(", ".join(sorted(p.names)), p.element_type.name, str(p.partial_shape)) for p in ports]
    return _table((kind, "type", "shape"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
