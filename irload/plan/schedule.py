"""Schedules: the reachable nodes in topological order, with slots for their values and when each is last used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from math import prod

from irload.core.shape import ARRAY_AXES
from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import LimitExceeded
from irload.graph import Graph, Node, Output, UnknownOp
from irload.inference import Inference, Inferred
from irload.macs import macs
from irload.memory import Lifetimes
from irload.plan.folding import Folding, stored
from irload.plan.ir.constant import SMALL, Constant
from irload.plan.wide import is_short
from irload.record import record
from irload.safety import DEFAULT, Limits

__all__ = ["Part", "Schedule", "ScheduledNode", "schedule_graph"]


@record()
class ScheduledNode:
    """One node to run. Slots are positions in the table of live values; `last_use` lists those that end here.

    `known` is true when inference has already checked the node on static shapes; otherwise it is inferred again on the
    values it is given.
    """

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    last_use: tuple[int, ...]
    input_types: tuple[TensorType, ...]
    types: tuple[TensorType, ...]
    known: bool
    short: bool = False
    """True where a float of 16 bits goes in or out, as far as is known."""
    nbytes: int = 0
    """Those of the outputs together, where they are known."""
    inferred: dict[Hashable, tuple[TensorType, ...]] = field(
        default_factory=dict[Hashable, tuple[TensorType, ...]], repr=False
    )
    """What a run inferred last, by what it inferred that from."""


@record(eq=False)
class Part:
    """What a plan runs of a graph: nodes of static types, from outputs that it is given to those that it gives.

    `taken` and `given` are the slots of the two.
    """

    nodes: tuple[ScheduledNode, ...]
    parameters: tuple[Output, ...]
    results: tuple[Output, ...]
    taken: tuple[int, ...]
    given: tuple[int, ...]
    constants: Mapping[Output, Constant] = field(repr=False)
    types: Mapping[Output, TensorType] = field(repr=False)
    key: Hashable = field(repr=False)
    """The same for parts that one plan can run, although what else the graph was given may differ."""


@record(eq=False)
class Schedule:
    """Nodes over a table of slots, of which `parameters` are filled by the caller and `results` read by it.

    `constants` are slots and what fills them.
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
    """True when inference knows every type, so that memory can be planned. Strings have no fixed size."""
    result_types: tuple[TensorType, ...] = ()
    part: Part | None = None
    """What can be planned and is worth it: all where that is static, else what does not depend on values."""
    rest: tuple[ScheduledNode, ...] = ()
    """The nodes that are left then, all where nothing is planned."""


def require_size(tensor: TensorType, limits: Limits) -> None:
    """Raise LimitExceeded when the tensor, be it as small as it can, would take more bytes than the limits allow."""
    size = tensor.shape.size.lo * tensor.element.dtype.itemsize
    if (
        size == 0
        and tensor.shape.is_static
        and prod(max(n, 1) for n in tensor.shape.static) * tensor.element.dtype.itemsize >= 1 << 63
    ):
        raise LimitExceeded(f"the output {tensor} is more than NumPy holds, though it is empty", limit="tensor_bytes")
    if size > limits.tensor_bytes:
        limits.require("tensor_bytes", size, f"the output {tensor} is too large")


def schedule_graph(
    graph: Graph,
    given: Sequence[TensorType],
    folding: Folding | None = None,
    limits: Limits = DEFAULT,
    inferred: Inferred | None = None,
    *,
    plan: bool = True,
) -> Schedule:
    """The schedule of a graph whose Parameters get these types. With `folding`, what is constant is computed now.

    Without `plan` none of its nodes are for a plan.

    `inferred`: an earlier inference under the same limits, which is not repeated where it holds for these types.

    Raises what inference raises, and LimitExceeded where a tensor, or what must be in memory at once, would pass a
    limit. Nothing is loaded or computed before that.
    """
    if inferred is None or not inferred.holds_for(graph, given):
        inference = Inference(graph.file, limits=limits)
        inference.graph(graph, given)
        types, counts = inference.types, inference.counts
    else:
        types, counts = inferred.types, inferred.counts
    slot: dict[Output, int] = {}
    nodes = [n for n in graph.nodes if n.reachable and n.type not in ("Parameter", "Result")]
    constant_bytes = _require_sizes(graph, nodes, types, limits)
    returned = [r.inputs[0] for r in graph.results]
    if folding is not None:
        constants, gone = folding.fold(nodes, returned, types, limits)
        nodes = [n for n in nodes if n not in gone]
    else:
        taken = {*returned, *(i for n in nodes for i in n.inputs)}
        constants = {n.outputs[0]: stored(n) for n in nodes if n.type == "Const" and n.outputs[0] in taken}
    nodes = [n for n in nodes if n.type != "Const"]
    for output in (*constants, *(o for node in (*graph.parameters, *nodes) for o in node.outputs)):
        slot[output] = len(slot)
    results = tuple(slot[o] for o in returned)
    kept = set(results)
    last: dict[int, int] = {}
    for k, node in enumerate(nodes):
        last.update({slot[source]: k for source in node.inputs})
        last.update({slot[o]: k for o in node.outputs if slot[o] not in last})
    ends: list[list[int]] = [[] for _ in nodes]
    for s, k in last.items():
        if s not in kept and s >= len(constants):
            ends[k].append(s)
    scheduled: list[ScheduledNode] = []
    # A file may list more ports than the operation has, or less: inferred at the step, so the schedule is interpreted.
    for k, node in enumerate(nodes):
        before = tuple(types.get(i, UNKNOWN).without_value() for i in node.inputs)
        after = tuple(types.get(o, UNKNOWN).without_value() for o in node.outputs)
        scheduled.append(
            ScheduledNode(
                node,
                tuple(slot[i] for i in node.inputs),
                tuple(slot[o] for o in node.outputs),
                tuple(ends[k]),
                before,
                after,
                all(t.is_static for t in (*before, *after)) and counts[node] == len(node.outputs),
                any(map(is_short, (*before, *after))),
                sum(t.nbytes or 0 for t in after),
            )
        )
    is_static = all(s.known and all(_is_flat(t) for t in (*s.input_types, *s.types)) for s in scheduled) and all(
        _is_flat(types.get(o, UNKNOWN)) for o in (*(p.outputs[0] for p in graph.parameters), *returned)
    )
    if folding is None or not is_static:  # the memory of a plan is counted exactly when it is placed
        _require_peak(graph, types, constant_bytes, limits)
    part, rest = None, scheduled
    if plan and folding is not None:
        part = _part(graph, scheduled, slot, constants, types, is_static)
    if part is not None:
        own = {s.node for s in part.nodes}
        rest = [s for s in scheduled if s.node not in own]
    return Schedule(
        tuple(scheduled),
        len(slot),
        tuple(slot[p.outputs[0]] for p in graph.parameters),
        results,
        tuple((slot[o], c) for o, c in constants.items()),
        constants,
        types,
        is_static,
        tuple(types.get(o, UNKNOWN).without_value() for o in returned),
        part,
        tuple(rest),
    )


def _part(
    graph: Graph,
    nodes: Sequence[ScheduledNode],
    slot: Mapping[Output, int],
    constants: Mapping[Output, Constant],
    types: Mapping[Output, TensorType],
    is_static: bool,
) -> Part | None:
    """What to plan: everything, or what leads to nodes of types that are not known, where that multiplies matrices."""
    taken, left = [p.outputs[0] for p in graph.parameters], [r.inputs[0] for r in graph.results]
    planned, key = nodes, object()  # a plan of everything serves its own schedule alone
    if not is_static:
        planned = _leading(graph, nodes, constants, types)
        if all(macs(s.node) == 0 for s in planned):
            return None
        needed = {i for s in planned for i in s.node.inputs}
        taken, left = [o for o in taken if o in needed], _left(planned, nodes, left)
        key = _key(planned, taken, left, constants, types)
    slots = [tuple(slot[o] for o in outputs) for outputs in (taken, left)]
    return Part(tuple(planned), tuple(taken), tuple(left), slots[0], slots[1], constants, types, key)


def _leading(
    graph: Graph, nodes: Sequence[ScheduledNode], constants: Iterable[Output], types: Mapping[Output, TensorType]
) -> list[ScheduledNode]:
    """The nodes of types that are known and do not follow one of others."""
    made = {*constants, *(p.outputs[0] for p in graph.parameters)}
    made = {o for o in made if _is_flat(types.get(o, UNKNOWN))}
    found: list[ScheduledNode] = []
    for scheduled in nodes:
        flat = all(_is_flat(t) for t in (*scheduled.input_types, *scheduled.types))
        if scheduled.known and flat and made.issuperset(scheduled.node.inputs):
            made.update(scheduled.node.outputs)
            found.append(scheduled)
    return found


def _key(
    planned: Sequence[ScheduledNode],
    taken: Sequence[Output],
    left: Sequence[Output],
    constants: Mapping[Output, Constant],
    types: Mapping[Output, TensorType],
) -> Hashable:
    """All that the plan of a part depends on. Constants may follow from shapes of anything."""
    used = dict.fromkeys(i for s in planned for i in s.node.inputs if i in constants)
    numbers = tuple(c.array.tobytes() if c.held and c.nbytes <= SMALL else c for c in map(constants.__getitem__, used))
    given = tuple((o, types[o].element.name, types[o].shape) for o in taken)
    return given, tuple(left), tuple(s.node for s in planned), numbers


def _left(planned: Sequence[ScheduledNode], nodes: Sequence[ScheduledNode], returned: Sequence[Output]) -> list[Output]:
    """What the planned nodes make that others take, or the graph returns."""
    own = {s.node for s in planned}
    wanted = {*returned, *(i for s in nodes if s.node not in own for i in s.node.inputs)}
    return [o for s in planned for o in s.node.outputs if o in wanted]


def _require_sizes(graph: Graph, nodes: Sequence[Node], types: Mapping[Output, TensorType], limits: Limits) -> int:
    """Check every tensor, and the constants together. Returns the bytes of these; what several share counts once."""
    spans: dict[tuple[int, int, str, int], int] = {}
    for node in nodes:
        for output in node.outputs:
            try:
                require_size(types.get(output, UNKNOWN), limits)
            except LimitExceeded as error:
                raise error.at(node.where(graph.file)) from None
        if node.type == "Const" and not isinstance(node.op, UnknownOp):
            attributes = node.op.attributes
            size = types[node.outputs[0]].nbytes or 0
            spans[attributes["offset"], attributes["size"], attributes["element_type"].name, size] = size
    found = sum(spans.values())
    limits.require("peak_bytes", found, "the constants are too large")
    return found


def _require_peak(graph: Graph, types: Mapping[Output, TensorType], constant_bytes: int, limits: Limits) -> None:
    found = Lifetimes(graph, lambda o: types.get(o, UNKNOWN))
    try:
        limits.require("peak_bytes", constant_bytes + found.peak, "what is alive when this layer runs is too large")
    except LimitExceeded as error:
        raise error.at(found.at.where(graph.file)) if found.at is not None else error from None


def _is_flat(tensor: TensorType) -> bool:
    """True when memory can be planned for a tensor."""
    return tensor.is_static and tensor.element.dtype != object and len(tensor.shape) <= ARRAY_AXES
