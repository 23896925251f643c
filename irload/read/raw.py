"""The raw contents of an IR file: layers, ports and edges, independent of operations, before they form a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from irload.core.tensor import Array
from irload.read.weights import Weights
from irload.record import record


@dataclass(slots=True)
class RawPort:
    """A port of a layer. `dims` is None if the port lists none."""

    id: int
    precision: str | None
    dims: tuple[int, ...] | None
    names: tuple[str, ...]
    line: int | None
    rt_info: list[dict[str, Any]]
    is_declared: bool = True
    """False for a port that the reader has added."""


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
    values: Callable[[Weights], Array] | None = None
    """The values of a Const that is not in the .bin file; they may depend on the weights."""
    precision: str | None = None
    """IR v2 to v7: the precision of the layer."""
    blobs: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """IR v2 to v7: the offset and the size of the weights in the .bin file, by name."""
    is_faulty: bool = False
    """IR v2 to v7: True if a layer of known type could not be rewritten; the reader has reported its fault."""


@dataclass(slots=True)
class RawEdge:
    """An edge: from an output port of one layer to an input port of another, all by id."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int | None


@record()
class RawGraph:
    """The layers and edges of the net or of one body."""

    layers: list[RawLayer] = field(default_factory=list[RawLayer])
    edges: list[RawEdge] = field(default_factory=list[RawEdge])


RawMean = float | tuple[int, int]
"""One channel of a legacy `pre-process`: a mean value, or the offset and the size of a mean image in the .bin file."""


@record()
class RawPreprocess:
    """The legacy `pre-process` element: means to subtract from a model input."""

    layer_name: str
    means: list[RawMean]
    line: int | None


@record(frozen=False)
class RawNet:
    """The contents of a file."""

    name: str = ""
    # The reader sets it at <net>, before any element that depends on it.
    version: int = 11  # pragma: no mutate
    graph: RawGraph = field(default_factory=RawGraph)
    rt_info: dict[str, Any] = field(default_factory=dict[str, Any])
    preprocess: RawPreprocess | None = None
    warnings: list[str] = field(default_factory=list[str])
    rewritten: list[str] = field(default_factory=list[str])
    """The layers of IR v2 to v7 that became other operations, a line each."""

    @property
    def is_v10(self) -> bool:
        """Whether the file is IR v10 or older, with neither tensor names nor runtime attributes of layers and ports."""
        return self.version <= 10

    @property
    def is_legacy(self) -> bool:
        """Whether the file is IR v2 to v7, whose layers are rewritten."""
        return self.version < 10
