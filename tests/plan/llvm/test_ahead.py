"""A kernel prefetches weights of the next kernel that streams weights. The threads divide them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.kernel import Launch, Streamed, Temporary, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.runtime import KernelTable
from irload.plan.backends.llvm.target import AVX2, _flags
from irload.plan.backends.llvm.team import AHEAD, AHEAD_STRIDE
from irload.record import record
from tests.plan.llvm.tiny import Units

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")

OWN, NEXT = 1 << 20, 1 << 21
"""Addresses of the weights of a kernel and of the next one; never read."""


@record()
class Notes(Units):
    """Writes the address that the thread prefetches (`ahead`) for each unit. Pointers: output, weights."""

    units: int
    streamed: Streamed | None = None  # type: ignore[assignment]

    def write(self, function: Function) -> None:
        f = function
        out = f.load_pointer(f["arguments"])
        for index in f.range(f["begin"], f["end"]):
            f.emit(f"store ptr {f['ahead']}, ptr {out + index * 8}, align 8")


def prefetching(
    ahead_bytes: int, others: Sequence[Streamed | None], threads: int, weights: int | Temporary = NEXT
) -> tuple[KernelTable, np.ndarray]:
    """The table of a kernel with 1024 bytes of weights, followed by kernels that stream `others`; and its output."""
    out, rest = np.zeros(threads, np.int64), np.zeros(threads, np.int64)
    launches = [Launch(Notes(threads, Streamed(1, 1024, 1, ahead_bytes)), [address(out), OWN])]
    launches += [Launch(Notes(threads, streamed), [address(rest), weights]) for streamed in others]
    return launched(launches, AVX2, threads, 64), out


def noted(
    ahead_bytes: int, others: Sequence[Streamed | None], threads: int, weights: int | Temporary = NEXT
) -> list[int]:
    """The address that the first kernel prefetches in each unit. Any thread may run any unit."""
    table, out = prefetching(ahead_bytes, others, threads, weights)
    table.run(0, 1 + len(others))
    return out.tolist()


def addresses(ahead_bytes: int, others: Sequence[Streamed | None], threads: int) -> list[int]:
    """The address that each thread prefetches in parts of the first kernel."""
    table, _ = prefetching(ahead_bytes, others, threads)
    first, stride = table.rows[0, [AHEAD, AHEAD_STRIDE]].tolist()
    return [first + number * stride for number in range(threads)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_weights_that_all_threads_read(threads: int) -> None:
    assert noted(1024, [Streamed(1, 4096, 1)], threads) == [NEXT] * threads


def test_parts_of_the_threads() -> None:
    panels = Streamed(1, 8 * 512, 8)
    assert noted(512, [panels], 1) == [NEXT]
    assert addresses(512, [panels], 2) == [NEXT, NEXT + 4 * 512]
    assert addresses(512, [panels], 3) == [NEXT + k * 2 * 512 for k in range(3)]
    assert set(noted(512, [panels], 3)) <= set(addresses(512, [panels], 3))


def test_only_the_next_kernel_counts() -> None:
    weights = Streamed(1, 4096, 1)
    assert noted(1024, [None, weights], 1) == [NEXT]
    assert noted(1024, [None, None, weights], 1) == [OWN]
    assert noted(0, [weights], 1) == [0]


@pytest.mark.parametrize("threads", [1, 2])
def test_own_weights_if_the_next_are_too_few(threads: int) -> None:
    """Prefetching more than the next kernel's weights could access unmapped addresses."""
    assert noted(1024, [Streamed(1, 1023, 1)], threads) == [OWN] * threads
    assert noted(1024, [Streamed(1, 2 * 1000, 2)], 2) == [OWN] * 2


def test_own_weights_if_the_next_are_not_computed_yet() -> None:
    assert noted(1024, [Streamed(1, 4096, 1)], 1, Temporary(0)) == [OWN]
