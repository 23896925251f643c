"""Growth of work with the size of the input: compares two sizes in one run, independent of the machine's speed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

Task = Callable[[], object]

FACTOR = 16
"""Ratio of the larger input's size to the smaller one's."""

LINEAR = 2.5
"""Growth that still counts as linear: 1 plus a margin for caches and noise. Quadratic work grows by FACTOR."""


def growth(prepare: Callable[[int], Task], large: int) -> float:
    """Processor time for size `large`, divided by FACTOR times the time for size `large // FACTOR`: 1 for linear work.

    `prepare(size)` returns the task to be measured. Each time is the minimum of three runs; a growth below LINEAR is
    not measured again.
    """
    few, many = prepare(large // FACTOR), prepare(large)
    few()  # the first run imports modules
    least = min(_spent(few) for _ in range(3))
    smallest = FACTOR + 1.0
    for _ in range(3):
        smallest = min(smallest, _spent(many) / least / FACTOR)
        if smallest < LINEAR:
            break
        least = min(least, _spent(few))
    return smallest


def calls(task: Task) -> int:
    """The number of Python and C function calls of a task. It is the same in every run and on every machine."""
    count = 0

    def count_calls(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # collecting garbage would call finalizers of earlier objects
    sys.setprofile(count_calls)
    try:
        task()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def _spent(task: Task) -> float:
    begin = process_time()
    task()
    return process_time() - begin
