"""Tables of kernels from groups of launches, built by a few array operations per group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import BoundSizes, StepKernel
from irload.plan.backends.llvm.executable import bundled
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.launching import TOGETHER_CYCLES, weights_ahead
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.runtime import RowTable, nothing
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import AHEAD, ARGUMENTS, ENTRY, FUNCTION, NEXT, SHARED, UNITS
from irload.plan.ir.program import Step
from irload.record import record


@record()
class External:
    """A pointer of a launch: for each step `distance` bytes behind one of the values `numbers`."""

    launch: int
    column: int
    numbers: Array
    distance: int


@record(eq=False)
class Selected:
    """The launches of steps that differ only in pointers.

    `positions`: of the steps in the segment; `flops`: of each; `pointers`: of each launch one row per step; `keep`:
    arrays that must outlive the launches; `external`: pointers into memory outside the arena, None if they are unknown.
    """

    positions: Sequence[int]
    flops: int
    launches: Sequence[Launch]
    pointers: Sequence[Array]
    keep: Sequence[Array]
    external: Sequence[External] | None = ()


class BoundTable:
    """A segment bound to one shape.

    `steps`: all of the segment, symbolic; `groups`: the launches of each group of steps; `code_of`: the code of a
    kernel. `previous`: the table of another shape, and the numbers of the groups that have changed.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        groups: Sequence[Sequence[Selected]],
        target: Target,
        threads: int,
        temporary: int,
        sizes: BoundSizes,
        code_of: Callable[[Kernel], Code],
        previous: tuple[BoundTable, Sequence[int]] | None = None,
    ) -> None:
        self._steps, self.groups = steps, groups
        working = sizes.working("temporary", temporary)
        rows: TableRows | None = None
        before: RowTable | None = None
        if previous is not None:
            last, changed = previous
            self._flops, self._ranges = last._flops.copy(), last._ranges
            for part in (part for k in changed for part in groups[k] if part.launches):
                self._flops.update(dict.fromkeys(part.positions, part.flops))
            rows, before = last._rows.patched(groups, changed, working, code_of), last.table
        if rows is None:
            before = None
            found = [part for group in groups for part in group]
            counts = np.zeros(len(steps), np.int64)
            flops: dict[int, int] = {}
            for part in found:
                counts[list(part.positions)] = len(part.launches)
                if part.launches:
                    flops.update(dict.fromkeys(part.positions, part.flops))
            self._flops = {k: flops[k] for k in sorted(flops)}
            ends = np.cumsum(counts)
            starts = ends - counts
            self._ranges = [r for r in zip(starts.tolist(), ends.tolist(), strict=True) if r[0] < r[1]]
            rows = TableRows(groups, starts, int(ends[-1]), working, threads, code_of)
        self._rows = rows
        self.calls = bundled(list(self._flops.values()), self._ranges)
        stride = -(-rows.scratch // 4096) * 4096
        scratch = sizes.working("scratch", stride * threads)
        kept = rows, groups, sizes.memory.arena, code_of
        if before is None:
            self.table = RowTable(rows.rows, target, threads, stride, scratch, rows.temporary, kept)
        else:
            self.table = before.like(rows.rows, stride, scratch, kept)

    @property
    def kernels(self) -> Sequence[StepKernel]:
        named: dict[int, StepKernel] = {}
        for part in (part for group in self.groups for part in group):
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


@record(eq=False)
class Block:
    """The arguments of one launch for the steps of a group: `pointers` and numbers from word `start` on.

    `index`: the rows of the steps.
    """

    launch: Launch
    kernel: Kernel
    """The kernel whose code it is."""
    code: Code
    start: int
    shape: tuple[int, int]
    index: Array
    shared: bool
    scratch: int


class TableRows:
    """The rows of a table and the arguments to which they point."""

    def __init__(
        self,
        groups: Sequence[Sequence[Selected]],
        starts: Array,
        count: int,
        temporary: Array,
        threads: int,
        code_of: Callable[[Kernel], Code],
    ) -> None:
        self.rows = np.zeros((max(count, 1), ENTRY), np.int64)
        self.temporary = temporary
        self._threads = threads
        self._launches: list[Launch | None] = [None] * count
        placed: list[list[tuple[Launch, Array, Sequence[int], Array, int]]] = []
        used = 0
        for group in groups:
            placed.append([])
            for launch, pointers, part, k in _launches(group):
                numbers = launch.kernel.numbers
                placed[-1].append((launch, pointers, numbers, starts[list(part.positions)] + k, used))
                used += len(pointers) * _width(pointers, numbers)
        self.arguments = np.zeros(max(used, 1), np.int64)
        self._blocks = [[self._written(*each, code_of) for each in group] for group in placed]
        self._set_shared()
        self._set_ahead()

    def patched(
        self,
        groups: Sequence[Sequence[Selected]],
        changed: Sequence[int],
        temporary: Array,
        code_of: Callable[[Kernel], Code],
    ) -> TableRows | None:
        """A copy in which the launches of some groups differ. None if their arguments have another form."""
        if temporary is not self.temporary:
            return None
        other = copy(self)
        other.rows, other.arguments = self.rows.copy(), self.arguments.copy()
        other.rows[:, ARGUMENTS] += other.arguments.ctypes.data - self.arguments.ctypes.data
        other._launches, other._blocks = self._launches.copy(), self._blocks.copy()
        prefetches = False
        for k in changed:
            own = list(_launches(groups[k]))
            if len(own) != len(self._blocks[k]):
                return None
            blocks: list[Block] = []
            for block, (launch, pointers, *_) in zip(self._blocks[k], own, strict=True):
                numbers = launch.kernel.numbers
                if block.shape != (len(pointers), _width(pointers, numbers)):
                    return None
                last = block.kernel, block.code
                blocks.append(other._written(launch, pointers, numbers, block.index, block.start, code_of, last))
                kernels = block.launch.kernel, launch.kernel
                prefetches = prefetches or any(k.asks or k.streamed is not None for k in kernels)
            other._blocks[k] = blocks
        other._set_shared()
        if prefetches:
            other._set_ahead()
        return other

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory per thread."""
        return max((block.scratch for group in self._blocks for block in group), default=0)

    def _written(
        self,
        launch: Launch,
        pointers: Array,
        numbers: Sequence[int],
        index: Array,
        start: int,
        code_of: Callable[[Kernel], Code],
        last: tuple[Kernel, Code] | None = None,
    ) -> Block:
        """Write the rows `index` with the arguments of a launch at these pointers. `last`: their code before."""
        kernel, shape = launch.kernel, (len(index), _width(pointers, numbers))
        count, width = shape
        block = self.arguments[start : start + count * width].reshape(shape)
        block[:, : pointers.shape[1]] = pointers
        for k, pointer in enumerate(launch.pointers):
            if isinstance(pointer, Temporary):
                block[:, k] += self.temporary.ctypes.data
        if numbers:
            block[:, pointers.shape[1] :] = numbers
        own = kernel.code
        code = (
            last[1] if last is not None and (last[0] is own or last[0] == own) else code_of(own)
        )  # comparing is faster than hashing
        rows = self.rows
        rows[index, FUNCTION] = code.address
        rows[index, ARGUMENTS] = self.arguments.ctypes.data + 8 * (start + width * np.arange(count))
        rows[index, UNITS] = kernel.count
        for k in index.tolist():
            self._launches[k] = launch
        shared = self._threads > 1 and launch.is_shared
        return Block(launch, own, code, start, shape, index, shared, kernel.scratch)

    def _set_shared(self) -> None:
        """Set which kernels the threads share: none if there is little work."""
        if self._threads == 1:
            return
        blocks = [block for group in self._blocks for block in group if block.shared]
        self.rows[:, SHARED] = 0
        if sum(block.launch.kernel.cycles * len(block.index) for block in blocks) >= TOGETHER_CYCLES:
            for block in blocks:
                self.rows[block.index, SHARED] = 1

    def _set_ahead(self) -> None:
        """Set the weights that each kernel prefetches."""
        self.rows[:, [AHEAD, NEXT]] = 0
        for index, reader, pointer, stride in weights_ahead(self._launches, self._threads):
            place = (int(self.rows[reader, ARGUMENTS]) - self.arguments.ctypes.data) // 8
            self.rows[index, AHEAD] = self.arguments[place + pointer]
            self.rows[index, NEXT] = stride


def _launches(group: Sequence[Selected]) -> Iterator[tuple[Launch, Array, Selected, int]]:
    """The launches of a group with their pointers, and each as a number of a part."""
    for part in group:
        for k, (launch, pointers) in enumerate(zip(part.launches, part.pointers, strict=True)):
            yield launch, pointers, part, k


def _width(pointers: Array, numbers: Sequence[int]) -> int:
    """The words of the arguments of a launch."""
    return max(pointers.shape[1] + len(numbers), 1)
