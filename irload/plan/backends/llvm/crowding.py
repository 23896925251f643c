"""The number of threads that share kernels beside other busy processes.

A system with more busy threads than processors suspends some of them for milliseconds. If it suspends a thread within a
part of a kernel, all others wait for that part. With n threads, doing without one costs 1/n of the time at most; if
suspensions cost more, the leader invites one helper fewer for a while, then tries again: after twice the time if the
machine is still busy, soon otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.waiting import Waits
from irload.record import record

MILLISECOND = 2_500_000
"""Cycles of the time stamp counter, which counts at 2 to 3.5 GHz."""
SHORTEST_QUIET, LONGEST_QUIET = 8 * MILLISECOND, 512 * MILLISECOND
"""The cycles for which a helper is not invited."""
LIMIT, CREDIT = 3 * MILLISECOND, 2 * MILLISECOND
"""Lost cycles, beyond the share that is tolerated, after which there is one helper fewer, and the most saved before.

One suspension lasts up to 4 ms, or less than a millisecond for a short-lived process.
"""

THREADS, MOST, UNTIL, QUIET, RESUMED, DEBT, SUSPENSIONS, LEAD = range(0, 64, 8)
"""Offsets of the number of threads, how many of them may take parts at most, when that is one more, the length of that
time, when it was one more the last time, the cycles lost, how often the system suspended the leader, and the cycles
that the leader took for its part of the last kernel longer than a helper.
"""


@record()
class Crowding:
    """Writes the leader's decisions. `words`: their memory; `now` and other times: cycles."""

    f: Function
    words: Pointer

    def _load(self, offset: int) -> Int:
        return self.f.load_int(self.words, offset)

    def _store(self, value: AnyInt, offset: int) -> None:
        self.f.store_scalar(value, self.words, offset)

    def invited(self, threads: AnyInt) -> AnyInt:
        """How many of these threads take parts."""
        return self.f.minimum(threads, self._load(MOST))

    def resume(self, now: Int, changed: Callable[[], None]) -> None:
        """Invite one more helper if its time has come."""
        with self.f.when((self._load(MOST) < self._load(THREADS)) & (now >= self._load(UNTIL))):
            self._store(self._load(MOST) + 1, MOST)
            self._store(now, RESUMED)
            self._store(now + self._load(QUIET), UNTIL)
            self._store(0, DEBT)
            changed()

    def notice_own(self, waits: Waits) -> None:
        """Count a suspension of the leader. Called if helpers sleep when a kernel is opened."""
        now = waits.preemptions()
        with self.f.when(self._load(SUSPENSIONS) < now):
            self._store(self._load(DEBT) + self._load(LEAD), DEBT)
        self._store(now, SUSPENSIONS)
        self._store(0, LEAD)

    def account(
        self, invited: Int, whole: AnyInt, lost: AnyInt, lead: AnyInt, now: Int, changed: Callable[[], None]
    ) -> None:
        """Account for a kernel that took `whole` cycles, of which `lost` were spent waiting for suspended helpers."""
        f = self.f
        debt = f.maximum(self._load(DEBT) + lost - f.maximum(whole, 0) // (invited * 2), -CREDIT)
        self._store(debt, DEBT)
        self._store(f.maximum(lead, 0), LEAD)
        with f.when(f.compare("sgt", debt, LIMIT)):
            held = f.compare("sgt", now - self._load(RESUMED), self._load(QUIET))
            doubled = f.minimum(f.maximum(self._load(QUIET) * 2, SHORTEST_QUIET), LONGEST_QUIET)
            quiet = f.select(held, f.integer(SHORTEST_QUIET), f.integer(doubled))
            self._store(quiet, QUIET)
            self._store(now + quiet, UNTIL)
            self._store(invited - 1, MOST)
            self._store(0, DEBT)
            changed()
