"""How work grows with the size of its input: two sizes compared in one run, on whatever machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

Task = Callable[[], object]

FACTOR = 16
"""How many times as large the larger input is."""

LINEAR = 2.5
"""Growth that still counts as linear. Quadratic work alone grows by FACTOR; the rest is for caches and noise."""


def growth(prepare: Callable[[int], Task], large: int) -> float:
    """Processor time of the task for `large` over FACTOR times that for the FACTOR-th part of it: 1 is linear.

    `prepare(size)` gives the task to be measured. Both times are the least of three; what has passed is not repeated.
    """
    few, many = prepare(large // FACTOR), prepare(large)
    few()  # the first one loads what is loaded on first need
    least = min(_spent(few) for _ in range(3))
    found = FACTOR + 1.0
    for _ in range(3):
        found = min(found, _spent(many) / least / FACTOR)
        if found < LINEAR:
            break
        least = min(least, _spent(few))
    return found


def calls(task: Task) -> int:
    """The number of calls of functions, in Python or in C, that a task makes: the same each time, on any machine."""
    count = 0

    def count_calls(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # it calls what others left behind
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
