"""Tables of kernels from launches: arguments, division among threads, weights to prefetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.runtime import Table, working_memory
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import AHEAD, ARGUMENTS, ENTRY, FUNCTION, NEXT, SHARED, UNITS
from irload.plan.backends.llvm.tuning import REACH, TOGETHER_CYCLES
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.backends.base import BoundSizes
    from irload.plan.backends.llvm.row_table import Patch
    from irload.plan.backends.llvm.traced_selection import TracedSelection, Words

Cycles = Sequence[tuple[Array, float]]
"""The rows of kernels that threads may share, and the cycles of each."""


@record(eq=False)
class GroupLaunch:
    """A launch of the steps of a group: one row of `pointers` per step, temporaries as offsets.

    `create`: the launch of the first step, with `bases` as pointers; creating its kernel takes longer than the others.
    `function`, `numbers`, `units`, `scratch`: the address of the code of the kernel, and properties, which take time.
    """

    create: Callable[[], Launch]
    bases: Sequence[int | Temporary]
    function: int
    pointers: Array
    numbers: Sequence[int]
    units: int
    scratch: int

    @property
    def launch(self) -> Launch:
        """The launch of the first step."""
        return self.create()


@record(eq=False)
class Selected:
    """The launches of steps that differ only in pointers.

    `positions`: of the steps in the segment; `flops`: of each; `keep`: arrays that must outlive the launches; `traced`:
    the selection of which these are the launches at one shape.
    """

    positions: Sequence[int]
    flops: int
    launches: Sequence[GroupLaunch]
    keep: Sequence[Array]
    traced: TracedSelection | None = None


@record(eq=False)
class Block:
    """The arguments of one launch for the steps of a group: `pointers` and numbers from word `start` on.

    `index`: the rows of the steps.
    """

    start: int
    shape: tuple[int, int]
    index: Array


class Codes:
    """The code of kernels for a target, looked up in the library once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._found: dict[Kernel, Code] = {}

    def code(self, kernel: Kernel) -> Code:
        """The code of a kernel."""
        found = self._found.get(kernel)
        if found is None:
            found = self._found[kernel] = library.code(kernel, self._target)
        return found

    def launch(self, launch: Launch, pointers: Array | None = None) -> GroupLaunch:
        """A launch with the pointers of each step of a group, by default of one step."""
        kernel, function = launch.kernel, self.code(launch.kernel.code).address
        if pointers is None:
            own = [p.offset if isinstance(p, Temporary) else p for p in launch.pointers]
            pointers = np.array([own], np.int64)
        properties = kernel.numbers, kernel.count, kernel.scratch
        return GroupLaunch(lambda: launch, launch.pointers, function, pointers, *properties)


class TableRows:
    """The rows of a table of kernels and the arguments to which they point.

    `groups`: the launches of each group of the `steps` of a segment; `temporary`: memory that the kernels of one step
    share.
    """

    def __init__(self, groups: Sequence[Sequence[Selected]], steps: int, temporary: Array, threads: int) -> None:
        counts = np.zeros(steps, np.int64)
        for part in (part for group in groups for part in group):
            counts[list(part.positions)] = len(part.launches)
        ends = np.cumsum(counts)
        starts = ends - counts
        self.ranges = [r for r in zip(starts.tolist(), ends.tolist(), strict=True) if r[0] < r[1]]
        """The rows of each step that has kernels."""
        self.rows = np.zeros((max(sum(counts.tolist()), 1), ENTRY), np.int64)
        self.temporary = temporary
        self._threads = threads
        launches: list[Launch | None] = [None] * len(self.rows)
        self._placed: list[list[tuple[GroupLaunch, Block]]] = []
        used = 0
        for group in groups:
            self._placed.append([])
            for part in group:
                index = starts[list(part.positions)]
                for k, each in enumerate(part.launches):
                    count, width = each.pointers.shape
                    width = max(width + len(each.numbers), 1)
                    block = Block(used, (count, width), index + k)
                    self._placed[-1].append((each, block))
                    used += count * width
                    if part.traced is None:  # traced launches neither prefetch weights nor stream them
                        for row in block.index.tolist():
                            launches[row] = each.launch
        self.arguments = np.zeros(max(used, 1), np.int64)
        for each, block in self.placed:
            self._write(each, block)
        self._scratch = [max((each.scratch for each, _ in group), default=0) for group in self._placed]
        """For each group the bytes of scratch memory per thread."""
        self._cycles: list[Cycles] = []
        """For each group the kernels that threads may share."""
        if threads > 1:
            created = ([(each.launch, block) for each, block in group if each.units > 1] for group in self._placed)
            self._cycles = [
                [(block.index, launch.kernel.cycles) for launch, block in group if launch.is_shared]
                for group in created
            ]
        self._set_shared()
        for index, reader, pointer, stride in weights_ahead(launches, threads):
            place = (int(self.rows[reader, ARGUMENTS]) - self.arguments.ctypes.data) // 8
            self.rows[index, AHEAD] = self.arguments[place + pointer]
            self.rows[index, NEXT] = stride

    @property
    def placed(self) -> Iterator[tuple[GroupLaunch, Block]]:
        """All launches and their arguments, group by group."""
        return (pair for group in self._placed for pair in group)

    def blocks(self, group: int) -> list[Block]:
        """The arguments of the launches of a group."""
        return [block for _, block in self._placed[group]]

    @property
    def stride(self) -> int:
        """Bytes of scratch memory per thread, in whole pages."""
        return -(-max(self._scratch, default=0) // 4096) * 4096

    def copied(self) -> TableRows:
        """A copy of the rows and of the arguments."""
        other = copy(self)
        other.rows, other.arguments, other._scratch = self.rows.copy(), self.arguments.copy(), self._scratch.copy()
        other.rows[:, ARGUMENTS] += other.arguments.ctypes.data - self.arguments.ctypes.data
        other._cycles = self._cycles.copy()
        return other

    def update(self, changed: Sequence[int], patch: Patch, words: Sequence[Words], sizes: BoundSizes) -> None:
        """Write other words of the groups that change."""
        patch.write(words, self.rows, self.arguments, sizes)
        for k, scratch in zip(changed, patch.scratch(words), strict=True):
            self._scratch[k] = scratch
        if self._threads > 1:
            for k, cycles in zip(changed, patch.cycles(words), strict=True):
                self._cycles[k] = cycles
            self._set_shared()

    def _write(self, each: GroupLaunch, block: Block) -> None:
        """Write the rows of a block and its arguments."""
        count, width = block.shape
        words = self.arguments[block.start : block.start + count * width].reshape(block.shape)
        pointers = each.pointers.shape[1]
        words[:, :pointers] = each.pointers
        for k, pointer in enumerate(each.bases):
            if isinstance(pointer, Temporary):
                words[:, k] += self.temporary.ctypes.data
        if each.numbers:
            words[:, pointers:] = each.numbers
        rows, index = self.rows, block.index
        rows[index, FUNCTION] = each.function
        rows[index, ARGUMENTS] = self.arguments.ctypes.data + 8 * (block.start + width * np.arange(count))
        rows[index, UNITS] = each.units

    def _set_shared(self) -> None:
        """Set which kernels the threads share: none if there is little work."""
        shared = [each for group in self._cycles for each in group]
        self.rows[:, SHARED] = 0
        if sum(cycles * len(index) for index, cycles in shared) >= TOGETHER_CYCLES:
            for index, _ in shared:
                self.rows[index, SHARED] = 1


def launched(launches: Sequence[Launch], target: Target, threads: int, temporary: int) -> Table:
    """The table of these launches. `temporary`: bytes that the kernels of one step share."""
    codes = Codes(target)
    groups = [[Selected([k], 0, [codes.launch(launch)], [])] for k, launch in enumerate(launches)]
    rows = TableRows(groups, len(groups), working_memory("temporary", temporary), threads)
    scratch = working_memory("scratch", rows.stride * threads)
    return Table(rows.rows, target, threads, rows.stride, scratch, rows.temporary, (rows, codes))


def weights_ahead(launches: Sequence[Launch | None], threads: int) -> Iterator[tuple[int, int, int, int]]:
    """The weights to prefetch during each kernel: the kernel, their reader, its pointer, and the bytes between threads.

    These are the weights of the next kernel, or of this one if no constant weights of sufficient size follow soon.
    """
    for index, launch in enumerate(launches):
        if launch is None or not launch.kernel.asks:
            continue
        for k in (*range(index + 1, min(index + 1 + REACH, len(launches))), index):
            reader = launches[k]
            streamed = None if reader is None else reader.kernel.streamed
            if reader is None or streamed is None:
                continue
            if k > index and isinstance(reader.pointers[streamed.pointer], Temporary):
                continue
            stride = streamed.nbytes // streamed.parts * (streamed.parts // threads)
            if streamed.nbytes - (threads - 1) * stride >= launch.kernel.asks:
                yield index, k, streamed.pointer, stride
                break
        else:
            raise AssertionError("a kernel prefetches more than its weights")
