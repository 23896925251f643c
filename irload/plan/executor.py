"""The plan of a static graph: its program, cut into segments that back ends have compiled over one memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from irload.core.tensor import Array
from irload.graph import Output
from irload.plan.backends.base import Backend, Executable, Options
from irload.plan.backends.registry import backends, operation
from irload.plan.ir.program import Program, Step, Value
from irload.plan.lowering.lower import lower
from irload.plan.lowering.widening import in_own_type
from irload.plan.memory.filling import Filling
from irload.plan.memory.memory import Memory
from irload.plan.passes.pipeline import optimize
from irload.plan.sanitizing import is_on
from irload.plan.schedule import Part
from irload.plan.segments import divide
from irload.plan.wide import is_short
from irload.portable import give_back_memory
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.sanitizer import Sanitizer

LARGE = 1 << 24
"""Bytes of constants beyond which what was freed while they were packed is given back, in a millisecond."""


@record()
class Segment:
    """Neighbouring steps of one back end, ready to run."""

    backend: str
    executable: Executable


class Executor:
    """A program that is ready to run, in memory of its own. Serves one inference at a time."""

    def __init__(self, program: Program, options: Options, offered: Sequence[Backend] | None = None) -> None:
        offered = backends(options) if offered is None else offered
        owners, requests = divide(program, offered, _check)
        self.program = program
        self.threads = options.threads
        self.memory = Memory(program, requests, options.limits)
        self.segments = [
            Segment(backend.name, backend.compile(list(steps), self.memory, options))
            for backend, steps in groupby(program.steps, owners.__getitem__)
        ]
        constants = {v.source for s in program.steps for v in s.inputs if v.source is not None}
        for constant in constants:
            constant.release()  # the segments hold what they need
        if sum(constant.nbytes for constant in constants) > LARGE:
            give_back_memory()  # before the first inference touches the arena
        self.kernels = [kernel for segment in self.segments for kernel in segment.executable.kernels]
        self.taken = [self.memory.array(v) for v in program.inputs]
        self.given = [self.memory.array(v) for v in program.outputs]
        self._inputs = Filling(self.taken)
        self._rounds = any(v.origin is not None and is_short(v.origin.type) for v in program.outputs)
        self._sanitizer = _sanitizer(program, self.memory) if is_on() else None

    @property
    def nbytes(self) -> dict[str, int]:
        """The bytes that the plan holds, by what they are for."""
        total = {"values": self.memory.nbytes}
        for segment in self.segments:
            for what, count in segment.executable.nbytes.items():
                total[what] = total.get(what, 0) + count
        return total

    def run(self, arrays: Sequence[Array], context: Any = None, *, wide: bool = False) -> tuple[Array, ...]:
        """The results for these inputs. They are copies; the plan's memory is its own.

        They have the types that the graph gives them; with `wide` floats of 16 bits are f32.
        """
        if self._sanitizer is not None:
            kernels = dict(zip((k.step for k in self.kernels), self._single_kernels(context), strict=True))
            return self._results(self._sanitizer.run(arrays, kernels), wide)
        self._inputs.fill(arrays)
        for segment in self.segments:
            segment.executable.run(context)
        return self._results([np.array(view, order="C") for view in self.given], wide)

    def _results(self, arrays: Sequence[Array], wide: bool) -> tuple[Array, ...]:
        """The results in the types that the graph gives them, or as they are."""
        if wide or not self._rounds:
            return tuple(arrays)
        return tuple(in_own_type(array, value) for array, value in zip(arrays, self.program.outputs, strict=True))

    def profile(self, arrays: Sequence[Array], context: Any = None) -> list[float]:
        """The seconds that each kernel takes in one run."""
        self._inputs.fill(arrays)
        seconds: list[float] = []
        for run in self._single_kernels(context):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return seconds

    def outputs(self, arrays: Sequence[Array], context: Any = None) -> Iterator[tuple[Output, Array]]:
        """Run kernel by kernel, and give each output of the graph that is made on the way, which are those of `made`.

        The arrays are copies in C order.
        """
        self._inputs.fill(arrays)
        for kernel, run in zip(self.kernels, self._single_kernels(context), strict=True):
            run()
            for origin, value in _made(kernel.step):
                yield origin, in_own_type(np.array(self.memory.array(value), value.dtype, order="C"), value)

    @property
    def made(self) -> list[Output]:
        """The outputs of the graph that some kernel makes as they stand there; all others are fused or folded."""
        return [origin for kernel in self.kernels for origin, _ in _made(kernel.step)]

    def _single_kernels(self, context: Any) -> list[Callable[[], None]]:
        """What runs each kernel alone."""
        return [
            partial(segment.executable.run_kernel, k, context)
            for segment in self.segments
            for k in range(len(segment.executable.kernels))
        ]


def make_plan(part: Part, options: Options) -> Executor:
    """The plan of a part of a graph."""
    offered = backends(options)
    program = lower(
        part, lambda step: any(backend.supports(step) for backend in offered), lambda op: operation(op, offered)
    )
    _check(program, "lowering")
    return Executor(optimize(program, _check), options, offered)


def _made(step: Step) -> Iterator[tuple[Output, Value]]:
    return ((v.origin, v) for v in step.outputs if v.origin is not None and v.used and not v.is_constant)


def _sanitizer(program: Program, memory: Memory) -> Sanitizer:
    from irload.plan.sanitizer import Sanitizer

    return Sanitizer(program, memory)


def _check(program: Program, after: str) -> None:
    """Verify the program where the sanitizer is on."""
    if is_on():
        from irload.plan.ir.verify import verify  # for tests, as the sanitizer is

        verify(program, after)
