"""A graph as HTML for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from irload.graph import Graph, Port

__all__ = ["graph_html"]


def graph_html(graph: Graph, name: str, facts: Sequence[str], inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Name and facts in one line, then inputs, outputs and operations as tables. All text is escaped."""
    count = Counter(n.type for g in graph.walk() for n in g.nodes)
    line = ", ".join(map(escape, [*facts[:1], f"{count.total()} layers", *facts[1:]]))
    parts = [
        f"<p><b>{escape(name)}</b>: {line}</p>",
        _ports("input", inputs),
        _ports("output", outputs),
        _table(("operation", "layers"), [(t, str(n)) for t, n in count.most_common()]),
    ]
    return "".join(parts)


def _ports(kind: str, ports: Sequence[Port]) -> str:
    rows = [(", ".join(sorted(p.names)), p.element_type.name, str(p.partial_shape)) for p in ports]
    return _table((kind, "type", "shape"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
