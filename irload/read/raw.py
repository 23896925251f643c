"""The IR file as it stands: layers, ports and edges, not yet a graph. Knows XML's words, knows no operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irload.record import record


@dataclass(slots=True)
class RawPort:
    """A port of a layer. `dims` is None where the port lists none."""

    id: int
    precision: str | None
    dims: tuple[int, ...] | None
    names: tuple[str, ...] = ()
    line: int | None = None
    rt_info: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(slots=True)
class RawLayer:
    """A layer element. `bodies` and `maps` are keyed by tag: `body`, `then_body`; `port_map`, `back_edges`."""

    id: int
    name: str
    type: str
    version: str
    line: int | None
    data: dict[str, str] = field(default_factory=dict[str, str])
    inputs: list[RawPort] = field(default_factory=list[RawPort])
    outputs: list[RawPort] = field(default_factory=list[RawPort])
    output_names: tuple[str, ...] | None = None
    rt_info: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    bodies: dict[str, RawGraph] = field(default_factory=dict[str, "RawGraph"])
    maps: dict[str, list[dict[str, str]]] = field(default_factory=dict[str, list[dict[str, str]]])


@dataclass(slots=True)
class RawEdge:
    """An edge: from an output port of one layer to an input port of another, all by id."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int | None = None


@record(frozen=False)
class RawGraph:
    """The layers and edges of the net or of one body."""

    layers: list[RawLayer] = field(default_factory=list[RawLayer])
    edges: list[RawEdge] = field(default_factory=list[RawEdge])


@record(frozen=False)
class RawMean:
    """One channel of an old `pre-process`: a mean value, or a mean image at an offset of the .bin."""

    value: float | None
    offset: int = 0
    size: int = 0


@record(frozen=False)
class RawPreprocess:
    """The old `pre-process` element: means to subtract from the input that a Parameter takes."""

    layer_name: str
    means: list[RawMean] = field(default_factory=list[RawMean])
    line: int | None = None


@record(frozen=False)
class RawNet:
    """The whole file."""

    name: str = ""
    version: int = 11
    graph: RawGraph = field(default_factory=RawGraph)
    rt_info: dict[str, Any] = field(default_factory=dict[str, Any])
    preprocess: RawPreprocess | None = None
    warnings: list[str] = field(default_factory=list[str])
