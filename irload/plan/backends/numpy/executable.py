"""A segment of steps as a table of calls: functions and arguments, bound to fixed views of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.base import SharedData, StepKernel
from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.backends.numpy.kernels.packing import PackedWeights
from irload.plan.backends.numpy.measured import CHECKED
from irload.plan.backends.numpy.reasons import REASONS
from irload.plan.backends.numpy.selection.selector import NumpySelector
from irload.plan.backends.numpy.selection.table import TABLE
from irload.plan.backends.numpy.tuning import Tuner, filled
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import LONG_STEP, Step
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import is_on
from irload.plan.threads import Call, pool, run_part
from irload.record import record
from irload.safety.limits import checkpoint
from irload.system.blas import single_threaded_blas


@record(frozen=False)
class SharedPacking:
    """Data of all plans of a model: packed weights, and the tuner that times kernels (None: selection by rule)."""

    packs: PackedWeights = field(default_factory=WeakValueDictionary[tuple[str, Constant], Array])
    tuner: Tuner | None = None


def shared_packing(shared: SharedData, options: Options) -> SharedPacking:
    """Return the shared data of the model, created on first use."""
    if "numpy" not in shared:
        shared["numpy"] = SharedPacking(tuner=Tuner() if options.tune else None)
    return shared["numpy"]


@record(eq=False)
class BoundStep:
    """The kernel of a concrete step, its phases, its work, and the constants that it reads, packed or not."""

    kernel: StepKernel
    phases: Phases
    flops: int
    nbytes: int
    constants: Sequence[Array]
    packed: Sequence[Array]


class NumpyExecutable:
    """A table of calls, and the memory it uses."""

    def __init__(self, steps: Sequence[Step], memory: Memory, options: Options, shared: SharedData) -> None:
        packing = shared_packing(shared, options)
        self._threads = options.threads
        selector = NumpySelector(memory, options, packing.packs, tuner=packing.tuner, run_phases=self._run)
        if packing.tuner is not None:
            memory.arena.fill(0)  # uninitialised memory might contain subnormal numbers, which are slow
        with single_threaded_blas:  # packing weights uses small products, which BLAS threads only slow down
            parts = [self._selected(step, selector) for step in steps]
        if packing.tuner is not None:
            packing.tuner.save()
        self._finish(selector, parts)

    def _finish(self, selector: NumpySelector, parts: Sequence[BoundStep]) -> None:
        """Build the table of calls of all steps. Views have no calls."""
        self.cell = selector.cell
        self.scratch = selector.scratch
        self.parts = parts
        with_calls = [part for part in parts if part.phases]
        self.kernels = [part.kernel for part in with_calls]
        self.phases = [part.phases for part in with_calls]
        """The phases of each kernel."""
        self._constants = _distinct([array for part in parts for array in part.constants])
        self._packed = _distinct([array for part in parts for array in part.packed])
        self._table = _merged(self._with_checks(with_calls))
        self._calculates = any(part.kernel.step.calculates for part in parts)
        self._blas = single_threaded_blas if any(part.kernel.step.multiplies for part in parts) else nullcontext()

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {
            "working memory": self.scratch.peak,
            "constants": _bytes(self._constants),
            "packed weights": _bytes(self._packed),
        }

    def run(self, context: Any) -> None:
        with self.cell.during(context):
            if not self._calculates:
                self._run(self._table)
                return
            with np.errstate(all="ignore"), self._blas:
                self._run(self._table)

    def run_kernel(self, index: int, context: Any) -> None:
        if is_on():
            for chunk in self.scratch.chunks:
                chunk.fill(0xFF)
        with self.cell.during(context), np.errstate(all="ignore"), single_threaded_blas:
            self._run(self.phases[index])

    def _selected(self, step: Step, selector: NumpySelector) -> BoundStep:
        """Select a kernel for a step."""
        checkpoint()
        selector.scratch.reset()
        selector.direct, selector.held = [], []
        name, phases = TABLE.select(step)(step, selector)
        phases = filled(phases)
        if is_on():
            from irload.plan.backends.numpy.table_check import check_table  # for tests, like the sanitizer

            constants = [*selector.direct, *selector.held]
            check_table(step, name, phases, selector.memory, selector.scratch, constants)
        kernel = StepKernel(step, name, REASONS.get(name, ""))
        return BoundStep(kernel, phases, step.flops, step.nbytes, selector.direct, selector.held)

    def _with_checks(self, parts: Sequence[BoundStep]) -> Phases:
        """Return all phases, with checks of the time limit before long steps, and within very long steps."""
        call: Call = (self.cell.check, ())
        check: Phases = [[[call]]]
        checked: Phases = []
        for bound in parts:
            if bound.flops >= LONG_STEP:
                checked += [
                    [[entry for kernel in part for entry in (kernel, call)] for part in phase] for phase in bound.phases
                ]
                continue
            checked += [*(check if bound.nbytes >= CHECKED else []), *bound.phases]
        return checked

    def _run(self, phases: Phases) -> None:
        for phase in phases:
            if len(phase) == 1 or self._threads == 1:
                for part in phase:
                    run_part(part)
            else:
                pool.run(phase)


def _merged(phases: Phases) -> Phases:
    """Merge consecutive phases that have a single part."""
    table: Phases = []
    for phase in phases:
        if len(phase) == 1 and table and len(table[-1]) == 1:
            table[-1][0].extend(phase[0])
        else:
            table.append([list(part) for part in phase])
    return table


def _distinct(arrays: Sequence[Array]) -> list[Array]:
    """Return distinct arrays."""
    return list({id(a): a for a in arrays}.values())


def _bytes(arrays: Sequence[Array]) -> int:
    """Return the bytes of distinct arrays; views count as their base."""
    roots: dict[int, int] = {}
    for array in arrays:
        root: Any = array
        while root.base is not None and hasattr(root.base, "nbytes"):
            root = root.base
        roots[id(root)] = root.nbytes
    return sum(roots.values())
