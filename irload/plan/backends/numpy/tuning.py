"""Tuning: where several kernels would do, each is timed once on this machine, and a file remembers the fastest."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import cast

import numpy as np

from irload.plan.backends.numpy.blas import single_threaded_blas
from irload.plan.backends.numpy.kernels.calls import Part
from irload.plan.ir.program import Step

ROUNDS = 5
"""How often each kernel is timed, after a first time; the least counts."""

Phases = list[list[Part]]
"""Phases follow each other; the parts of a phase may run at the same time."""


class Tuner:
    """Chooses kernels by the clock. What it has learnt stands in a file, for later plans and processes."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = cache_folder() / "tuned.json" if file is None else file
        self._learnt = _read(self._file).get(machine(), {})
        self._new: dict[str, str] = {}

    def told(self, step: Step, threads: int) -> str | None:
        """The kernel that was the fastest for such a step, None where that is not known yet."""
        return self._learnt.get(describe(step, threads))

    def learn(
        self, step: Step, threads: int, ways: Mapping[str, Callable[[], Phases]], run: Callable[[Phases], None]
    ) -> str:
        """Time every way to run the step, on whatever the memory holds, and return the name of the fastest."""
        seconds = {name: _least(make(), run) for name, make in ways.items()}
        best = min(seconds, key=lambda name: seconds[name])
        key = describe(step, threads)
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
                os.replace(name, self._file)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            warnings.warn(f"what tuning has learnt cannot be kept in {self._file}: {error.strerror}", stacklevel=2)
        self._new = {}


def describe(step: Step, threads: int) -> str:
    """What decides how fast kernels are: the shapes and attributes of a step, and the number of threads."""
    fields = {
        name: getattr(step, name)
        for kind in reversed(type(step).__mro__)
        for name in getattr(kind, "__slots__", ())
        if name not in ("inputs", "outputs", "origin", "epilogue")
    }
    shapes = [(*v.shape, "last") if v.channels_last else v.shape for v in (*step.inputs, *step.outputs)]
    return f"{type(step).__name__} {shapes} {fields} {getattr(step, 'epilogue', '')} on {threads}"


@cache
def machine() -> str:
    """The processor and the libraries whose speed was measured."""
    libraries = ", ".join(f"{getattr(b, 'architecture', '')} {b.version}" for b in single_threaded_blas.libraries)
    return f"{processor()}, numpy {np.__version__}, {libraries}"


def processor(cpuinfo: str = "/proc/cpuinfo") -> str:
    """The name of the processor as far as it is known."""
    with suppress(OSError), open(cpuinfo, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return sys.platform


def cache_folder() -> Path:
    """Where irload keeps what it can find out again: IRLOAD_CACHE_DIR, or `irload` in the user's cache."""
    own = os.environ.get("IRLOAD_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        return Path(base) / "irload"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "irload"


def _least(phases: Phases, run: Callable[[Phases], None]) -> float:
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
