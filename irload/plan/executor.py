"""The plan of a static graph: a program in segments, which back ends compile, and one arena for all its values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from irload.core.tensor import Array
from irload.graph import Output
from irload.options import Options
from irload.plan.backends.base import Backend, Executable, SharedData, StepKernel
from irload.plan.backends.registry import backends, integer_products, operation, supported_steps
from irload.plan.ir.program import Program, Step, Value
from irload.plan.lowering.lower import lower
from irload.plan.lowering.widening import in_own_type
from irload.plan.memory.filling import Filling
from irload.plan.memory.layout import Layout
from irload.plan.memory.memory import Memory
from irload.plan.passes.integers import lower_integers
from irload.plan.passes.pipeline import optimize
from irload.plan.sanitizing import is_on
from irload.plan.schedule import StaticPart
from irload.plan.segments import divide
from irload.plan.wide import is_short
from irload.record import record
from irload.safety.limits import checkpoint
from irload.system.portable import give_back_memory

if TYPE_CHECKING:
    from irload.plan.sanitizer import Sanitizer

LARGE = 1 << 24
"""Bytes of constants above which memory freed during packing is returned to the system, which takes about 1 ms."""


@record()
class Segment:
    """Consecutive steps of one back end, ready to run."""

    backend: str
    executable: Executable


class Executor:
    """An executable program with its memory. Runs one inference at a time."""

    def __init__(
        self,
        program: Program,
        options: Options,
        offered: Sequence[Backend] | None = None,
        shared: SharedData | None = None,
        carried: Sequence[tuple[int, int]] = (),
    ) -> None:
        """`carried`: (output, input) that may share memory, because the next run gets the output as this input."""
        offered = backends(options) if offered is None else offered
        shared = {} if shared is None else shared
        owners, requests = divide(program, offered, _check)
        _check(program, "the requests of back ends", requests.layouts)
        if not is_on():
            requests.carried = {program.outputs[output]: program.inputs[given] for output, given in carried}
        memory = Memory(program, requests, options.limits)
        segments = [
            Segment(backend.name, backend.compile(list(steps), memory, options, shared))
            for backend, steps in groupby(program.steps, owners.__getitem__)
        ]
        inputs, outputs = ([memory.array(v) for v in side] for side in (program.inputs, program.outputs))
        self._set_up(program, options, memory, segments, inputs, outputs)
        self._sanitizer = _sanitizer(program, memory) if is_on() else None
        constants = {v.source for s in program.steps for v in s.inputs if v.source is not None}
        for constant in constants:
            constant.release()  # the segments hold references to the constants they read
        if sum(constant.nbytes for constant in constants) > LARGE:
            give_back_memory()  # before the first inference touches the arena

    def _set_up(
        self,
        program: Program,
        options: Options,
        memory: Memory,
        segments: Sequence[Segment],
        input_arrays: Sequence[Array],
        output_arrays: Sequence[Array],
        before: Filling | None = None,
    ) -> None:
        """Set all fields. The arrays are in the plan's memory. `before`: another plan's Filling, reused in part."""
        self.program = program
        self.options = options
        self.memory = memory
        self.segments = segments
        self.input_arrays = input_arrays
        self.output_arrays = output_arrays
        self.filling = Filling(self.input_arrays, before)
        self._rounds = any(v.origin is not None and is_short(v.origin.type) for v in program.outputs)
        self._sanitizer: Sanitizer | None = None

    @property
    def kernels(self) -> list[StepKernel]:
        """The kernels of all segments, in order."""
        return [kernel for segment in self.segments for kernel in segment.executable.kernels]

    @property
    def nbytes(self) -> dict[str, int]:
        """The bytes that the plan holds, by purpose."""
        total = {"values": self.memory.nbytes}
        for segment in self.segments:
            for purpose, count in segment.executable.nbytes.items():
                total[purpose] = total.get(purpose, 0) + count
        return total

    def run(
        self,
        arrays: Sequence[Array],
        context: Any = None,
        *,
        wide: bool = False,
        in_place: Mapping[int, Array] = MappingProxyType({}),
    ) -> tuple[Array, ...]:
        """Run the plan. Returns copies, which do not alias the plan's memory.

        The results have the types of the graph; with `wide`, 16-bit floats are f32. `in_place`: the results that are
        returned without a copy, by their position; only if `returns_views`.
        """
        if self._sanitizer is not None:
            kernels = dict(zip((k.step for k in self.kernels), self._single_kernels(context), strict=True))
            return self._results(self._sanitizer.run(arrays, kernels), wide)
        self.filling.fill(arrays)
        for segment in self.segments:
            segment.executable.run(context)
        if in_place:
            views = enumerate(self.output_arrays)
            return tuple(in_place[k] if k in in_place else np.array(view, order="C") for k, view in views)
        return self._results([np.array(view, order="C") for view in self.output_arrays], wide)

    @property
    def returns_views(self) -> bool:
        """True if results can be returned in the plan's memory, since their types need no conversion."""
        return self._sanitizer is None and not self._rounds

    def _results(self, arrays: Sequence[Array], wide: bool) -> tuple[Array, ...]:
        """Return the results in the types of the graph; with `wide`, unconverted."""
        if wide or not self._rounds:
            return tuple(arrays)
        return tuple(in_own_type(array, value) for array, value in zip(arrays, self.program.outputs, strict=True))

    def profile(self, arrays: Sequence[Array], context: Any = None) -> list[float]:
        """Return the seconds that each kernel takes in one run."""
        self.filling.fill(arrays)
        seconds: list[float] = []
        for run in self._single_kernels(context):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return seconds

    def timed(
        self, arrays: Sequence[Array], context: Any = None, *, wide: bool = False
    ) -> tuple[tuple[Array, ...], list[float]]:
        """Return the results of `run`, and the seconds of each kernel."""
        seconds = self.profile(arrays, context)
        return self._results([np.array(view, order="C") for view in self.output_arrays], wide), seconds

    def outputs(self, arrays: Sequence[Array], context: Any = None) -> Iterator[tuple[Output, Array]]:
        """Run the kernels one by one, and yield each of the `written_outputs` as soon as it is computed.

        The arrays are copies in C order.
        """
        self.filling.fill(arrays)
        for kernel, run in zip(self.kernels, self._single_kernels(context), strict=True):
            run()
            for origin, value in _written_outputs(kernel.step):
                yield origin, in_own_type(np.array(self.memory.array(value), value.dtype, order="C"), value)

    @property
    def written_outputs(self) -> list[Output]:
        """The outputs of the graph that kernels write to memory; the others are fused or folded."""
        return [origin for kernel in self.kernels for origin, _ in _written_outputs(kernel.step)]

    def _single_kernels(self, context: Any) -> list[Callable[[], None]]:
        """Return a function for each kernel, which runs only this kernel."""
        return [
            partial(segment.executable.run_kernel, k, context)
            for segment in self.segments
            for k in range(len(segment.executable.kernels))
        ]


def make_plan(part: StaticPart, options: Options, shared: SharedData) -> Executor:
    """Create the plan of a part of a graph. `shared`: data shared by all plans of the model."""
    offered = backends(options)
    supports = supported_steps(offered)
    program = lower(part, supports, lambda op: operation(op, offered), options.limits)
    _check(program, "lowering")
    optimize(program, _check, integer_products(offered), supports)
    lower_integers(program, supports)
    _check(program, "lowering of integers")
    return Executor(program, options, offered, shared, part.carried)


def _written_outputs(step: Step) -> Iterator[tuple[Output, Value]]:
    return ((v.origin, v) for v in step.outputs if v.origin is not None and v.used and not v.is_constant)


def _sanitizer(program: Program, memory: Memory) -> Sanitizer:
    from irload.plan.sanitizer import Sanitizer

    return Sanitizer(program, memory)


def _check(program: Program, after: str, layouts: Mapping[Value, Layout] | None = None) -> None:
    """Verify the program if the sanitizer is on. Also checks the deadline, as it is called after each pass."""
    checkpoint()
    if is_on():
        from irload.plan.ir.verify import verify  # lazy import: only tests use the sanitizer

        verify(program, after, {v: kept.storage for v, kept in (layouts or {}).items() if kept.storage is not None})
