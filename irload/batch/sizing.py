"""Chooses the number of samples per inference by timing the inferences of the job itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from irload.runtime.plans import PLANS

PAYS = 0.95
"""A larger batch size is tried only if the last one reduced the time per sample to this fraction."""
FACTOR = 4
"""Ratio of consecutive sizes that are tried."""
ROUNDS = 2
"""Number of inferences that are timed per batch size after planning; only one if it takes LONG seconds."""
LONG = 0.02


@dataclass(slots=True)
class _Timing:
    """Times for one shape and batch size: the first inference, which creates the plan, and the fastest later one."""

    first: float
    best: float | None = None
    count: int = 0


@dataclass(slots=True)
class Sizing:
    """Chooses the sizes of inferences from `min_samples` to `max_samples` samples.

    Starting with `min_samples`, sizes grow by FACTOR as long as the time per sample falls; each is tried on samples of
    the job, whose results are used. Samples of a rare shape share an inference only if that is faster than running them
    by existing plans, including the time to create the plan.
    """

    min_samples: int
    max_samples: int
    remaining: int | None = None
    """Number of samples to come, if known. A plan is created only if it can save more time than it takes."""
    size: int = 0
    """The current size."""
    settled: bool = False
    _timings: OrderedDict[tuple[Hashable, int], _Timing] = field(default_factory=OrderedDict)
    _planning: float | None = None
    _smaller: int = 0

    def __post_init__(self) -> None:
        self.size = self.size or max(self.min_samples, 1)
        self.settled = self.settled or self.size >= self.max_samples

    def choose(self, shape: Hashable, available: int) -> int:
        """The size of the next inference for `available` samples of a shape; a larger size requires padding."""
        if available <= self.min_samples:
            return self.min_samples
        if available >= self.size:
            return self.size
        planned = sorted(size for key, size in self._timings if key == shape)
        if available in planned or not planned:
            return available
        times = {size: self._time(self._timings[shape, size]) for size in planned}
        a_sample = min(t / size for size, t in times.items())
        costs = {available: (self._planning or 0.0) + available * a_sample}
        for size, t in times.items():
            if size > available > 1:
                costs[size] = t
            elif size < available:
                costs[size] = t / size * available
        return min(costs, key=lambda size: costs[size])

    def record(self, shape: Hashable, size: int, seconds: float, samples: int) -> None:
        """Record an inference of `size` samples, of which `samples` were not padding."""
        if self.remaining is not None:
            self.remaining = max(self.remaining - samples, 0)
        timing = self._timings.get((shape, size))
        if timing is None:
            self._timings[shape, size] = _Timing(seconds)
            if len(self._timings) > PLANS:
                self._timings.popitem(last=False)
            return
        self._timings.move_to_end((shape, size))
        timing.best = seconds if timing.best is None else min(timing.best, seconds)
        timing.count += 1
        self._planning = max(timing.first - timing.best, 0.0)
        if not self.settled and size == self.size and timing.count >= (1 if timing.best >= LONG else ROUNDS):
            self._grow(shape, timing.best / size)

    def refuse(self, size: int) -> None:
        """Record that an inference of `size` samples failed: later sizes stay below it."""
        self.max_samples = min(self.max_samples, max(size // FACTOR, self.min_samples, 1))
        self.size = min(self.size, self.max_samples)
        self.settled = True

    def _grow(self, shape: Hashable, a_sample: float) -> None:
        """Try the next size if the last step was faster, and enough samples remain to make up for the measurement."""
        smaller = self._timings.get((shape, self._smaller))
        before = None if smaller is None or smaller.best is None else smaller.best / self._smaller
        if before is not None and a_sample > before * PAYS:
            self.settled = True
            self.size = self._smaller
        elif self.size >= self.max_samples:
            self.settled = True
        elif self.remaining is None or self._worthwhile(a_sample, self.remaining):
            self._smaller, self.size = self.size, min(self.size * FACTOR, self.max_samples)

    def _worthwhile(self, a_sample: float, remaining: int) -> bool:
        """True if enough samples remain to time the next size, and to regain the planning time at a gain of a fifth."""
        return remaining >= 2 * FACTOR * self.size and remaining * a_sample / 5 > (self._planning or 0.0)

    def _time(self, timing: _Timing) -> float:
        return max(timing.first - (self._planning or 0.0), 0.0) if timing.best is None else timing.best
