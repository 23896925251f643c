"""A plan in words: what was fused, which kernels were chosen and why, and where memory goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from irload.core.tensor import Array
from irload.graph import Graph
from irload.plan.executor import Executor
from irload.plan.schedule import Plan

REASONS = {
    "1x1": "a kernel of one tap is a matmul over all positions",
    "1x1, line by line": "the same into the middle of a frame, or into slices of another tensor",
    "1x1, weight streaming": "the same for small maps: large weights pass through once, as they are stored",
    "im2col, weight streaming": "small maps: large weights pass through once",
    "im2col of a small map": "small maps: threads share the channels, so that each reads a part of the weights",
    "winograd": "3×3 of stride 1 with many channels on a large map: a quarter of the multiplications",
    "im2col": "windows copied into rows in the cache, then a matmul",
    "depthwise": "one filter a channel: sums of products over windows, in rows that stay in the cache",
    "matmul by rows": "threads share the rows",
    "matmul by columns": "few rows: threads share the columns, so that each reads a part of the weights",
    "weight streaming": "a few dozen rows: weights as they are stored come first, and need no new layout",
    "batched matmul": "one product for each matrix of the stack",
    "head by head": "scores of a few heads stay in the cache from the first product to the second",
    "tiles": "elementwise work, tile by tile while it is in the cache",
    "rows": "rows that stay in the cache",
    "rows, moved": "the axis is not the last one, so it is moved there and back",
    "halves": "each half of a row is turned by the other, without a copy that exchanges them",
    "separable": "along one axis, then along the other",
    "copy": "the new order of elements is no view",
    "slices": "parts are written where they belong",
    "compute": "by its own readable compute: no kernel takes it",
}
"""Why each kernel is chosen."""


def explain_fast(graph: Graph, plan: Plan, fast: Executor) -> str:
    """The fast plan in words."""
    layers = sum(1 for n in graph.nodes if n.reachable and n.type not in ("Parameter", "Result", "Const"))
    left = len(plan.steps)
    views = len(fast.program.steps) - len(fast.bound)
    threads = "1 thread" if fast.threads == 1 else f"{fast.threads} threads"
    used = {
        "values": fast.storage.arena.nbytes,
        "working memory": fast.scratch_bytes,
        "constants": _bytes(fast.constants),
        "laid out for kernels": _bytes(fast.packed),
    }
    lines = [
        f"fast plan for {_inputs(graph, plan)}, {threads}",
        f"layers: {layers}, of which {layers - left} are constant and computed already",
        f"steps: {len(fast.bound)}, and {views} that are views of memory and cost nothing",
        "memory: " + ", ".join(f"{what} {_size(count)}" for what, count in used.items()),
    ]
    kernels = Counter(b.kernel for b in fast.bound)
    lines += ["", "kernels:"]
    lines += [f"  {count:4} × {name}{_why(name)}" for name, count in kernels.most_common()]
    fused = Counter(b.step.title for b in fast.bound if len(b.step.origin) > 1)
    lines += ["", "fused:" if fused else "fused: nothing"]
    lines += [f"  {count:4} × {title}" for title, count in fused.most_common()]
    lines += ["", *fast.program.notes, "steps:"]
    for k, bound in enumerate(fast.bound):
        shape = "×".join(map(str, bound.step.outputs[0].shape)) if bound.step.outputs else ""
        name = bound.step.origin[-1].name if bound.step.origin else ""
        lines.append(f"  {k:4}  {bound.step.title} → [{shape}] by {bound.kernel}  ({name})")
    return "\n".join(lines)


def explain_plain(graph: Graph, plan: Plan, *, optimize: bool) -> str:
    """A plan that runs operation by operation, and why it does."""
    unknown = next((s for s in plan.steps if not s.known), None)
    if not optimize:
        why = "optimize=False asks for it"
    elif unknown is not None:
        told = ", ".join(map(str, unknown.types)) or "nothing"
        why = f"shapes depend on values, first at {unknown.node.type} '{unknown.node.name}', which gives {told}"
    else:
        why = "strings have no fixed size"
    counts = Counter(s.node.type for s in plan.steps)
    lines = [
        f"plain plan for {_inputs(graph, plan)}: each operation by its own compute, because {why}",
        f"steps: {len(plan.steps)}; constants {_size(sum(c.nbytes for _, c in plan.constants))}",
        "",
        "operations:",
        *(f"  {count:4} × {type}" for type, count in counts.most_common()),
    ]
    return "\n".join(lines)


def _inputs(graph: Graph, plan: Plan) -> str:
    return ", ".join(f"{p.name} {plan.types[p.outputs[0]]}" for p in graph.parameters) or "no inputs"


def _why(kernel: str) -> str:
    return f": {REASONS[kernel]}" if kernel in REASONS else ""


def _bytes(arrays: Iterable[Array | None]) -> int:
    """Bytes of different arrays; views count as what they are views of."""
    roots: dict[int, int] = {}
    for array in arrays:
        while array is not None and array.base is not None and hasattr(array.base, "nbytes"):
            array = array.base
        if array is not None:
            roots[id(array)] = array.nbytes
    return sum(roots.values())


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
