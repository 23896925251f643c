"""The lengths of the sequences of a block of a recurrent network.

A block runs for as many steps as its longest sequence, and shorter sequences take part in all of them. Forwards, their
states are stored at their ends, and later results are cleared. Backwards, they restart from the initial states at their
ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer
from irload.record import record


@record(eq=False)
class BlockLengths:
    """The lengths, in i64, of `samples` sequences of at most `limit` elements; `stride` is in bytes.

    `first` is the first position of the longest possible sequence: 0 forwards, `limit` − 1 backwards.
    """

    f: Function
    pointer: Pointer
    stride: AnyInt
    samples: AnyInt
    limit: AnyInt
    first: Int

    @property
    def backwards(self) -> Bool:
        """False for sequences of one element, which have the same result in both directions."""
        return self.f.differ(self.first, 0)

    def longest(self) -> AnyInt:
        """The length of the longest sequence."""
        maximum: list[AnyInt] = [self.f.integer(0)]
        for sample in self.f.range(0, self.samples, 1, maximum):
            maximum[0] = self.f.maximum(maximum[0], self._length(sample))
        return maximum[0]

    def each_start(self, time: Int) -> Iterator[Int]:
        """`for sample in …`: a loop over the sequences that start at `time`, backwards."""
        with self.f.when(self.backwards):
            yield from self._each(time + 1)

    def each_end(self, time: Int) -> Iterator[Int]:
        """`for sample in …`: a loop over the sequences that end at `time`, forwards."""
        with self.f.when(self.f.equal(self.first, 0)):
            yield from self._each(time + 1)

    def each_empty(self) -> Iterator[Int]:
        """`for sample in …`: a loop over the sequences without elements."""
        yield from self._each(0)

    def each_beyond(self) -> Iterator[tuple[Int, Int]]:
        """`for sample, time in …`: a loop over the positions beyond the ends of sequences."""
        for sample in self.f.range(0, self.samples):
            for time in self.f.range(self._length(sample), self.limit):
                yield sample, time

    def _each(self, length: AnyInt) -> Iterator[Int]:
        """A loop over the sequences of this length."""
        for sample in self.f.range(0, self.samples):
            with self.f.when(self.f.equal(self._length(sample), length)):
                yield sample

    def _length(self, sample: Int) -> Int:
        return self.f.load_int(self.pointer, sample * self.stride)
