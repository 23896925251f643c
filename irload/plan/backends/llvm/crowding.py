"""Reduces the number of threads that share kernels while other processes are busy.

A system with more busy threads than processors suspends some of them for milliseconds. If a thread is suspended during
a part of a kernel, all others wait for this part. With n threads, one thread fewer costs at most 1/n of the time. If
suspensions cost more, the leader uses one helper fewer during a quiet period, then uses it again. If the machine is
still busy, the next quiet period is twice as long; otherwise it has the minimum length.
"""

from __future__ import annotations

from collections.abc import Callable

from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.waiting import Waits
from irload.record import record

MILLISECOND = 2_500_000
"""Cycles of the time stamp counter per millisecond, about: it runs at 2 to 3.5 GHz."""
SHORTEST_QUIET, LONGEST_QUIET = 8 * MILLISECOND, 512 * MILLISECOND
"""The minimum and the maximum time during which a helper is not used, in cycles."""
LIMIT, CREDIT = 3 * MILLISECOND, 2 * MILLISECOND
"""Limits of the lost cycles in excess of the tolerated share (the debt), in cycles.

If the debt exceeds `LIMIT`, the leader uses one helper fewer. Kernels that lose less than the tolerated share reduce
the debt, but not below −`CREDIT`.

A suspension lasts up to 4 ms, or less than a millisecond for a short-lived process.
"""

THREADS, MOST, UNTIL, QUIET, RESUMED, DEBT, SUSPENSIONS, LEAD = range(0, 64, 8)
"""Offsets of the words: the number of threads; the number of threads that may take parts (`most`); the time at which
`most` increases by one; the length of the current quiet period; the time of the last increase; the lost cycles; the
number of suspensions of the leader; the cycles by which the leader's part of the last kernel exceeded a helper's.
"""


@record()
class Crowding:
    """Emits the leader's decisions. `words`: the address of their state. Times are in cycles."""

    f: Function
    words: Pointer

    def _load(self, offset: int) -> Int:
        return self.f.load_int(self.words, offset)

    def _store(self, value: AnyInt, offset: int) -> None:
        self.f.store_scalar(value, self.words, offset)

    def invited(self, threads: AnyInt) -> AnyInt:
        """The number of these threads that may take parts."""
        return self.f.minimum(threads, self._load(MOST))

    def resume(self, now: Int, changed: Callable[[], None]) -> None:
        """Use one more helper if the quiet period has ended."""
        with self.f.when((self._load(MOST) < self._load(THREADS)) & (now >= self._load(UNTIL))):
            self._store(self._load(MOST) + 1, MOST)
            self._store(now, RESUMED)
            self._store(now + self._load(QUIET), UNTIL)
            self._store(0, DEBT)
            changed()

    def count_suspension(self, waits: Waits) -> None:
        """Account for a suspension of the leader. Called if helpers sleep when the leader starts a kernel."""
        now = waits.preemptions()
        with self.f.when(self._load(SUSPENSIONS) < now):
            self._store(self._load(DEBT) + self._load(LEAD), DEBT)
        self._store(now, SUSPENSIONS)
        self._store(0, LEAD)

    def account(
        self, invited: Int, whole: AnyInt, lost: AnyInt, lead: AnyInt, now: Int, changed: Callable[[], None]
    ) -> None:
        """Account for a kernel that took `whole` cycles, `lost` of them waiting for suspended helpers."""
        f = self.f
        debt = f.maximum(self._load(DEBT) + lost - f.maximum(whole, 0) // (invited * 2), -CREDIT)
        self._store(debt, DEBT)
        self._store(f.maximum(lead, 0), LEAD)
        with f.when(f.compare("sgt", debt, LIMIT)):
            lasted = f.compare("sgt", now - self._load(RESUMED), self._load(QUIET))
            doubled = f.minimum(f.maximum(self._load(QUIET) * 2, SHORTEST_QUIET), LONGEST_QUIET)
            quiet = f.select(lasted, f.integer(SHORTEST_QUIET), f.integer(doubled))
            self._store(quiet, QUIET)
            self._store(now + quiet, UNTIL)
            self._store(invited - 1, MOST)
            self._store(0, DEBT)
            changed()
