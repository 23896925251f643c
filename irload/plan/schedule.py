"""Schedules: the reachable nodes in topological order, with slots for their values and the last use of each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace

from irload.core.tensor import TensorType
from irload.graph import Node, Output
from irload.plan.inferred_types import InferredTypes
from irload.plan.ir.constant import Constant
from irload.plan.tail import Tail
from irload.record import record

__all__ = ["Schedule", "ScheduledNode", "State", "StaticPart", "TailPart"]


State = Mapping[Node, TensorType | None]
"""For each ReadValue of a graph, the type of the value that it reads; None if the variable has no value yet."""


@record()
class ScheduledNode:
    """One node to run. Slots are indices into the table of live values; `last_use` lists slots to release afterwards.

    `known` is true if inference has checked the node on static shapes. Otherwise it is inferred again, at run time,
    from its actual inputs.
    """

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    last_use: tuple[int, ...]
    input_types: tuple[TensorType, ...]
    types: tuple[TensorType, ...]
    known: bool
    short: bool = False
    """True if the type of an input or output is known and a 16-bit float."""
    nbytes: int = 0
    """The bytes of all outputs, if known."""
    inferred: InferredTypes = field(default_factory=InferredTypes, repr=False)
    """The output types of the last inferences at run time."""


@record(eq=False)
class StaticPart:
    """The planned part of a graph: nodes of static types, with its inputs and outputs.

    `parameter_slots` has the slots of `parameters`, `result_slots` the slots of `results`.
    """

    nodes: tuple[ScheduledNode, ...]
    parameters: tuple[Output, ...]
    results: tuple[Output, ...]
    parameter_slots: tuple[int, ...]
    result_slots: tuple[int, ...]
    constants: Mapping[Output, Constant] = field(repr=False)
    types: Mapping[Output, TensorType] = field(repr=False)
    key: Hashable = field(repr=False)
    """Parts with equal keys can share a plan, even if other inputs of the graph differ."""
    carried: tuple[tuple[int, int], ...] = ()
    """(result, parameter) of the back edges if the part is the body of a loop."""


@record(eq=False)
class TailPart:
    """Nodes of a schedule, and the `tail` that they form; None if they run one by one.

    `read`: the slots of its Parameters; `written`: the slots of its Results; `last_use`: the slots of either that no
    later node reads.
    """

    nodes: tuple[ScheduledNode, ...]
    tail: Tail | None
    read: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    last_use: tuple[int, ...] = ()


@record(eq=False)
class Schedule:
    """Nodes over a table of slots. The caller fills the slots `parameters` and reads the slots `results`.

    `constants` maps slots to their values.
    """

    nodes: tuple[ScheduledNode, ...]
    slots: int
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    constants: tuple[tuple[int, Constant], ...] = ()
    folded: Mapping[Output, Constant] = field(default_factory=dict[Output, Constant], repr=False)
    """The same constants by output."""
    types: Mapping[Output, TensorType] = field(default_factory=dict[Output, TensorType], repr=False)
    is_static: bool = False
    """True if every type is inferred, so that memory can be planned. Strings have no fixed size."""
    result_types: tuple[TensorType, ...] = ()
    part: StaticPart | None = None
    """The part to plan: the entire graph if it is static, else the nodes whose shapes do not depend on values."""
    rest: tuple[ScheduledNode, ...] = ()
    """The nodes that run one by one after the part; all if nothing is planned."""
    tails: tuple[TailPart, ...] = ()
    """The remaining nodes, in groups that run one after the other."""
    multiplies: bool = True
    """True if a node may use BLAS."""

    @property
    def entire(self) -> StaticPart | None:
        """The planned part, if it is the entire graph."""
        return self.part if self.is_static and not self.remaining else None

    @property
    def remaining(self) -> tuple[ScheduledNode, ...]:
        """All nodes that are not in the part."""
        return (*self.rest, *(node for tail in self.tails for node in tail.nodes))

    def unplanned(self) -> Schedule:
        """Return the schedule in which all nodes run one by one."""
        return replace(self, part=None, rest=self.nodes, tails=())
