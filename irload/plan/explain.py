"""Text that explains a plan: fusions, the selected kernels with reasons, and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from irload.graph import Graph
from irload.plan.executor import Executor, Segment
from irload.plan.schedule import Schedule, ScheduledNode
from irload.wording import counted, size_text

LISTED = 6
"""Maximum number of segments that are listed one by one."""


def explain_plan(graph: Graph, schedule: Schedule, plan: Executor) -> str:
    """Return the explanation of a plan."""
    layers = sum(1 for n in graph.nodes if n.reachable and n.type not in ("Parameter", "Result", "Const"))
    left = len(schedule.nodes)
    views = len(plan.program.steps) - len(plan.kernels)
    lines = [
        f"fast plan for {_inputs(graph, schedule)}, {counted(plan.options.threads, 'thread')}",
        f"layers: {layers}, of which {layers - left} are folded into constants",
        f"steps: {len(plan.kernels)} with kernels, {views} views, which take no time",
        "memory: " + ", ".join(f"{what} {size_text(count)}" for what, count in plan.nbytes.items()),
    ]
    if len({segment.backend for segment in plan.segments}) > 1:
        lines.append(f"back ends: {_back_ends(plan.segments)}")
    counts = Counter((k.name, k.why) for k in plan.kernels)
    lines += ["", "kernels:"]
    lines += [f"  {count:4} × {name}{f': {why}' if why else ''}" for (name, why), count in counts.most_common()]
    fused = Counter(k.step.title for k in plan.kernels if len(k.step.origin) > 1)
    lines += ["", "fused:" if fused else "fused: nothing"]
    lines += [f"  {count:4} × {title}" for title, count in fused.most_common()]
    lines += ["", "steps:"]
    for k, kernel in enumerate(plan.kernels):
        step = kernel.step
        shape = "×".join(map(str, step.outputs[0].shape)) if step.outputs else ""
        name = step.origin[-1].name if step.origin else ""
        lines.append(f"  {k:4}  {step.title} → [{shape}] by {kernel.name}  ({name})")
    return "\n".join(lines)


def explain_rest(schedule: Schedule) -> str:
    """Return the explanation of the operations that run after a plan."""
    planned = [part for part in schedule.tails if part.tail is not None]
    separate = [node for part in schedule.tails if part.tail is None for node in part.nodes]
    lines = [f"then without a plan, because {_why_not_planned(schedule)}:", *_counted([*schedule.rest, *separate])]
    if planned:
        later = [node for part in planned for node in part.nodes]
        groups = f" in {len(planned)} groups" if len(planned) > 1 else ""
        lines.append(f"then {len(later)} operations{groups}, planned when the shapes of their inputs are known:")
        lines += _counted(later)
    return "\n".join(lines)


def _counted(nodes: Iterable[ScheduledNode]) -> list[str]:
    counts = Counter(s.node.type for s in nodes)
    return [f"  {count:4} × {type}" for type, count in counts.most_common()]


def _why_not_planned(schedule: Schedule) -> str:
    unknown = next((s for s in schedule.nodes if not s.known), None)
    if unknown is None:
        return "strings have no fixed size"
    types = ", ".join(map(str, unknown.types)) or "nothing"
    return f"shapes depend on values, first at {unknown.node.type} '{unknown.node.name}', whose output is {types}"


def explain_interpreted(graph: Graph, schedule: Schedule, *, optimize: bool) -> str:
    """Return the explanation of a graph that runs operation by operation."""
    why = _why_not_planned(schedule) if optimize else "optimize=False was passed"
    lines = [
        f"plain plan for {_inputs(graph, schedule)}: operations run one by one, because {why}",
        f"steps: {len(schedule.nodes)}; constants {size_text(sum(c.nbytes for _, c in schedule.constants))}",
        "",
        "operations:",
        *_counted(schedule.nodes),
    ]
    return "\n".join(lines)


def _inputs(graph: Graph, schedule: Schedule) -> str:
    return ", ".join(f"{p.name} {schedule.types[p.outputs[0]]}" for p in graph.parameters) or "no inputs"


def _back_ends(segments: Sequence[Segment]) -> str:
    """The kernels of each segment in order; of many segments, their numbers per back end."""
    if len(segments) <= LISTED:
        return ", then ".join(f"{len(segment.executable.kernels)} kernels of {segment.backend}" for segment in segments)
    kernels, counts = Counter[str](), Counter(segment.backend for segment in segments)
    for segment in segments:
        kernels[segment.backend] += len(segment.executable.kernels)
    listed = [f"{kernels[name]} kernels of {name} in {count} segments" for name, count in counts.most_common()]
    return ", ".join(listed)
