"""A mutant: a model as an XML tree that is changed, then as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lxml import etree

from tests.fuzz.bases import Base
from tests.harness.case import Array, Random
from tests.harness.material import pick

Element = Any
BODIES = ("body", "then_body", "else_body")


@dataclass
class Mutant:
    """A model under mutation, with a private random generator. `done` lists the changes."""

    base: Base
    rng: Random
    root: Element = None
    blob: bytearray | None = field(default_factory=bytearray)
    inputs: list[Array] = field(default_factory=list[Array])
    done: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.root = etree.fromstring(self.base.xml)
        self.blob = bytearray(self.base.blob)
        self.inputs = list(self.base.inputs)

    def note(self, words: str) -> bool:
        """Record a change. Returns True, the result of a mutation that applied."""
        self.done.append(words[:200])
        return True

    def all(self, *tags: str) -> list[Element]:
        """Every element with one of these tags, bodies included."""
        return list(self.root.iter(*tags))

    def one(self, *tags: str) -> Element:
        """A random element with one of these tags, or None."""
        return self.of(self.all(*tags))

    def of(self, options: Sequence[Any]) -> Any:
        """A random option, or None if there are no options."""
        return pick(self.rng, options) if options else None

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < share)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def graph(self) -> Element:
        """A random graph: the net or a body; None if no graph is left."""
        return self.of([g for g in (self.root, *self.all(*BODIES)) if g.find("layers") is not None])

    def text(self) -> bytes:
        """The current XML."""
        return etree.tostring(self.root, xml_declaration=True, encoding="utf-8")


def generator(seed: int, index: int) -> Random:
    """The random numbers of one mutant."""
    return np.random.default_rng([seed, index])


def layers(graph: Element) -> list[Element]:
    """The layers of a graph, without the layers of its bodies."""
    element = graph.find("layers")
    return [] if element is None else element.findall("layer")


def edges(graph: Element) -> list[Element]:
    """The edges of a graph."""
    element = graph.find("edges")
    return [] if element is None else element.findall("edge")


def layer_of(element: Element) -> Element:
    """The layer around an element, or None."""
    while element is not None and element.tag != "layer":
        element = element.getparent()
    return element


def layer_with(graph: Element, id: str) -> Element:
    """The layer of a graph with that id, or None."""
    return next((x for x in layers(graph) if x.get("id") == id), None)


def copied(element: Element) -> Element:
    """A copy of a subtree."""
    return deepcopy(element)
