"""Tuning: time alternative kernels once on this machine, and store the fastest in a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np

from irload.plan.backends.channels_last import is_channels_last
from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.ir.program import Step
from irload.plan.memory.memory import Memory
from irload.safety.private_json import read_json, write_json
from irload.system.blas import single_threaded_blas
from irload.system.machine import cache_folder, processor

ROUNDS = 5
"""Number of timed runs of each kernel, after a warm-up; the minimum counts."""


def filled(phases: Phases) -> Phases:
    """Return the phases without empty parts, and without empty phases."""
    parts = ([part for part in phase if part] for phase in phases)
    return [phase for phase in parts if phase]


class Tuner:
    """Chooses kernels by timing. The choices are stored in a file, for later plans and processes."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = tuning_file() if file is None else file
        self._learnt = _read(self._file).get(machine(), {})
        self._new: dict[str, str] = {}

    def find(self, step: Step, memory: Memory, threads: int) -> str | None:
        """Return the stored fastest kernel for an equal step, None if it has not been timed."""
        return self._learnt.get(describe(step, memory, threads))

    def learn(
        self,
        step: Step,
        memory: Memory,
        threads: int,
        kernels: Mapping[str, Callable[[], Phases]],
        run: Callable[[Phases], None],
    ) -> str:
        """Time every kernel on the current contents of memory, and return the name of the fastest."""
        seconds = {name: _least(make(), run) for name, make in kernels.items()}
        best = min(seconds, key=lambda name: seconds[name])
        key = describe(step, memory, threads)
        self._learnt[key] = self._new[key] = best
        return best

    def save(self) -> None:
        """Add new choices to the file. If it cannot be written, a warning is issued."""
        if not self._new:
            return
        everything = _read(self._file)  # another process may have written meanwhile
        everything[machine()] = {**everything.get(machine(), {}), **self._new}
        if not write_json(self._file, everything):
            warnings.warn(f"cannot store tuned kernels in {self._file}", stacklevel=2)
        self._new = {}


def tuning_file() -> Path:
    """Return the path of the stored choices."""
    return cache_folder() / "tuned.json"


def describe(step: Step, memory: Memory, threads: int) -> str:
    """Return the key of a step: its shapes and attributes, and the number of threads."""
    fields = {
        name: getattr(step, name)
        for kind in reversed(type(step).__mro__)
        for name in getattr(kind, "__slots__", ())
        if name not in ("inputs", "outputs", "origin", "epilogue")
    }
    values = (*step.inputs, *step.outputs)
    shapes = [(*v.shape, *(("last",) if is_channels_last(memory, v) else ())) for v in values]
    return f"{type(step).__name__} {shapes} {fields} {getattr(step, 'epilogue', '')} on {threads}"


@cache
def machine() -> str:
    """Return the processor and the versions of the libraries that were timed."""
    libraries = ", ".join(f"{getattr(b, 'architecture', '')} {b.version}" for b in single_threaded_blas.libraries)
    return f"{processor()}, numpy {np.__version__}, {libraries}"


def _least(phases: Phases, run: Callable[[Phases], None]) -> float:
    phases = filled(phases)
    run(phases)
    seconds: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        run(phases)
        seconds.append(perf_counter() - start)
    return min(seconds)


def _read(file: Path) -> dict[str, dict[str, str]]:
    """Return the contents of the file; empty if it is missing or invalid, since choices can be timed again."""
    entries = {k: cast(dict[str, Any], v) for k, v in read_json(file).items() if isinstance(v, dict)}
    return {k: {step: name for step, name in v.items() if isinstance(name, str)} for k, v in entries.items()}
