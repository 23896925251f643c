"""Measures latencies of alternating peers, and time and memory of a process until its first result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

TURN = 0.02
"""Minimum seconds per turn: fast models run several times."""

PAUSE = 0.01
"""Seconds of idle time after a peer is resumed or stopped."""

SLOW = 1.0
"""Seconds per inference above which three rounds suffice."""


class Worker:
    """A worker process that measures on request."""

    def __init__(self, name: str, folder: Path, threads: int) -> None:
        self.name = name
        command = [sys.executable, "-m", "benchmarks.worker", name, str(folder), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.seconds: list[float] = []
        self.result: list[float] = json.loads(self._answer())
        self._count = 1
        for _ in range(2):  # the first measurement may include warm-up
            self._count = min(1000, max(1, round(TURN / self._time())))

    def turn(self) -> None:
        """Measure once; three rounds suffice for slow peers. Between turns the process is stopped."""
        if len(self.seconds) < 3 or median(self.seconds) < SLOW:
            self.stop(False)
            self.seconds.append(self._time())
            self.stop(True)

    def stop(self, stopped: bool) -> None:
        """Stop or resume the process, so that spinning threads do not take time from the other peers."""
        if hasattr(signal, "SIGSTOP"):
            self._process.send_signal(signal.SIGSTOP if stopped else signal.SIGCONT)
        time.sleep(PAUSE)

    def _time(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._count}\n")
        self._process.stdin.flush()
        return max(1e-9, json.loads(self._answer()))

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} cannot run this model")
        return line

    def close(self) -> None:
        """End the process."""
        self.stop(False)
        self._process.communicate()


@dataclass
class Latencies:
    """Milliseconds by peer, and the deviation of each peer's results from OpenVINO's, relative to the largest value."""

    ms: dict[str, float]
    difference: dict[str, float]


def latencies(names: list[str], folder: Path, threads: int, rounds: int) -> Latencies:
    """Return medians over rounds in which the peers alternate."""
    workers: list[Worker] = []
    for name in names:
        try:
            workers.append(Worker(name, folder, threads))
            workers[-1].stop(True)
        except RuntimeError as error:
            print(f"    {error}", file=sys.stderr)
    for _ in range(rounds):
        for worker in workers:
            worker.turn()
    for worker in workers:
        worker.close()
    oracle = next((w.result for w in workers if w.name == "OpenVINO"), None)
    difference: dict[str, float] = {}
    if oracle is not None:
        largest = max(map(abs, oracle)) or 1.0
        for worker in workers:
            difference[worker.name] = max(abs(a - b) for a, b in zip(worker.result, oracle, strict=True)) / largest
    return Latencies({w.name: median(w.seconds) * 1e3 for w in workers}, difference)


@dataclass
class Start:
    """Duration in seconds and peak memory in MiB of a process that runs one inference, from its start to its end."""

    seconds: float
    memory: float


def start(folder: Path, threads: int, rounds: int) -> dict[str, Start]:
    """Return the medians of alternating processes: `irrun` for irload, a minimal script for OpenVINO; both at f32."""
    found: dict[str, list[tuple[float, float]]] = {}
    for k in range(rounds + 1):
        for peer in ("irload", "OpenVINO"):
            command = [sys.executable, "-m", "benchmarks.worker", peer, str(folder), str(threads), "once"]
            if peer == "irload":
                files = sorted(folder.glob("in_*.npy")) or sorted(folder.glob("input_*.npy"))
                files = files or sorted(folder.glob("*.npy"))[:1]
                command = [sys.executable, "-m", "irrun", "run", str(folder / "model.xml"), *map(str, files)]
                command += ["--threads", str(threads)]
            once = _once(command)
            if k:  # the first run warms the disk cache
                found.setdefault(peer, []).append(once)
    return {peer: Start(*(median(values) for values in zip(*each, strict=True))) for peer, each in found.items()}


def help_seconds(rounds: int) -> float:
    """Return the minimum time of `irrun --help`, from the start of the process to its end."""
    return min(_once([sys.executable, "-m", "irrun", "--help"])[0] for _ in range(rounds))


def _once(command: list[str]) -> tuple[float, float]:
    """Return seconds and peak MiB of a process."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    # Installed packages have cached bytecode; without a cache each process would compile every module.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=silent)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"failed: {' '.join(command)}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return seconds, usage.ru_maxrss / unit
