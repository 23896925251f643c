"""A back end of three steps in plain Python loops, to show all that a back end needs: this file and one `register`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import exp
from typing import Any

import numpy as np

from irload.core.op import Op
from irload.plan.backends.base import Executable, Options, SharedData, StepKernel
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import MatMulStep, PoolStep, RelayoutStep, SoftmaxStep
from irload.plan.memory.layout import Layout
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests

SUM = Expression(2, (Instruction("add", (0, 1)),))


class ToyExecutable:
    """Runs each step by a function without arguments."""

    def __init__(self, steps: Sequence[Step], memory: Memory) -> None:
        self.kernels = [StepKernel(step, "loops", "to be read") for step in steps]
        self._calls = [_KERNELS[type(step)](step, memory) for step in steps]
        self.runs = 0

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {}

    def run(self, context: Any) -> None:
        self.runs += 1
        for k in range(len(self._calls)):
            self.run_kernel(k, context)

    def run_kernel(self, index: int, context: Any) -> None:
        self._calls[index]()


class Toy:
    """Max pooling of images, matmul of matrices with a bias or without, softmax of rows.

    Results of poolings have the given layout, possibly with a stored type that NumPy's kernels do not support.
    """

    name = "toy"

    def __init__(self, layout: Layout | None = None) -> None:
        self.layout = layout
        self.compiled: list[list[Step]] = []

    def supports(self, step: Step) -> bool:
        if isinstance(step, MatMulStep):
            flat = len(step.output.shape) == 2 and not step.transpose_a
            return flat and (not step.epilogue.instructions or step.epilogue == SUM)
        if isinstance(step, PoolStep):
            return len(step.kernel) == 2 and step.kind == "max" and not any(step.pads_begin)
        return isinstance(step, SoftmaxStep) and step.axis == len(step.output.shape) - 1 == 1

    def operation(self, op: Op) -> Op:
        return op

    def fuse(self, program: Program) -> None:
        """A no-op."""

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        return MemoryRequests({s.output: self.layout for s in steps if self.layout and isinstance(s, PoolStep)})

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options, shared: SharedData) -> Executable:
        self.compiled.append(list(steps))
        return ToyExecutable(steps, memory)


def _pool(step: PoolStep, memory: Memory) -> Callable[[], None]:
    data, out = memory.array(step.inputs[0]), memory.array(step.output)

    def run() -> None:
        height, width = data.shape[2:]
        for n, c, y, x in product(*map(range, step.output.shape)):
            rows = [y * step.strides[0] + i * step.dilations[0] for i in range(step.kernel[0])]
            columns = [x * step.strides[1] + j * step.dilations[1] for j in range(step.kernel[1])]
            out[n, c, y, x] = max(data[n, c, i, j] for i in rows for j in columns if i < height and j < width)

    return run


def _relayout(step: RelayoutStep, memory: Memory) -> Callable[[], None]:
    source, out = memory.array(step.inputs[0]), memory.array(step.output)

    def run() -> None:
        for at in product(*map(range, out.shape)):
            out[at] = source[at]

    return run


def _matmul(step: MatMulStep, memory: Memory) -> Callable[[], None]:
    a, b, *bias = (memory.array(v) for v in step.inputs)
    out, b = memory.array(step.output), b.T if step.transpose_b else b
    added = np.broadcast_to(bias[0] if bias else np.float32(0), out.shape)

    def run() -> None:
        for i, j in product(*map(range, out.shape)):
            out[i, j] = sum(float(a[i, k]) * float(b[k, j]) for k in range(a.shape[1])) + added[i, j]

    return run


def _softmax(step: SoftmaxStep, memory: Memory) -> Callable[[], None]:
    x, out = memory.array(step.inputs[0]), memory.array(step.output)

    def run() -> None:
        for source, target in zip(x, out, strict=True):
            highest = max(source)
            powers = [exp(v - highest) for v in source]
            for j, power in enumerate(powers):
                target[j] = power / sum(powers)

    return run


_KERNELS: dict[type[Step], Callable[[Any, Memory], Callable[[], None]]] = {
    MatMulStep: _matmul,
    PoolStep: _pool,
    RelayoutStep: _relayout,
    SoftmaxStep: _softmax,
}
