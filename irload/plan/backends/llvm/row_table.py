"""Tables of kernels from groups of launches, built by a few array operations per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import BoundSizes, StepKernel
from irload.plan.backends.llvm.executable import bundled
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.launching import REACH, TOGETHER_CYCLES
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.runtime import AHEAD, ARGUMENTS, ENTRY, FUNCTION, NEXT, SHARED, UNITS, RowTable, nothing
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Step
from irload.record import record


@record(eq=False)
class Selected:
    """The launches of steps that differ only in pointers.

    `positions`: of the steps in the segment; `flops`: of each; `pointers`: of each launch one row per step.
    """

    positions: Sequence[int]
    flops: int
    launches: Sequence[Launch]
    pointers: Sequence[Array]


class BoundTable:
    """A segment bound to one shape. `steps`: all of the segment, symbolic; `code_of`: the code of a kernel."""

    def __init__(
        self,
        steps: Sequence[Step],
        found: Sequence[Selected],
        target: Target,
        threads: int,
        temporary: int,
        sizes: BoundSizes,
        keep: Sequence[Any],
        code_of: Callable[[Kernel], Code],
    ) -> None:
        self._steps, self._found = steps, found
        counts, flops = np.zeros(len(steps), np.int64), [0] * len(steps)
        for part in found:
            counts[list(part.positions)] = len(part.launches)
            for k in part.positions:
                flops[k] = part.flops
        ends = np.cumsum(counts)
        starts = ends - counts
        self._ranges = [r for r in zip(starts.tolist(), ends.tolist(), strict=True) if r[0] < r[1]]
        self.calls = bundled([n for n, count in zip(flops, counts.tolist(), strict=True) if count], self._ranges)
        rows = _Rows(found, starts, int(ends[-1]), sizes.working("temporary", temporary), threads, code_of)
        stride = -(-rows.scratch // 4096) * 4096
        scratch = sizes.working("scratch", stride * threads)
        kept = rows.arguments, rows.codes, keep
        self.table = RowTable(rows.rows, target, threads, stride, scratch, rows.temporary, kept)

    @property
    def kernels(self) -> Sequence[StepKernel]:
        named: dict[int, StepKernel] = {}
        for part in self._found:
            if part.launches:
                main = max((launch.kernel for launch in part.launches), key=lambda k: (not k.prepares, k.cycles))
                named |= {k: StepKernel(self._steps[k], main.name, main.why) for k in part.positions}
        return [named[k] for k in sorted(named)]

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {"working memory": self.table.nbytes}

    def run(self, context: Any) -> None:
        self.table.run_calls(self.calls, nothing if context is None else context.deadline.check)

    def run_kernel(self, index: int, context: Any) -> None:
        self.table.run(*self._ranges[index])

    def release(self) -> None:
        self.calls = []


class _Rows:
    """The rows of a table and the arguments to which they point."""

    def __init__(
        self,
        found: Sequence[Selected],
        starts: Array,
        count: int,
        temporary: Array,
        threads: int,
        code_of: Callable[[Kernel], Code],
    ) -> None:
        self.rows = np.zeros((max(count, 1), ENTRY), np.int64)
        self.temporary = temporary
        self.codes: list[Code] = []
        self.scratch = 0
        self._threads = threads
        numbers = [[launch.kernel.numbers for launch in part.launches] for part in found]
        words = sum(
            len(p) * _width(p, own)
            for part, each in zip(found, numbers, strict=True)
            for p, own in zip(part.pointers, each, strict=True)
        )
        self.arguments = np.zeros(max(words, 1), np.int64)
        self._launches: list[Launch | None] = [None] * count
        self._used, self._cycles = 0, 0.0
        for part, each in zip(found, numbers, strict=True):
            first = starts[list(part.positions)]
            for k, launch in enumerate(part.launches):
                self._add(launch, part.pointers[k], each[k], first + k, code_of)
        if self._cycles < TOGETHER_CYCLES:
            self.rows[:, SHARED] = 0
        self._set_ahead()

    def _add(
        self, launch: Launch, pointers: Array, numbers: Sequence[int], index: Array, code_of: Callable[[Kernel], Code]
    ) -> None:
        """Add the rows `index` with the arguments of a launch at these pointers."""
        kernel, width, count = launch.kernel, _width(pointers, numbers), len(index)
        block = self.arguments[self._used : self._used + count * width].reshape(count, width)
        block[:, : pointers.shape[1]] = pointers
        for k, pointer in enumerate(launch.pointers):
            if isinstance(pointer, Temporary):
                block[:, k] += self.temporary.ctypes.data
        if numbers:
            block[:, pointers.shape[1] :] = numbers
        code = code_of(kernel.code)
        self.codes.append(code)
        shared = self._threads > 1 and launch.is_shared
        self._cycles += kernel.cycles * count if shared else 0
        self.scratch = max(self.scratch, kernel.scratch)
        rows = self.rows
        rows[index, FUNCTION] = code.address
        rows[index, ARGUMENTS] = self.arguments.ctypes.data + 8 * (self._used + width * np.arange(count))
        rows[index, UNITS] = kernel.count
        rows[index, SHARED] = shared
        for k in index.tolist():
            self._launches[k] = launch
        self._used += count * width

    def _set_ahead(self) -> None:
        """Set the weights that each kernel prefetches, as `launching` does."""
        launches = self._launches
        for index, launch in enumerate(launches):
            asked = 0 if launch is None else launch.kernel.asks
            if not asked:
                continue
            for k in (*range(index + 1, min(index + 1 + REACH, len(launches))), index):
                found = launches[k]
                streamed = None if found is None else found.kernel.streamed
                if found is None or streamed is None:
                    continue
                if k > index and isinstance(found.pointers[streamed.pointer], Temporary):
                    continue
                stride = streamed.nbytes // streamed.parts * (streamed.parts // self._threads)
                if streamed.nbytes - (self._threads - 1) * stride >= asked:
                    place = (int(self.rows[k, ARGUMENTS]) - self.arguments.ctypes.data) // 8
                    self.rows[index, AHEAD] = self.arguments[place + streamed.pointer]
                    self.rows[index, NEXT] = stride
                    break
            else:
                raise AssertionError("a kernel prefetches more than its weights")


def _width(pointers: Array, numbers: Sequence[int]) -> int:
    """The words of the arguments of a launch."""
    return max(pointers.shape[1] + len(numbers), 1)
