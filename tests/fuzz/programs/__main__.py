"""Runs random programs: `python -m tests.fuzz.programs [N] [--seed S] [--runtime SHARE] [--failures DIR]`.

Each is run by the plan at 1, 2 and 3 threads and compared with plain execution; a share of them is also compared with
OpenVINO's runtime. Exits 1 if anything failed; failures are shrunk and saved. `--precision bf16` needs compiled
kernels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from irload.errors import InputInvalid
from irload.options import Options
from irload.plan.backends.registry import compiled_backend
from tests.fuzz.campaign import _merged, environment
from tests.fuzz.programs.near import ROUNDINGS


def outcomes(
    count: int, seed: int, folder: Path, workers: int = 2, start: int = 0, share: float = 0.05, precision: str = "f32"
) -> Iterator[dict[str, Any]]:
    """The outcome of each program, in order of completion. `share`: the share that OpenVINO's runtime runs, too."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for k in range(workers):
            numbers = map(str, (seed, start + k, start + count, workers, share, precision))
            command = [sys.executable, "-m", "tests.fuzz.programs.worker", *numbers, str(folder)]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()))
        yield from _merged(processes)
    finally:
        for process in processes:
            with process:
                process.kill()


def main(arguments: Sequence[str]) -> int:
    """Run the programs and print a report. Returns 1 if anything failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.programs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--runtime", type=float, default=0.05, help="share of programs compared with OpenVINO's runtime, too"
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--failures", type=Path, help="folder for the files of failed programs")
    parser.add_argument("--precision", choices=ROUNDINGS, default="f32", help="precision of matrix products")
    options = parser.parse_args(arguments)
    try:
        compiled_backend(Options(precision=options.precision))
    except InputInvalid as error:
        parser.error(str(error))
    folder = options.failures or Path(tempfile.mkdtemp(prefix="irload-programs-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    tally = Tally(options.seed)
    how = (options.workers, options.start, options.runtime, options.precision)
    for outcome in outcomes(options.count, options.seed, folder, *how):
        tally.add(outcome)
        if tally.count % 1000 == 0:
            print(f"{tally.count} programs, {len(tally.failures)} failures", file=sys.stderr)
    tally.seconds = time.perf_counter() - began
    if options.failures is None and not tally.failures:
        folder.rmdir()
    print(json.dumps(tally.to_dict(), indent=2) if options.json else tally.text(folder))
    return int(bool(tally.failures) or tally.count != options.count)


class Tally:
    """Counts the outcomes of all programs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.count = 0
        self.kinds: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.runtime: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.outputs: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.slowest = 0.0
        self.seconds = 0.0

    def add(self, result: dict[str, Any]) -> None:
        self.count += 1
        self.kinds[result["kind"]] += 1
        self.types.update(result.get("types", ()))
        self.slowest = max(self.slowest, result.get("seconds", 0.0))
        if result["kind"] != "ok":
            self.failures.append(result)
            print(f"{result['index']}: {result['kind']}: {result['words']}", file=sys.stderr)
            print(f"  {result.get('small')}: {result.get('small_words')}", file=sys.stderr)
            return
        if result["refused"]:
            self.refused[result["refused"]] += 1
        if result["runtime"]:
            self.runtime[result["runtime"].split(":")[0]] += 1
        self.outputs.update({name: result[name] for name in ("outputs", "exact", "blunt")})

    def to_dict(self) -> dict[str, Any]:
        return {
            "seed": self.seed, "programs": self.count, "kinds": dict(self.kinds), "refused": sum(self.refused.values()),
            "outputs": dict(self.outputs), "runtime": dict(self.runtime), "types": dict(self.types.most_common()),
            "seconds": round(self.seconds, 1), "slowest": round(self.slowest, 1), "failures": self.failures,
        }  # fmt: skip

    def text(self, folder: Path) -> str:
        outputs = self.outputs
        lines = [
            f"{self.count} programs of seed {self.seed} in {self.seconds:.0f} s; the slowest took {self.slowest:.1f} s",
            f"  {dict(self.kinds)}; {sum(self.refused.values())} refused by plan and plain alike",
            f"  {outputs['outputs']} outputs, {outputs['exact']} of them compared exactly",
            f"  {outputs['blunt']} outputs with so wide a tolerance that it says little",
            f"  OpenVINO: {dict(self.runtime)}",
            f"  {len(self.types)} types of operations",
        ]
        lines += [f"  {f['index']}: {f['kind']}: {f.get('small')} {f.get('small_words')}" for f in self.failures]
        return "\n".join([*lines, *([f"files in {folder}"] if self.failures else [])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
