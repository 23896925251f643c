"""The code of the leader of a team: the thread that runs a table of kernels, and shares them with helper threads."""

from __future__ import annotations

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import Function, Int, Module, Pointer
from irload.plan.backends.llvm.crowding import Crowding
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import (
    AHEAD,
    CLAIMS,
    CROWDING,
    DONE,
    DURATION,
    ENTRY,
    INVITED,
    KERNEL,
    PARTS,
    PATIENCE,
    SCRATCH,
    SHARED,
    STRIDE,
    SUSPENDED,
    TICKET,
    UNITS,
    Work,
    call_kernel,
)
from irload.plan.backends.llvm.tuning import PATIENT_CYCLES
from irload.record import record


@record()
class Runner(Standalone):
    """Runs a table of kernels as the leader of a team. Called by `KernelTable.lead`.

    `sparing`: waiting threads sleep at once, since under a CPU quota spinning uses time that other threads need.
    """

    sparing: bool = False

    def text(self, target: Target) -> str:
        module = Module(target)
        parameters = ["ptr table", "i64 first", "i64 last", "i64 threads", "ptr team", "ptr scratch", "i64 stride"]
        self.write(module.function("kernel", parameters, internal=False))
        return module.text()

    def write(self, f: Function) -> None:
        team, threads = f["team"], f["threads"]
        several = threads > 1
        lead = _Lead(f, team, threads, 0 if self.sparing else PATIENT_CYCLES)
        with f.when(several):
            lead.begin(f["scratch"], f["stride"])
        for index in f.range(f["first"], f["last"]):
            entry = f["table"] + index * (8 * ENTRY)
            with f.when(several & f.differ(f.load_int(entry, 8 * SHARED), 0)):
                lead.share(entry, f["scratch"])
            with f.otherwise():
                _run_alone(f, entry, f["scratch"])


def _run_alone(f: Function, entry: Pointer, scratch: Pointer) -> None:
    call_kernel(f, entry, 0, f.load_int(entry, 8 * UNITS), scratch, f.load_pointer(entry, 8 * AHEAD))


@record()
class _Lead:
    """Emits the code of the leader. `patience`: cycles of spinning before a thread sleeps."""

    f: Function
    team: Pointer
    threads: Int
    patience: int

    @property
    def _crowding(self) -> Crowding:
        return Crowding(self.f, self.team + CROWDING)

    @property
    def _work(self) -> Work:
        return Work(self.f, self.team, 0)

    def begin(self, scratch: Pointer, stride: Int) -> None:
        """Set the words that helpers need in this run."""
        for value, offset in ((scratch, SCRATCH), (stride, STRIDE), (self.patience, PATIENCE)):
            self.f.store_scalar(value, self.team, offset)
        self._invite()

    def _invite(self) -> None:
        """Set the number of threads that may take parts, and wake helpers that wait for a change of this number."""
        f = self.f
        invited = f.integer(self._crowding.invited(self.threads))
        with f.when(f.differ(f.load_int(self.team, INVITED), invited)):
            intrinsics.store_shared(f, invited, self.team, INVITED)
            self._work.waits.wake(self.team + INVITED)

    def share(self, entry: Pointer, scratch: Pointer) -> None:
        """Run a kernel with the helpers, or on this thread alone if no helper may take parts."""
        f = self.f
        start = intrinsics.cycles(f)
        self._crowding.resume(start, self._invite)
        invited = f.load_int(self.team, INVITED)
        with f.when(invited > 1):
            self._divide(entry, scratch, start, invited)
        with f.otherwise():
            _run_alone(f, entry, scratch)

    def _divide(self, entry: Pointer, scratch: Pointer, start: Int, invited: Int) -> None:
        f, team, work, crowding = self.f, self.team, self._work, self._crowding
        parts = f.minimum(invited, f.load_int(entry, 8 * UNITS))
        ticket, parts_taken = f.integer(f.load_int(team, TICKET) + 1), f.local(8)
        f.store_scalar(entry, work.opened(ticket), KERNEL)
        f.store_scalar(parts, work.opened(ticket), PARTS)
        for offset in (DONE, DURATION, SUSPENDED):
            f.store_scalar(0, team, offset)
        f.store_scalar(ticket, team, CLAIMS)
        intrinsics.store_shared(f, ticket, team, TICKET)
        with f.when(f.differ(intrinsics.load_shared(f, team, TICKET + 8), 0)):
            work.waits.wake(team + TICKET)
            crowding.count_suspension(work.waits)
        work.run(entry, 0, parts, scratch)
        first = intrinsics.cycles(f)
        f.store_scalar(1, parts_taken)
        for part in f.range(1, parts):
            with f.when(work.take(part, ticket)):
                work.run(entry, part, parts, scratch)
                f.store_scalar(f.load_int(parts_taken) + 1, parts_taken)
        waiting = intrinsics.cycles(f)
        others = parts - f.load_int(parts_taken)
        work.waits.until(lambda done: done >= others, team + DONE, self.patience)
        end = intrinsics.cycles(f)
        suspended = f.differ(f.load_int(team, SUSPENDED), 0)
        lost = (end - waiting) * suspended.as_int()
        duration = f.load_int(team, DURATION)
        lead = (first - start - duration) * f.differ(duration, 0).as_int()
        crowding.account(invited, end - start, lost, lead, end, self._invite)
