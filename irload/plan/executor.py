"""The fast plan of a static graph: lowered, rewritten, bound to memory, run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irload.core.tensor import Array
from irload.graph import Graph
from irload.plan.backends.numpy.blas import single_threaded_blas
from irload.plan.backends.numpy.kernels.calls import Part
from irload.plan.backends.numpy.kernels.packing import PackedWeights
from irload.plan.backends.numpy.selection.selector import Binder, Bound, RunCell
from irload.plan.backends.numpy.tuning import Phases, Tuner
from irload.plan.folding import Folding
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program
from irload.plan.lowering.lower import lower
from irload.plan.memory.planner import Storage
from irload.plan.passes.pipeline import optimize
from irload.plan.sanitizer import Sanitizer, is_on, verified
from irload.plan.schedule import Plan
from irload.plan.threads import pool, run_part
from irload.safety import DEFAULT, Limits


@dataclass
class Shared:
    """What all plans of one model have in common: folded constants and packed weights."""

    folding: Folding = field(default_factory=Folding)
    limits: Limits = DEFAULT
    precise: bool = False
    """True to choose no kernel that rounds more than the plain sum does."""
    tuner: Tuner | None = None
    """What chooses kernels by the clock, None to choose them by rule."""
    packs: PackedWeights = field(default_factory=WeakValueDictionary[tuple[str, Constant], Array])


WATCHED = 1 << 20
"""Bytes that a step must touch for the time to be checked before it; smaller ones take no time."""


class Executor:
    """A program bound to memory of its own. Serves one inference at a time."""

    def __init__(self, program: Program, threads: int, shared: Shared, file: str | None = None) -> None:
        self.program = program
        self.threads = threads
        self.storage = Storage(program, shared.limits)
        self.run_cell = RunCell(file)
        binder = Binder(
            self.storage,
            threads,
            shared.packs,
            self.run_cell,
            precise=shared.precise,
            tuner=shared.tuner,
            run_phases=self._phases,
        )
        if shared.tuner is not None:
            self.storage.arena.fill(0)  # whatever lay there might be numbers that are slow to calculate with
        with single_threaded_blas:  # weights are laid out by small products, over which threads would quarrel
            bound = [binder.bind(step) for step in program.steps]
        if shared.tuner is not None:
            shared.tuner.save()
        self.bound: list[Bound] = [b for b in bound if b is not None]
        self.constants = _distinct(binder.direct)
        self.packed = _distinct(binder.held)
        for value in (v for s in program.steps for v in s.inputs):
            if value.source is not None:
                value.source.release()  # the calls hold what they need
        self.scratch_bytes = binder.scratch.peak
        self._inputs = [self.storage.view(v) for v in program.inputs]
        self._outputs = [self.storage.view(v) for v in program.outputs]
        self._sanitizer: Sanitizer | None = None
        if is_on():
            held = [*binder.direct, *binder.held]
            self._sanitizer = Sanitizer(program, self.storage, self.bound, held, binder.scratch)
        self._table = _merged([phase for b in self.bound for phase in (*self._watched(b), *b.phases)])

    def run(self, arrays: Sequence[Array], context: Any = None) -> tuple[Array, ...]:
        """The results for these inputs. They are copies; the plan's memory is its own."""
        self.run_cell.context = context
        with np.errstate(all="ignore"), single_threaded_blas:
            if self._sanitizer is not None:
                return self._sanitizer.run(arrays, self._phases)
            for view, array in zip(self._inputs, arrays, strict=True):
                np.copyto(view, array)
            self._phases(self._table)
        return tuple(np.array(view, order="C") for view in self._outputs)

    def _watched(self, bound: Bound) -> list[list[Part]]:
        """A look at the clock before a step that is large enough for nobody to notice it."""
        touched = sum(v.nbytes for v in (*bound.step.inputs, *bound.step.outputs))
        return [[[(self.run_cell.check, ())]]] if touched >= WATCHED else []

    def profile(self, arrays: Sequence[Array], context: Any = None) -> list[float]:
        """The seconds that each bound step takes in one run."""
        self.run_cell.context = context
        seconds: list[float] = []
        with np.errstate(all="ignore"), single_threaded_blas:
            for view, array in zip(self._inputs, arrays, strict=True):
                np.copyto(view, array)
            for bound in self.bound:
                start = time.perf_counter()
                self._phases(bound.phases)
                seconds.append(time.perf_counter() - start)
        return seconds

    def _phases(self, phases: Phases) -> None:
        for phase in phases:
            if len(phase) == 1 or self.threads == 1:
                for part in phase:
                    run_part(part)
            else:
                pool.run(phase)


def fast_plan(graph: Graph, plan: Plan, threads: int, shared: Shared) -> Executor:
    """The fast plan of a graph whose every type is static, made from its plain one."""
    return Executor(optimize(verified(lower(graph, plan))), threads, shared, graph.file)


def _merged(phases: Sequence[list[Part]]) -> list[list[Part]]:
    """Phases of one part that follow each other become one."""
    table: list[list[Part]] = []
    for phase in phases:
        if len(phase) == 1 and table and len(table[-1]) == 1:
            table[-1][0].extend(phase[0])
        else:
            table.append([list(part) for part in phase])
    return table


def _distinct(arrays: Sequence[Array]) -> list[Array]:
    """Each array once."""
    return list({id(a): a for a in arrays}.values())
