"""Bodies of control flow as an operation sees them: a graph that the context runs, and the wiring of its ports.

The reader converts the layer ids of port_map and back_edges to positions: parameter k and result k of the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from irload.core.shape import normalize_axis
from irload.core.tensor import UNKNOWN, TensorType
from irload.record import record


class Body(Protocol):
    """A graph; operations only pass it to their context."""

    @property
    def parameters(self) -> Sequence[Any]:
        """The Parameter nodes, in file order."""
        ...

    @property
    def results(self) -> Sequence[Any]:
        """The Result nodes, in file order."""
        ...


@record()
class PortMap:
    """One line of a port_map. `port` is the position among the operation's inputs or outputs, None for external id −1.

    `inner` is the position among the body's parameters (inputs) or results (outputs). With an `axis`, the tensor is
    sliced into, or concatenated from, parts of `part_size` along it, from `start` to `end` by `stride`.
    """

    port: int | None
    inner: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""

    @property
    def outer(self) -> int:
        """The position of the port, −1 for None."""
        return -1 if self.port is None else self.port

    def along(self, rank: int) -> int:
        """The axis, counted from the front, in a tensor of this rank. Raises ShapeMismatch if it is out of range."""
        return normalize_axis(self.axis or 0, rank)


@record()
class Subgraph:
    """A body and its wiring. `back_edges` are pairs (result position, parameter position)."""

    body: Body
    inputs: tuple[PortMap, ...]
    outputs: tuple[PortMap, ...]
    back_edges: tuple[tuple[int, int], ...] = ()


@record()
class Accumulator:
    """A value that each iteration only extends, by a part along `axis`, which may be negative.

    `result` and `parameter` are the ends of its back edge: positions among the results and parameters of the body. The
    parts are appended to the initial value; with `writes`, they replace consecutive positions of it, from the initial
    value of the parameter `counter` on, by default from 0. With `is_slice`, parts have the axis, else they lack it.
    With `broadcasts`, the initial value broadcasts to the shape of the parts along the other axes.
    """

    result: int
    parameter: int
    axis: int
    writes: bool = False
    is_slice: bool = True
    broadcasts: bool = False
    counter: int | None = None


def declared(body: Body, index: int) -> TensorType:
    """The declared type of a Parameter of the body."""
    infer = getattr(body.parameters[index].op, "infer", None)
    return UNKNOWN if infer is None else infer()  # the type is unknown for a Parameter of an unknown opset
