"""Tasks in child processes, so that a crash (of OpenVINO's runtime, for example) costs a single result."""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import irload.ops
import irload.plan

HANGING = 600
"""Seconds without a result after which a task counts as hanging: far more than the slowest machine needs."""


@dataclass(frozen=True)
class Died:
    """The result of a task whose process ended early."""

    how: str

    def __str__(self) -> str:
        return f"the process died: {self.how}"


def preload() -> None:
    """Import the modules that tasks need once, before forking: the operations, the planner and OpenVINO."""
    for package in (irload.ops, irload.plan):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module("irload.runtime.compiled_model")


def in_children(
    task: Callable[[int], Any], count: int, seconds: float = HANGING, memory: int | None = None
) -> Iterator[Any]:
    """The results of `task(0)`, `task(1)`, … in order, computed by a child process, or Died if it did not survive.

    `seconds`: time after which a task counts as hanging. `memory`: bytes of address space that a child may add. It
    forks, so call it before anything starts threads.
    """
    fork = multiprocessing.get_context("fork")
    done = 0
    while done < count:
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_work, args=(task, done, count, there, memory), daemon=True)
        child.start()
        there.close()
        try:
            while done < count and here.poll(seconds):
                yield here.recv()
                done += 1
            died = None if done == count else f"no result after {seconds:g} s"
        except EOFError:
            child.join()
            died = _ending(child.exitcode or 0)
        finally:
            child.kill()
            child.join()
            here.close()
        if died is not None:
            yield Died(died)
            done += 1


def _work(task: Callable[[int], Any], start: int, count: int, pipe: Any, memory: int | None) -> None:
    if memory is not None:
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    for k in range(start, count):
        pipe.send(task(k))


def _ending(code: int) -> str:
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
