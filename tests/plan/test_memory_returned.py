"""Memory freed while weights are packed is returned to the system."""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest

from irload import compile_model
from irload.plan import executor
from irload.system.portable import give_back_memory, resident_memory
from tests.plan.exact import Exact

PART, COUNT = 60_000, 1000
"""Bytes of an array that malloc takes from its heap, and the number of arrays."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has a function for it")
def test_freed_memory_is_returned_to_the_system() -> None:
    arrays = [np.ones(PART, np.uint8) for _ in range(COUNT)]
    last = np.ones(PART, np.uint8)  # the heap cannot shrink below it automatically
    del arrays
    before = resident_memory()
    give_back_memory()
    after = resident_memory()
    assert before is not None
    assert after is not None
    assert before - after > PART * COUNT // 2
    assert last.all()


def test_other_systems_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr("ctypes.CDLL", None)
    give_back_memory()


@pytest.mark.parametrize(("large", "times"), [(0, 1), (1 << 20, 0)])
def test_memory_is_returned_after_large_constants(large: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    monkeypatch.setattr(executor, "LARGE", large)
    monkeypatch.setattr(executor, "give_back_memory", lambda: calls.append(None))
    net = Exact()
    model = net.model(net.op("MatMul", net.input(3, 5), net.weights(5, 7)))
    compile_model(model, 1)
    assert len(calls) == times
