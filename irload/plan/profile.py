"""The times of the steps of an inference, with their arithmetic operations and memory traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from irload.graph import Graph, Node
from irload.plan.backends.base import StepKernel
from irload.plan.backends.registry import compiled_backend
from irload.plan.executor import Executor
from irload.plan.schedule import ScheduledNode
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.backends.compiled import Peaks

__all__ = ["BodySteps", "StepTime", "medians", "of_interpreted", "of_plan", "with_bodies"]


@record()
class StepTime:
    """One step of a plan and the seconds it takes.

    - `operation`: the types of the layers fused into the step; `origin`: these layers; `layer`: the name of the last.
    - `kernel`: the selected kernel; `shape`: the shape of the first output.
    - `flops`: the number of multiplications and additions of convolutions, matmuls and attention; 0 for other steps.
    - `nbytes`: the minimum number of bytes read and written.
    - `reach`: the rate as a fraction (0–1) of this machine's measured peak: of arithmetic in f32, bf16 or int8,
      depending on the kernel, or of copying if `flops` is 0. None if unknown, as in plans without compiled kernels.
    - `inside`: the steps of the bodies that the step runs. Their `seconds`, `flops` and `nbytes` are summed over all
      iterations. `seconds` of the step itself includes their time.
    """

    operation: str
    layer: str
    kernel: str
    shape: tuple[int, ...]
    seconds: float
    flops: int
    nbytes: int
    origin: tuple[Node, ...] = ()
    reach: float | None = None
    inside: tuple[StepTime, ...] = ()

    @property
    def rate(self) -> str:
        """GFLOP/s if operations are counted, else GB/s."""
        amount, unit = (self.flops, "GFLOP/s") if self.flops else (self.nbytes, "GB/s")
        return f"{amount / self.seconds / 1e9:.3g} {unit}" if self.seconds > 0 else ""


BodySteps = Mapping[Graph, Mapping[tuple[str, str, tuple[Node, ...]], StepTime]]
"""The steps of each body by operation, kernel and layers, summed over all iterations of one run."""


def of_plan(plan: Executor, seconds: Sequence[float]) -> list[StepTime]:
    """Return one entry per kernel of a plan."""
    most = _peaks(plan)
    return [_entry(kernel, time, most) for kernel, time in zip(plan.kernels, seconds, strict=True)]


def medians(rounds: Sequence[Sequence[StepTime]]) -> list[StepTime]:
    """Return the steps of the last round, each with its median time over the rounds that run the same steps.

    Shapes that depend on random values may lead to other steps.
    """
    steps = [[(step.operation, step.kernel, step.shape) for step in entries] for entries in rounds]
    same = [entries for entries, keys in zip(rounds, steps, strict=True) if keys == steps[-1]]
    return [_median(times) for times in zip(*same, strict=True)]


def _median(steps: Sequence[StepTime]) -> StepTime:
    """Return a step with its median time, and its median `reach`."""
    reached = [step.reach for step in steps if step.reach is not None]
    reach = median(reached) if reached else None
    return replace(steps[-1], seconds=median([step.seconds for step in steps]), reach=reach)


def _entry(kernel: StepKernel, seconds: float, most: Peaks | None) -> StepTime:
    step = kernel.step
    name = step.origin[-1].name if step.origin else ""
    shape = step.outputs[0].shape if step.outputs else ()
    reach = _reach(kernel, seconds, most)
    return StepTime(step.title, name, kernel.name, shape, seconds, step.flops, step.nbytes, step.origin, reach)


def _reach(kernel: StepKernel, seconds: float, most: Peaks | None) -> float | None:
    if most is None or seconds <= 0:
        return None
    work = kernel.step.flops
    peak = most.nbytes if not work else most.of(kernel.arithmetic)
    return min((work or kernel.step.nbytes) / seconds / peak, 1.0) if peak else None


def _peaks(plan: Executor) -> Peaks | None:
    backend = compiled_backend(plan.options)
    if backend is None or all(segment.backend != backend.name for segment in plan.segments):
        return None
    return backend.peaks(plan.options.threads)


def of_interpreted(
    scheduled: ScheduledNode, shapes: Sequence[tuple[int, ...]], nbytes: int, seconds: float
) -> StepTime:
    """Return the entry of one operation run by its `compute`."""
    shape = shapes[0] if shapes else ()
    return StepTime(scheduled.node.type, scheduled.node.name, "compute", shape, seconds, 0, nbytes, (scheduled.node,))


def with_bodies(steps: Sequence[StepTime], model: Graph, rounds: Sequence[BodySteps]) -> list[StepTime]:
    """Return the steps, with the steps of their bodies as `inside`, whose times are medians over the rounds."""
    bodies: dict[Node, list[Graph]] = {}
    for graph in model.walk():
        for node, _, body in graph.subgraphs():
            bodies.setdefault(node, []).append(body)

    def steps_of(body: Graph) -> list[StepTime]:
        met = {key: step for timed in rounds for key, step in timed.get(body, {}).items()}
        times = {key: [timed[body][key].seconds for timed in rounds if key in timed.get(body, {})] for key in met}
        return [completed(replace(step, seconds=median(times[key]))) for key, step in met.items()]

    def completed(step: StepTime) -> StepTime:
        run = [body for node in step.origin for body in bodies.get(node, ())]
        return replace(step, inside=tuple(s for body in run for s in steps_of(body))) if run else step

    return [completed(step) for step in steps]
