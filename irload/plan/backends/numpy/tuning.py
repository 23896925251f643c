"""Tuning: where several kernels would do, each is timed once on this machine, and a file remembers the fastest."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import cast

import numpy as np

from irload.machine import cache_folder, processor
from irload.plan.backends.channels_last import is_channels_last
from irload.plan.backends.numpy.blas import single_threaded_blas
from irload.plan.ir.program import Step
from irload.plan.memory.memory import Memory
from irload.plan.threads import Part
from irload.portable import replace

ROUNDS = 5
"""How often each kernel is timed, after a first time; the least counts."""

Phases = list[list[Part]]
"""Phases follow each other; the parts of a phase may run at the same time."""


def filled(phases: Phases) -> Phases:
    """The phases without parts that call nothing, and without phases of no parts."""
    parts = ([part for part in phase if part] for phase in phases)
    return [phase for phase in parts if phase]


class Tuner:
    """Chooses kernels by the clock. The choices are kept in a file, for later plans and processes."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = tuning_file() if file is None else file
        self._learnt = _read(self._file).get(machine(), {})
        self._new: dict[str, str] = {}

    def find(self, step: Step, memory: Memory, threads: int) -> str | None:
        """The kernel that was the fastest for such a step, None where that is not known yet."""
        return self._learnt.get(describe(step, memory, threads))

    def learn(
        self,
        step: Step,
        memory: Memory,
        threads: int,
        kernels: Mapping[str, Callable[[], Phases]],
        run: Callable[[Phases], None],
    ) -> str:
        """Time every kernel on whatever the memory holds, and return the name of the fastest."""
        seconds = {name: _least(make(), run) for name, make in kernels.items()}
        best = min(seconds, key=lambda name: seconds[name])
        key = describe(step, memory, threads)
        self._learnt[key] = self._new[key] = best
        return best

    def save(self) -> None:
        """Add what is new to the file. That it cannot be written is no reason to fail."""
        if not self._new:
            return
        import tempfile  # which takes long to load, and is seldom needed

        everything = _read(self._file)  # others may have written meanwhile
        everything[machine()] = {**everything.get(machine(), {}), **self._new}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._file.parent, prefix=".tuned")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                    json.dump(everything, stream, indent=1, sort_keys=True)
                replace(name, self._file)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            warnings.warn(f"what tuning has learnt cannot be kept in {self._file}: {error.strerror}", stacklevel=2)
        self._new = {}


def tuning_file() -> Path:
    """Where choices are kept."""
    return cache_folder() / "tuned.json"


def describe(step: Step, memory: Memory, threads: int) -> str:
    """What decides how fast kernels are: the shapes and attributes of a step, and the number of threads."""
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
    """The processor and the libraries whose speed was measured."""
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
    """The file's content; nothing where it is missing or not what it should be, as it can be found out again."""
    try:
        found: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    entries = cast(dict[str, object], found)
    return {k: cast(dict[str, str], v) for k, v in entries.items() if isinstance(v, dict)}
