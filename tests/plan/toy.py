"""A back end of three steps in plain Python loops, to show what docking takes: this file and one call of `register`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import exp
from typing import Any

import numpy as np

from irload.core.op import Op
from irload.core.tensor import Array
from irload.plan.backends.base import Executable, Kernel, Options
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import MatMul, Pool, Relayout, Softmax
from irload.plan.memory.layout import Layout
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests

SUM = Expression(2, (Instruction("add", (0, 1)),))


class ToyExecutable:
    """Functions of no arguments, one for each step."""

    def __init__(self, steps: Sequence[Step], memory: Memory) -> None:
        self.kernels = [Kernel(step, "loops", "to be read") for step in steps]
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

    def release(self) -> None:
        self._calls = []


class Toy:
    """Max pooling of images, matmul of matrices with a bias or none, softmax of rows.

    With `blocked` the results of poolings lie in blocks of eight channels, with `storage` they are stored as that type:
    layouts that NumPy's kernels do not know.
    """

    name = "toy"

    def __init__(self, layout: Layout | None = None) -> None:
        self.layout = layout
        self.compiled: list[list[Step]] = []

    def supports(self, step: Step) -> bool:
        if isinstance(step, MatMul):
            flat = len(step.output.shape) == 2 and not step.transpose_a
            return flat and (not step.epilogue.instructions or step.epilogue == SUM)
        if isinstance(step, Pool):
            return len(step.kernel) == 2 and step.kind == "max" and not any(step.pads_begin)
        return isinstance(step, Softmax) and step.axis == len(step.output.shape) - 1 == 1

    def operation(self, op: Op) -> Op:
        return op

    def fuse(self, program: Program) -> None:
        """It fuses nothing."""

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        if self.layout is None:
            return MemoryRequests(in_place={s: (0,) for s in steps if isinstance(s, Softmax)})
        return MemoryRequests({s.output: self.layout for s in steps if isinstance(s, Pool)})

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options) -> Executable:
        self.compiled.append(list(steps))
        return ToyExecutable(steps, memory)


def _stored(value: Value, memory: Memory) -> Callable[[int, int, int, int], tuple[Array, tuple[int, ...]]]:
    """Where element (n, c, y, x) of an image is stored, in whatever layout."""
    placement = memory.placement(value)
    buffer = memory.buffer(memory.root(value)).view(placement.dtype)
    if placement.strided is not None:
        strided = placement.strided
        return lambda *at: (buffer, (strided.offset + sum(i * s for i, s in zip(at, strided.strides, strict=True)),))
    blocks = buffer.reshape(placement.layout.extents(value.shape))
    size = placement.layout.block
    return lambda n, c, y, x: (blocks, (n, c // size, y, x, c % size))


def _pool(step: Pool, memory: Memory) -> Callable[[], None]:
    data, place = memory.array(step.inputs[0]), _stored(step.output, memory)

    def run() -> None:
        height, width = data.shape[2:]
        for n, c, y, x in product(*map(range, step.output.shape)):
            rows = [y * step.strides[0] + i * step.dilations[0] for i in range(step.kernel[0])]
            columns = [x * step.strides[1] + j * step.dilations[1] for j in range(step.kernel[1])]
            array, index = place(n, c, y, x)
            array[index] = max(data[n, c, i, j] for i in rows for j in columns if i < height and j < width)

    return run


def _relayout(step: Relayout, memory: Memory) -> Callable[[], None]:
    place, out = _stored(step.inputs[0], memory), memory.array(step.output)

    def run() -> None:
        for at in product(*map(range, out.shape)):
            array, index = place(*at)
            out[at] = array[index]

    return run


def _matmul(step: MatMul, memory: Memory) -> Callable[[], None]:
    a, b, *bias = (memory.array(v) for v in step.inputs)
    out, b = memory.array(step.output), b.T if step.transpose_b else b
    added = np.broadcast_to(bias[0] if bias else np.float32(0), out.shape)

    def run() -> None:
        for i, j in product(*map(range, out.shape)):
            out[i, j] = sum(float(a[i, k]) * float(b[k, j]) for k in range(a.shape[1])) + added[i, j]

    return run


def _softmax(step: Softmax, memory: Memory) -> Callable[[], None]:
    x, out = memory.array(step.inputs[0]), memory.array(step.output)

    def run() -> None:
        for source, target in zip(x, out, strict=True):
            highest = max(source)
            powers = [exp(v - highest) for v in source]
            for j, power in enumerate(powers):
                target[j] = power / sum(powers)

    return run


_KERNELS: dict[type[Step], Callable[[Any, Memory], Callable[[], None]]] = {
    MatMul: _matmul,
    Pool: _pool,
    Relayout: _relayout,
    Softmax: _softmax,
}
