"""`irrun inspect --tree`: the bodies of a model, and how each connects to the layer that runs it."""

from __future__ import annotations

from typing import cast

from rich.tree import Tree

from irload.core.subgraph import PortMap, Subgraph
from irload.graph import Graph, Node
from irrun.document import Document
from irrun.render import safe, stdout


def tree_report(graph: Graph) -> list[Document]:
    """Return the layers that have bodies, with the layers of their bodies nested."""
    rows: dict[Node, Document] = {}
    for node, name, body in graph.subgraphs():
        row = {"id": node.id, "type": node.type, "name": node.name, "bodies": list[Document]()}
        rows.setdefault(node, row)["bodies"].append(
            {"body": name, "layer_count": len(body.nodes), **_wiring(node, name, body), "inside": tree_report(body)}
        )
    return list(rows.values())


def _wiring(node: Node, name: str, body: Graph) -> Document:
    subgraph = cast(Subgraph, node.op.attributes[name])
    merged = {parameter: result for result, parameter in subgraph.back_edges}
    inputs = [
        {
            "port": line.port,
            "parameter": body.parameters[line.inner].name,
            "how": _input_kind(line, line.inner in merged),
        }
        for line in subgraph.inputs
    ]
    outputs = [
        {"port": line.port, "result": body.results[line.inner].name, "how": _output_kind(line)}
        for line in subgraph.outputs
    ]
    back = [{"result": body.results[r].name, "parameter": body.parameters[p].name} for p, r in merged.items()]
    return {"inputs": inputs, "outputs": outputs, "back_edges": back}


def _input_kind(line: PortMap, merged: bool) -> str:
    if line.purpose:
        return line.purpose
    if line.axis is not None:
        return _parts("sliced", line)
    return "merged" if merged else "invariant"


def _output_kind(line: PortMap) -> str:
    return line.purpose or (_parts("concatenated", line) if line.axis is not None else "last")


def _parts(how: str, line: PortMap) -> str:
    return f"{how} along {line.axis} from {line.start} to {line.end} by {line.stride}"


def render_tree(name: str, rows: list[Document]) -> None:
    """Show the bodies on stdout."""
    tree = Tree(f"[bold]{safe(name)}[/]" + ("" if rows else ": no layer has a body"))
    _grow(tree, rows)
    stdout().print(tree)


def _grow(tree: Tree, rows: list[Document]) -> None:
    for row in rows:
        branch = tree.add(f"{safe(row['type'])} [bold]{safe(row['name'])}[/] (id {row['id']})")
        for body in row["bodies"]:
            below = branch.add(f"{body['body']}: {body['layer_count']} layers")
            for line in body["inputs"]:
                port = "–" if line["port"] is None else f"input {line['port']}"
                below.add(f"{port} → {safe(line['parameter'])}  [dim]{line['how']}[/]")
            for line in body["outputs"]:
                port = "–" if line["port"] is None else f"output {line['port']}"
                below.add(f"{safe(line['result'])} → {port}  [dim]{line['how']}[/]")
            for line in body["back_edges"]:
                below.add(f"{safe(line['result'])} ⟲ {safe(line['parameter'])}  [dim]back edge[/]")
            _grow(below, body["inside"])
