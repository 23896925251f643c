"""Where the time of an inference goes: one entry a step, with the work it does where that can be counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from irload.graph import Node
from irload.plan.backends.base import Kernel
from irload.plan.executor import Executor
from irload.plan.ir.work import flops
from irload.plan.schedule import ScheduledNode

if TYPE_CHECKING:
    from irload.plan.backends.llvm.peaks import Peaks

__all__ = ["StepTime", "of_interpreted", "of_plan"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of a plan and the seconds it takes.

    `operation`: the types of the layers that it stands for, `layer` the name of the last of them, `kernel` what was
    chosen to run it, `shape` that of its first output. `flops` counts multiplications and additions of convolutions,
    matmuls and attention, 0 for all else; `nbytes` what the step reads and writes at least; `origin`: the layers.
    `reach`: the rate as a share (0–1) of what this machine was measured to do at most, of arithmetic in f32 or in bf16,
    whichever the kernel uses, or of copying; None where that is not known, as in plans without compiled kernels.
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

    @property
    def rate(self) -> str:
        """GFLOP/s where operations are counted, else GB/s."""
        amount, unit = (self.flops, "GFLOP/s") if self.flops else (self.nbytes, "GB/s")
        return f"{amount / self.seconds / 1e9:.3g} {unit}" if self.seconds > 0 else ""


def of_plan(plan: Executor, rounds: Sequence[Sequence[float]]) -> list[StepTime]:
    """The entries of a plan: medians over rounds of seconds, one for each kernel."""
    most = _peaks(plan)
    times = zip(*rounds, strict=True)
    return [_entry(kernel, median(seconds), most) for kernel, seconds in zip(plan.kernels, times, strict=True)]


def _entry(kernel: Kernel, seconds: float, most: Peaks | None) -> StepTime:
    step, work = kernel.step, flops(kernel.step)
    nbytes = sum(v.nbytes for v in (*step.inputs, *step.outputs))
    name = step.origin[-1].name if step.origin else ""
    shape = step.outputs[0].shape if step.outputs else ()
    reach = _reach(kernel, work, nbytes, seconds, most)
    return StepTime(step.title, name, kernel.name, shape, seconds, work, nbytes, step.origin, reach)


def _reach(kernel: Kernel, work: int, nbytes: int, seconds: float, most: Peaks | None) -> float | None:
    if most is None or seconds <= 0:
        return None
    peak = most.nbytes if not work else most.bf16 if "bf16" in kernel.why else most.flops
    return min((work or nbytes) / seconds / peak, 1.0) if peak else None


def _peaks(plan: Executor) -> Peaks | None:
    if all(segment.backend != "llvm" for segment in plan.segments):
        return None
    from irload.plan.backends.llvm.peaks import peaks
    from irload.plan.backends.llvm.target import host_target

    target = host_target()
    return None if target is None else peaks(target, plan.threads)


def of_interpreted(
    scheduled: ScheduledNode, shapes: Sequence[tuple[int, ...]], nbytes: int, seconds: float
) -> StepTime:
    """The entry of one operation that ran by its own `compute`."""
    shape = shapes[0] if shapes else ()
    return StepTime(scheduled.node.type, scheduled.node.name, "compute", shape, seconds, 0, nbytes, (scheduled.node,))
