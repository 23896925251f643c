"""Where the time of an inference goes: one entry a step, with the work it does where that can be counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from irload.plan.executor import Executor
from irload.plan.ir.work import flops
from irload.plan.schedule import ScheduledNode

__all__ = ["StepTime", "of_interpreted", "of_plan"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of a plan and the seconds it takes.

    `operation`: the types of the layers that it stands for, `layer` the name of the last of them, `kernel` what was
    chosen to run it, `shape` that of its first output. `flops` counts multiplications and additions of convolutions,
    matmuls and attention, 0 for all else; `nbytes` what the step reads and writes at least.
    """

    operation: str
    layer: str
    kernel: str
    shape: tuple[int, ...]
    seconds: float
    flops: int
    nbytes: int

    @property
    def rate(self) -> str:
        """GFLOP/s where operations are counted, else GB/s."""
        amount, unit = (self.flops, "GFLOP/s") if self.flops else (self.nbytes, "GB/s")
        return f"{amount / self.seconds / 1e9:.3g} {unit}" if self.seconds > 0 else ""


def of_plan(plan: Executor, rounds: Sequence[Sequence[float]]) -> list[StepTime]:
    """The entries of a plan: medians over rounds of seconds, one for each kernel."""
    return [
        StepTime(
            kernel.step.title,
            kernel.step.origin[-1].name if kernel.step.origin else "",
            kernel.name,
            kernel.step.outputs[0].shape if kernel.step.outputs else (),
            median(seconds),
            flops(kernel.step),
            sum(v.nbytes for v in (*kernel.step.inputs, *kernel.step.outputs)),
        )
        for kernel, seconds in zip(plan.kernels, zip(*rounds, strict=True), strict=True)
    ]


def of_interpreted(
    scheduled: ScheduledNode, shapes: Sequence[tuple[int, ...]], nbytes: int, seconds: float
) -> StepTime:
    """The entry of one operation that ran by its own `compute`."""
    return StepTime(
        scheduled.node.type, scheduled.node.name, "compute", shapes[0] if shapes else (), seconds, 0, nbytes
    )
