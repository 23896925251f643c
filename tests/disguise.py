"""An equivalent XML of a model with other names, ids and order."""

from __future__ import annotations

from typing import Any

import numpy as np

BODIES = ("body", "then_body", "else_body")


def disguise(net: Any, rng: np.random.Generator) -> dict[str, str]:
    """Rename, reorder and renumber all layers of a net element in place, bodies included.

    Returns a mapping from new names to old ones.
    """
    names: dict[str, str] = {}
    for layers in list(net.iter("layers")):
        graph = layers.getparent()
        elements = [e for e in layers if e.tag == "layer"]
        ids = dict(zip((e.get("id") for e in elements), map(str, rng.permutation(len(elements))), strict=True))
        for element in elements:
            new = f"n{ids[element.get('id')]}_{int(rng.integers(1 << 20))}"
            names[new] = element.get("name")
            element.set("id", ids[element.get("id")])
            element.set("name", new)
            for port in element.iterfind("output/port"):
                if port.get("names"):
                    port.set("names", f"{new}.{port.get('id')}")
            if element.get("output_names"):
                element.set("output_names", new)
            layers.remove(element)
        layers.extend(elements[int(k)] for k in rng.permutation(len(elements)))
        edges = graph.find("edges")
        if edges is not None:
            shuffled = list(edges)
            for edge in shuffled:
                for end in ("from-layer", "to-layer"):
                    edge.set(end, ids[edge.get(end)])
                edges.remove(edge)
            edges.extend(shuffled[int(k)] for k in rng.permutation(len(shuffled)))
        if graph.tag in BODIES:
            _renumber_ports(graph, ids)
    return names


def _renumber_ports(body: Any, ids: dict[str, str]) -> None:
    """Update the port map and the back edges of a body to its new ids."""
    prefix = body.tag.removesuffix("body")
    owner = body.getparent()
    for line in owner.iterfind(f"{prefix}port_map/*"):
        line.set("internal_layer_id", ids[line.get("internal_layer_id")])
    for edge in owner.iterfind(f"{prefix}back_edges/*"):
        for end in ("from-layer", "to-layer"):
            edge.set(end, ids[edge.get(end)])
