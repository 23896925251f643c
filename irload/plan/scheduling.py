"""Orders the nodes of a graph, folds its constants and selects the parts to plan: graph and input types → Schedule."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from irload.analysis.macs import macs
from irload.core.op import multiplies
from irload.core.shape import ARRAY_AXES, shape_of
from irload.core.tensor import UNKNOWN, TensorType
from irload.graph import Graph, Node, Output, ancestors
from irload.inference import Inference, Inferred
from irload.plan.accumulators import LoopBody
from irload.plan.experts.merging import with_experts
from irload.plan.folding import Folding, stored
from irload.plan.ir.constant import SMALL, Constant
from irload.plan.islands import islands
from irload.plan.schedule import Schedule, ScheduledNode, State, StaticPart, TailPart
from irload.plan.size_limits import require_peak, require_sizes
from irload.plan.tail import fewest_planned, tail_of
from irload.plan.wide import is_short
from irload.safety.limits import DEFAULT, Limits

__all__ = ["schedule_graph"]


def schedule_graph(
    graph: Graph,
    given: Sequence[TensorType],
    folding: Folding | None = None,
    limits: Limits = DEFAULT,
    inferred: Inferred | None = None,
    *,
    plan: bool = True,
    state: State | None = None,
) -> Schedule:
    """Return the schedule of a graph for Parameters of these types. With `folding`, constant nodes are computed now.

    Without `plan`, all nodes are interpreted. With `state`, the values of variables are further inputs, after the
    Parameters, so that they can be planned; without it, ReadValue is a node like any other.

    `inferred`: an earlier inference under the same limits, reused as far as it is valid for these types.

    Raises the errors of inference, and LimitExceeded if a tensor, or the values alive at the same time, exceed a
    limit, before anything is loaded or computed.
    """
    filled = [] if state is None else [node for node, tensor in state.items() if tensor is not None]
    if state or inferred is None or not inferred.holds_for(graph, given):
        inference = Inference(graph.file, limits=limits, known=inferred, runs=True)
        inference.graph(graph, given, state)
        types, counts = inference.types, inference.counts
    else:
        types, counts = inferred.types, inferred.counts
    slot: dict[Output, int] = {}
    nodes = [n for n in _reached(graph, filled) if n.type not in ("Parameter", "Result")]
    parameters = [*(p.outputs[0] for p in graph.parameters), *(n.outputs[0] for n in filled)]
    valued = {o: t.value for o, t in zip(parameters, given, strict=False) if t.value is not None}
    if state is not None:
        read = {*(i for n in nodes for i in n.inputs), *(r.inputs[0] for r in graph.results)}
        nodes = _assigning_last([n for n in nodes if not (_keeps_value(n, filled) and read.isdisjoint(n.outputs))])
    constant_bytes = require_sizes(graph, nodes, types, limits)
    returned = [r.inputs[0] for r in graph.results]
    if folding is not None:
        constants, gone = folding.fold(nodes, returned, types, limits)
        nodes = [n for n in nodes if n not in gone]
        types = _with_shapes(types, constants)
    else:
        wanted = {*returned, *(i for n in nodes for i in n.inputs)}
        constants = {n.outputs[0]: stored(n) for n in nodes if n.type == "Const" and n.outputs[0] in wanted}
    nodes = [n for n in nodes if n.type != "Const"]
    constants |= {output: Constant.of(value) for output, value in valued.items()}
    for output in (*constants, *parameters, *(o for node in nodes for o in node.outputs)):
        slot.setdefault(output, len(slot))
    results = tuple(slot[o] for o in returned)
    scheduled = [_scheduled(node, slot, types, counts) for node in nodes]
    is_static = _is_static(scheduled) and all(_is_flat(types.get(o, UNKNOWN)) for o in (*parameters, *returned))
    planned = scheduled
    if plan and folding is not None and not is_static:
        merged, new_types = with_experts(nodes, returned, types, folding.merged)
        if merged is not nodes:
            types = {**types, **new_types}
            for output in new_types:
                slot.setdefault(output, len(slot))
            planned = [_scheduled(node, slot, types, counts) for node in merged]
            is_static = _is_static(planned)
            planned = planned if is_static else scheduled
    if folding is None or not is_static:  # the memory of a plan is counted exactly when offsets are assigned
        require_peak(graph, types, constant_bytes, limits)
    part, rest, groups = None, planned, list[list[Node]]()
    if plan and folding is not None:
        inputs = [o for o in parameters if o not in valued]
        leading = planned if is_static else _leading(inputs, planned, constants, types)
        part = _part(inputs, returned, planned, leading, slot, constants, types, is_static)
        if part is not None and is_static and isinstance(graph, LoopBody):
            part = replace(part, carried=graph.carried)
        rest, after = _remaining(planned, leading, {*constants, *inputs}, part)
        groups = islands([s.node for s in after], types) if after else []
    kept, few, entries = set(results), len(constants), {s.node: s for s in planned}
    released = _releasing([*rest, *(entries[node] for group in groups for node in group)], kept, few)
    return Schedule(
        _releasing(scheduled, kept, few),
        len(slot),
        tuple(slot[o] for o in parameters),
        results,
        tuple((slot[o], c) for o, c in constants.items()),
        constants,
        types,
        is_static,
        tuple(types.get(o, UNKNOWN).without_value() for o in returned),
        part,
        released[: len(rest)],
        _tails(graph, groups, released[len(rest) :], returned, slot, types),
        any(multiplies(node.op) for node in nodes),
    )


def _with_shapes(
    types: Mapping[Output, TensorType], constants: Mapping[Output, Constant]
) -> Mapping[Output, TensorType]:
    """Return the types, with the shapes of folded constants whose shapes depend on values."""
    sized = [o for o in constants if o in types and not types[o].is_static]
    if not sized:
        return types
    return {**types, **{o: TensorType(types[o].element, shape_of(constants[o].shape)) for o in sized}}


def _tails(
    graph: Graph,
    groups: Sequence[Sequence[Node]],
    nodes: Sequence[ScheduledNode],
    returned: Sequence[Output],
    slot: Mapping[Output, int],
    types: Mapping[Output, TensorType],
) -> tuple[TailPart, ...]:
    """Return the groups as tails. `nodes`: the nodes of all groups, in order."""
    parts: list[TailPart] = []
    wanted, end = set(returned), len(nodes)
    for group in reversed(groups):
        results = [o for node in group for o in node.outputs if o in wanted]
        tail = tail_of(graph, group, results, types)
        members, end = tuple(nodes[end - len(group) : end]), end - len(group)
        read = () if tail is None else tuple(slot[p.outputs[0]] for p in tail.parameters)
        written = tuple(slot[o] for o in results)
        ends = dict.fromkeys(k for member in members for k in member.last_use if k in {*read, *written})
        parts.append(TailPart(members, tail, read, written, tuple(ends)))
        wanted.update(i for node in group for i in node.inputs)
    return tuple(reversed(parts))


def _scheduled(
    node: Node, slot: Mapping[Output, int], types: Mapping[Output, TensorType], counts: Mapping[Node, int]
) -> ScheduledNode:
    before = tuple(types.get(i, UNKNOWN).without_value() for i in node.inputs)
    after = tuple(types.get(o, UNKNOWN).without_value() for o in node.outputs)
    # If the file lists more or fewer ports than an operation has, its types are inferred at run time.
    # Old exporters list no output of Assign.
    count = counts.get(node, len(node.outputs))
    has_ports = count == len(node.outputs) or (node.type == "Assign" and not node.outputs)
    return ScheduledNode(
        node,
        tuple(slot[i] for i in node.inputs),
        tuple(slot[o] for o in node.outputs),
        (),
        before,
        after,
        all(t.is_static for t in (*before, *after)) and has_ports,
        any(map(is_short, (*before, *after))),
        sum(t.nbytes or 0 for t in after),
    )


def _is_static(nodes: Sequence[ScheduledNode]) -> bool:
    """True if memory can be planned for all inputs and outputs of the nodes."""
    return all(s.known and all(_is_flat(t) for t in (*s.input_types, *s.types)) for s in nodes)


def _releasing(nodes: Sequence[ScheduledNode], kept: Container[int], constants: int) -> tuple[ScheduledNode, ...]:
    """Return the nodes, each with the slots that it reads last. `kept` slots and the first `constants` are excluded."""
    last: dict[int, int] = {}
    for k, node in enumerate(nodes):
        last.update(dict.fromkeys(node.inputs, k))
        last.update({slot: k for slot in node.outputs if slot not in last})
    ends: list[list[int]] = [[] for _ in nodes]
    for slot, k in last.items():
        if slot not in kept and slot >= constants:
            ends[k].append(slot)
    return tuple(replace(node, last_use=tuple(slots)) for node, slots in zip(nodes, ends, strict=True))


def _reached(graph: Graph, filled: Sequence[Node]) -> list[Node]:
    """Return the ancestors of results and assignments, in order, up to `filled` nodes, which are excluded."""
    if not filled:
        return [n for n in graph.nodes if n.reachable]
    ends = [n for n in graph.nodes if n.reachable and n.type in ("Result", "Assign")]
    reached = set(ancestors(ends, set(filled)))
    return [n for n in graph.nodes if n in reached]


def _keeps_value(node: Node, filled: Sequence[Node]) -> bool:
    """True for an Assign that leaves its variable unchanged, as for the keys of the encoder in a decoder."""
    if node.type != "Assign" or node.inputs[0].node not in filled:
        return False
    return node.op.attributes["variable_id"] == node.inputs[0].node.op.attributes["variable_id"]


def _assigning_last(nodes: Sequence[Node]) -> list[Node]:
    """Move assignments whose results no node reads to the end: they take effect after the graph."""
    read = {i.node for n in nodes for i in n.inputs}
    late = [n for n in nodes if n.type == "Assign" and n not in read]
    return [*(n for n in nodes if n not in set(late)), *late]


def _part(
    parameters: Sequence[Output],
    results: Sequence[Output],
    nodes: Sequence[ScheduledNode],
    planned: Sequence[ScheduledNode],
    slot: Mapping[Output, int],
    constants: Mapping[Output, Constant],
    types: Mapping[Output, TensorType],
    is_static: bool,
) -> StaticPart | None:
    """Return the part to plan: all nodes of a static graph, otherwise the `planned` nodes.

    None if there are few planned nodes (`fewest_planned`), and none of them computes products.
    """
    key: Hashable = object()  # unique, since a plan of all nodes belongs to one schedule
    if not is_static:
        if len(planned) < fewest_planned(t for s in planned for t in s.types) and all(
            macs(s.node) == 0 for s in planned
        ):
            return None
        needed = {i for s in planned for i in s.node.inputs}
        parameters, results = [o for o in parameters if o in needed], _left(planned, nodes, results)
        key = _key(planned, parameters, results, constants, types)
    slots = [tuple(slot[o] for o in outputs) for outputs in (parameters, results)]
    return StaticPart(tuple(planned), tuple(parameters), tuple(results), slots[0], slots[1], constants, types, key)


def _leading(
    parameters: Sequence[Output],
    nodes: Sequence[ScheduledNode],
    constants: Iterable[Output],
    types: Mapping[Output, TensorType],
) -> list[ScheduledNode]:
    """Return the nodes with known types that depend only on nodes with known types."""
    available = {*constants, *parameters}
    available = {o for o in available if _is_flat(types.get(o, UNKNOWN))}
    leading: list[ScheduledNode] = []
    for scheduled in nodes:
        flat = all(_is_flat(t) for t in (*scheduled.input_types, *scheduled.types))
        if scheduled.known and flat and available.issuperset(scheduled.node.inputs):
            available.update(scheduled.node.outputs)
            leading.append(scheduled)
    return leading


def _remaining(
    nodes: Sequence[ScheduledNode],
    leading: Sequence[ScheduledNode],
    known: set[Output],
    part: StaticPart | None,
) -> tuple[list[ScheduledNode], list[ScheduledNode]]:
    """Return the unplanned nodes that read only values of known types, and the nodes after them."""
    before = {s.node for s in leading}
    available = known | {o for s in leading for o in s.node.outputs}
    first = {s.node for s in nodes if s.node in before or available.issuperset(s.node.inputs)}
    planned = before if part is not None else set[Node]()
    rest = [s for s in nodes if s.node in first and s.node not in planned]
    return rest, [s for s in nodes if s.node not in first]


def _key(
    planned: Sequence[ScheduledNode],
    parameters: Sequence[Output],
    results: Sequence[Output],
    constants: Mapping[Output, Constant],
    types: Mapping[Output, TensorType],
) -> Hashable:
    """Return the key of a part: all properties on which its plan depends.

    Constants are part of the key because they may depend on any shape of the graph.
    """
    used = dict.fromkeys(i for s in planned for i in s.node.inputs if i in constants)
    numbers = tuple(c.array.tobytes() if c.held and c.nbytes <= SMALL else c for c in map(constants.__getitem__, used))
    given = tuple((o, types[o].element.name, types[o].shape) for o in parameters)
    return given, tuple(results), tuple(s.node for s in planned), numbers


def _left(planned: Sequence[ScheduledNode], nodes: Sequence[ScheduledNode], returned: Sequence[Output]) -> list[Output]:
    """Return the values of planned nodes that other nodes read or the graph returns."""
    part = {s.node for s in planned}
    wanted = {*returned, *(i for s in nodes if s.node not in part for i in s.node.inputs)}
    return [o for s in planned for o in s.node.outputs if o in wanted]


def _is_flat(tensor: TensorType) -> bool:
    """True if memory can be planned for a tensor."""
    return tensor.is_static and tensor.element.dtype != object and len(tensor.shape) <= ARRAY_AXES
