"""Measures inferences: the first one, then latencies over some seconds, alternately with another runtime."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Barrier, Thread
from typing import Any, Unpack

import numpy as np

from irload.compiling import compile_model
from irload.core.tensor import Array
from irload.errors import InputInvalid, Unsupported
from irload.model import Model
from irload.options import CompileOptions, Options
from irload.plan.backends.registry import compiled_backend
from irload.system.portable import resident_memory

__all__ = ["Benchmark", "Contender", "benchmark"]

TURN = 0.25
"""Seconds per turn if two sides alternate."""
PAUSE = 0.01
"""Seconds between turns, after which waiting threads of the previous side stop spinning."""
LEAST = 3
"""Minimum inferences of a warm-up, and of each turn of a slow model."""
BLOCKS = 20
"""Blocks of consecutive latencies, whose medians give the confidence interval."""
DEVIATIONS = 1.96
"""Half the width of the central 95 % of a normal distribution, in standard deviations."""

RunOnce = Callable[[], object]


@dataclass(slots=True)
class Contender:
    """The measurements of one runtime; all times in seconds.

    `memory`: growth of the process in bytes from before compilation until after the first inference, None if the system
    does not report it. `latencies`: turn by turn, and in each turn request by request, in order of time. `wall`: the
    duration of all turns. `precision`: the precision of products; `default`: the precision that OpenVINO selects by
    default on this processor, None for irload.
    """

    name: str
    compile: float
    first: float
    memory: int | None
    latencies: list[float] = field(default_factory=list[float])
    wall: float = 0.0
    precision: str = "f32"
    default: str | None = None

    def percentile(self, share: float) -> float:
        """Return this percentile (0..100) of the latencies, linear between neighbours."""
        return float(np.percentile(self.latencies, share))

    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the median, from the order statistics of medians of consecutive blocks.

        Consecutive latencies are correlated, so single latencies would give too narrow an interval. Variance between
        processes is not included.
        """
        blocks = np.array_split(np.array(self.latencies), min(BLOCKS, len(self.latencies)))
        medians, count = np.sort([np.median(block) for block in blocks]), len(blocks)
        margin = DEVIATIONS * count**0.5 / 2  # standard deviation of the number of values below the median
        low, high = math.floor(count / 2 - margin), math.ceil(count / 2 + margin)
        middle = self.percentile(50)
        return min(middle, float(medians[max(low, 0)])), max(middle, float(medians[min(high, count - 1)]))

    @property
    def mean(self) -> float:
        """The mean latency."""
        return float(np.mean(self.latencies))

    @property
    def throughput(self) -> float:
        """Inferences per second, over all requests."""
        return len(self.latencies) / self.wall


@dataclass(slots=True)
class Benchmark:
    """The measured sides, irload first; `requests` ran concurrently, on `threads` each."""

    sides: list[Contender]
    requests: int
    threads: int

    def ratio(self, share: float) -> float | None:
        """The other side's latency at this percentile, relative to irload's; None without another side."""
        if len(self.sides) < 2:
            return None
        ours, theirs = self.sides
        return theirs.percentile(share) / ours.percentile(share)


def benchmark(
    model: Model,
    inputs: Sequence[Array],
    *,
    seconds: float = 5.0,
    runs: int | None = None,
    warm_up: float = 0.5,
    requests: int = 1,
    against: str | None = None,
    threads: int | None = None,
    **options: Unpack[CompileOptions],
) -> Benchmark:
    """Measure inferences of a model on `inputs`, an array for each of its inputs.

    After `warm_up` seconds, `requests` inferences run concurrently, one thread per request, for `seconds`, or until
    each request ran `runs` times. `against="openvino"` alternates irload with OpenVINO's CPU plugin in this process, in
    the same precision and number of threads; with `precision="auto"` each uses its default. `threads`, `options`: as
    for `compile_model`. Raises InputInvalid, Unsupported if OpenVINO is missing or does not run the model, and the
    errors of running.
    """
    if requests < 1 or seconds <= 0 or (runs is not None and runs < 1):
        raise InputInvalid("requests and runs must be at least 1, seconds positive")
    if against not in (None, "openvino"):
        raise InputInvalid(f"against must be 'openvino', found '{against}'")
    resolved = Options.of(options, threads)
    before, start = resident_memory(), time.perf_counter()
    compiled = compile_model(model, threads, **options)
    compiled.prepare(inputs)
    compile = time.perf_counter() - start
    ways = [[_call(compiled.create_infer_request(), model, inputs) for _ in range(requests)]]
    sides = [_first("irload", ways[0], compile, before)]
    backend = compiled_backend(resolved)
    sides[0].precision = "f32" if backend is None else backend.precision
    if against is not None:
        before, start = resident_memory(), time.perf_counter()
        way, used, default = _openvino(model, inputs, compiled.threads, requests, resolved.precision)
        ways.append(way)
        sides.append(_first(against, way, time.perf_counter() - start, before))
        sides[1].precision, sides[1].default = used, default
    for side, way in zip(sides, ways, strict=True):
        _together(way, side, warm_up, LEAST)
        side.latencies, side.wall = [], 0.0
    if len(sides) == 1 and runs is None:
        _together(ways[0], sides[0], seconds, 1)
    done = [[0] * requests for _ in sides]
    while not _is_done(sides, seconds, runs, requests):
        for side, way, counts in zip(sides, ways, done, strict=True):
            left = None if runs is None else [runs - count for count in counts]
            if left is None or any(left):
                if len(sides) > 1:
                    time.sleep(PAUSE)
                    way[0]()  # exclude the effect of the other side on the caches
                turn = TURN if len(sides) > 1 or left is None else float("inf")
                new = _together(way, side, turn, 1, left)
                counts[:] = [count + n for count, n in zip(counts, new, strict=True)]
    return Benchmark(sides, requests, compiled.threads)


def _is_done(sides: Sequence[Contender], seconds: float, runs: int | None, requests: int) -> bool:
    if runs is not None:
        return all(len(side.latencies) >= runs * requests for side in sides)
    return all(side.wall >= seconds for side in sides)


def _call(request: Any, model: Model, inputs: Sequence[Array]) -> RunOnce:
    """Run one inference with reset variables, so that all inferences do the same work."""
    infer, reset, given = request.infer, request.reset_state, list(inputs)
    if not any(node.type == "ReadValue" for graph in model.walk() for node in graph.nodes):
        return lambda: infer(given)

    def run() -> None:
        reset()
        infer(given)

    return run


def _first(name: str, way: Sequence[RunOnce], compile: float, before: int | None) -> Contender:
    start = time.perf_counter()
    way[0]()
    first = time.perf_counter() - start
    after = resident_memory()
    return Contender(name, compile, first, None if before is None or after is None else max(after - before, 0))


def _together(
    way: Sequence[RunOnce], side: Contender, seconds: float, minimum: int, limit: Sequence[int] | None = None
) -> list[int]:
    """Run all requests concurrently for `seconds`, each at least `minimum` times, at most as often as `limit`.

    Stores the latencies, and returns how often each request ran.
    """
    limits = limit or [None] * len(way)
    latencies: list[list[float]] = [[] for _ in way]
    errors: list[BaseException] = []
    ready = Barrier(len(way) + 1)

    def work(k: int) -> None:
        try:
            ready.wait()
            latencies[k] = _timed(way[k], seconds, minimum, limits[k])
        except BaseException as error:
            errors.append(error)

    if len(way) == 1:
        start = time.perf_counter()
        latencies[0] = _timed(way[0], seconds, minimum, limits[0])
    else:
        threads = [Thread(target=work, args=(k,), daemon=True) for k in range(len(way))]
        for thread in threads:
            thread.start()
        ready.wait()
        start = time.perf_counter()
        for thread in threads:
            thread.join()
    side.wall += time.perf_counter() - start
    if errors:
        raise errors[0]
    side.latencies += (latency for each in latencies for latency in each)
    return list(map(len, latencies))


def _timed(run: RunOnce, seconds: float, minimum: int, limit: int | None) -> list[float]:
    latencies: list[float] = []
    clock = time.perf_counter
    now = clock()
    end = now + seconds
    while (now < end or len(latencies) < minimum) and (limit is None or len(latencies) < limit):
        start = now
        run()
        now = clock()
        latencies.append(now - start)
    return latencies


def _openvino(
    model: Model, inputs: Sequence[Array], threads: int, requests: int, precision: str
) -> tuple[list[RunOnce], str, str]:
    """Return the call of each request, their precision, and the default precision of the plugin."""
    try:
        import openvino as ov
    except ImportError:
        raise Unsupported("OpenVINO is not installed here; pip install openvino") from None
    if model.file is None:
        raise InputInvalid("OpenVINO reads models from files, but this model was not read from a file")
    config: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY" if requests == 1 else "THROUGHPUT",
        "NUM_STREAMS": requests,
        "INFERENCE_NUM_THREADS": threads * requests,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # otherwise compressed models compute with activations of 8 bits
    }
    try:
        core: Any = ov.Core()
        default = core.get_property("CPU", "INFERENCE_PRECISION_HINT").to_string()
        config["INFERENCE_PRECISION_HINT"] = used = default if precision == "auto" else precision
        read: Any = core.read_model(model.file, model.weights_file or "")
        read.reshape({k: list(a.shape) for k, a in enumerate(inputs)})
        compiled: Any = core.compile_model(read, "CPU", config)
        infer_requests = [compiled.create_infer_request() for _ in range(requests)]
    except RuntimeError as error:
        raise Unsupported(f"OpenVINO does not run the model: {str(error).strip().splitlines()[-1][:300]}") from None
    return [_call(request, model, inputs) for request in infer_requests], used, default
