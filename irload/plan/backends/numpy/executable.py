"""A segment of steps as a table of calls: functions with their arguments, bound to fixed views of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import Kernel, Options
from irload.plan.backends.numpy.blas import single_threaded_blas
from irload.plan.backends.numpy.kernels.packing import PackedWeights
from irload.plan.backends.numpy.measured import CHECKED
from irload.plan.backends.numpy.reasons import REASONS
from irload.plan.backends.numpy.selection.selector import Selector
from irload.plan.backends.numpy.selection.table import SELECTIONS
from irload.plan.backends.numpy.tuning import Phases, Tuner, filled
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Step
from irload.plan.ir.steps import Compute
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import is_on
from irload.plan.threads import pool, run_part


@dataclass
class Kept:
    """What all plans of one model share: packed weights, and what chooses kernels by the clock (None: by rule)."""

    packs: PackedWeights = field(default_factory=WeakValueDictionary[tuple[str, Constant], Array])
    tuner: Tuner | None = None


def kept(options: Options) -> Kept:
    """What the back end keeps for the model."""
    if "numpy" not in options.kept:
        options.kept["numpy"] = Kept(tuner=Tuner() if options.tune else None)
    return options.kept["numpy"]


class NumpyExecutable:
    """A table of calls and what they hold."""

    def __init__(self, steps: Sequence[Step], memory: Memory, options: Options) -> None:
        shared = kept(options)
        self._threads = options.threads
        selector = Selector(memory, options, shared.packs, tuner=shared.tuner, run_phases=self._run)
        if shared.tuner is not None:
            memory.arena.fill(0)  # whatever lay there might be numbers that are slow to calculate with
        self.kernels: list[Kernel] = []
        self.phases: list[Phases] = []
        """What each kernel does."""
        with single_threaded_blas:  # weights are packed by small products, which threads of BLAS only make slower
            for step in steps:
                self._add(step, selector)
        if shared.tuner is not None:
            shared.tuner.save()
        self._cell = selector.cell
        self._scratch = selector.scratch
        self._constants = _distinct(selector.direct)
        self._packed = _distinct(selector.held)
        self._table = _merged(self._with_checks())
        self._calculates = not all(isinstance(step, Compute) and not step.op.calculates for step in steps)

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {
            "working memory": self._scratch.peak,
            "constants": _bytes(self._constants),
            "packed weights": _bytes(self._packed),
        }

    def run(self, context: Any) -> None:
        self._cell.context = context
        if not self._calculates:
            self._run(self._table)
            return
        with np.errstate(all="ignore"), single_threaded_blas:
            self._run(self._table)

    def run_kernel(self, index: int, context: Any) -> None:
        self._cell.context = context
        if is_on():
            for chunk in self._scratch.chunks:
                chunk.fill(0xFF)
        with np.errstate(all="ignore"), single_threaded_blas:
            self._run(self.phases[index])

    def release(self) -> None:
        self.kernels, self.phases, self._table = [], [], []
        self._constants, self._packed = [], []

    def _add(self, step: Step, selector: Selector) -> None:
        """Select a kernel for a step, and take what it does into the table. Views do nothing."""
        selector.scratch.reset()
        name, phases = SELECTIONS[type(step)](step, selector)
        phases = filled(phases)
        if is_on():
            from irload.plan.backends.numpy.table_check import check_table  # for tests, as the sanitizer is

            constants = [*selector.direct, *selector.held]
            check_table(step, name, phases, selector.memory, selector.scratch, constants)
        if phases:
            self.kernels.append(Kernel(step, name, REASONS.get(name, "")))
            self.phases.append(phases)

    def _with_checks(self) -> Phases:
        """All phases, and the time limit checked before each step that takes long enough for it."""
        check: Phases = [[[(self._cell.check, ())]]]
        found: Phases = []
        for kernel, phases in zip(self.kernels, self.phases, strict=True):
            touched = sum(v.nbytes for v in (*kernel.step.inputs, *kernel.step.outputs))
            found += [*(check if touched >= CHECKED else []), *phases]
        return found

    def _run(self, phases: Phases) -> None:
        for phase in phases:
            if len(phase) == 1 or self._threads == 1:
                for part in phase:
                    run_part(part)
            else:
                pool.run(phase)


def _merged(phases: Phases) -> Phases:
    """Phases of one part that follow each other become one."""
    table: Phases = []
    for phase in phases:
        if len(phase) == 1 and table and len(table[-1]) == 1:
            table[-1][0].extend(phase[0])
        else:
            table.append([list(part) for part in phase])
    return table


def _distinct(arrays: Sequence[Array]) -> list[Array]:
    """Each array once."""
    return list({id(a): a for a in arrays}.values())


def _bytes(arrays: Sequence[Array]) -> int:
    """Bytes of different arrays; views count as what they are views of."""
    roots: dict[int, int] = {}
    for array in arrays:
        root: Any = array
        while root.base is not None and hasattr(root.base, "nbytes"):
            root = root.base
        roots[id(root)] = root.nbytes
    return sum(roots.values())
