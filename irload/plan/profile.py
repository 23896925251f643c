"""Where the time of an inference goes: one entry a step, with the work it does where that can be counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from irload.plan.executor import Executor
from irload.plan.ir.program import Step
from irload.plan.ir.steps import Attention, Conv, MatMul
from irload.plan.schedule import Step as PlainStep

__all__ = ["StepTime", "of_fast", "of_plain"]


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


def of_fast(plan: Executor, rounds: Sequence[Sequence[float]]) -> list[StepTime]:
    """The entries of a fast plan: medians over rounds of seconds, one for each step that is bound."""
    return [
        StepTime(
            bound.step.title,
            bound.step.origin[-1].name if bound.step.origin else "",
            bound.kernel,
            bound.step.outputs[0].shape if bound.step.outputs else (),
            median(seconds),
            flops(bound.step),
            sum(v.nbytes for v in (*bound.step.inputs, *bound.step.outputs)),
        )
        for bound, seconds in zip(plan.bound, zip(*rounds, strict=True), strict=True)
    ]


def of_plain(step: PlainStep, shapes: Sequence[tuple[int, ...]], nbytes: int, seconds: float) -> StepTime:
    """The entry of one operation that ran by its own `compute`."""
    return StepTime(step.node.type, step.node.name, "compute", shapes[0] if shapes else (), seconds, 0, nbytes)


def flops(step: Step) -> int:
    """Multiplications and additions; 0 where memory is what counts."""
    if isinstance(step, Conv):
        _, _, depth, *kernel = step.inputs[1].shape
        return 2 * step.output.size * _product([depth, *kernel])
    if isinstance(step, MatMul):
        return 2 * step.output.size * step.inputs[0].shape[-2 if step.transpose_a else -1]
    if isinstance(step, Attention):
        q, k, *_ = step.inputs
        return 2 * k.shape[-2] * (q.size + step.output.size)
    return 0


def _product(numbers: Sequence[int]) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total
