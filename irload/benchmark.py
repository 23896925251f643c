"""How long inferences take: what the first one costs, then latencies over some seconds, beside another runtime's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Barrier, Thread
from typing import Any

import numpy as np

from irload.compiling import compile_model
from irload.core.tensor import Array
from irload.errors import InputInvalid, Unsupported
from irload.model import Model
from irload.portable import resident_memory

__all__ = ["Benchmark", "Side", "benchmark"]

TURN = 0.25
"""Seconds at a time, where two sides take turns."""
PAUSE = 0.01
"""Seconds between turns, in which threads that wait for more work of the side before give up."""
LEAST = 3
"""Inferences of a warm-up, and of each turn of a slow model at least one."""

Run = Callable[[], object]


@dataclass(slots=True)
class Side:
    """What was measured of one runtime; all times in seconds.

    `memory`: bytes by which the process grew from before compiling until after the first inference, None where the
    system does not say. `latencies` are those of all requests, in the order in which they ended within each; `wall` is
    the time in which they ran.
    """

    name: str
    compile: float
    first: float
    memory: int | None
    latencies: list[float] = field(default_factory=list[float])
    wall: float = 0.0

    def percentile(self, share: float) -> float:
        """The latency that this share (0..100) of the inferences stays within, linear between neighbours."""
        return float(np.percentile(self.latencies, share))

    @property
    def mean(self) -> float:
        """The mean latency."""
        return float(np.mean(self.latencies))

    @property
    def throughput(self) -> float:
        """Inferences a second, of all requests together."""
        return len(self.latencies) / self.wall


@dataclass(slots=True)
class Benchmark:
    """The sides that were measured, irload first; `requests` ran at a time, on `threads` each."""

    sides: list[Side]
    requests: int
    threads: int

    def ratio(self, share: float) -> float | None:
        """How many times as long as irload the other side takes at this percentile; None without one."""
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
    **options: Any,
) -> Benchmark:
    """Measure inferences of a model on `inputs`, an array for each of its inputs.

    After `warm_up` seconds `requests` inferences run at a time, each request in a thread of its own, for `seconds`, or
    until each request ran `runs` times. `against="openvino"` has OpenVINO's CPU plugin, in f32 on as many threads, take
    turns with irload in this process. `options` are those of `compile_model`. Raises InputInvalid, Unsupported where
    OpenVINO is missing or does not run the model, and what running raises.
    """
    if requests < 1 or seconds <= 0 or (runs is not None and runs < 1):
        raise InputInvalid("a benchmark needs at least one request, one run and some time")
    if against not in (None, "openvino"):
        raise InputInvalid(f"there is nothing to measure against but 'openvino', found '{against}'")
    before, start = resident_memory(), time.perf_counter()
    compiled = compile_model(model, **options)
    compiled.prepare(inputs)
    compile = time.perf_counter() - start
    ways = [[_call(compiled.create_infer_request(), model, inputs) for _ in range(requests)]]
    sides = [_first("irload", ways[0], compile, before)]
    if against is not None:
        before, start = resident_memory(), time.perf_counter()
        ways.append(_openvino(model, inputs, compiled.threads, requests, options.get("precision", "f32")))
        sides.append(_first(against, ways[1], time.perf_counter() - start, before))
    for side, way in zip(sides, ways, strict=True):
        _together(way, side, warm_up, LEAST)
        side.latencies, side.wall = [], 0.0
    if len(sides) == 1 and runs is None:
        _together(ways[0], sides[0], seconds, 1)
    while not _is_done(sides, seconds, runs, requests):
        for side, way in zip(sides, ways, strict=True):
            left = None if runs is None else runs - len(side.latencies) // requests
            if left is None or left > 0:
                if len(sides) > 1:
                    time.sleep(PAUSE)
                    way[0]()  # what the other side left in caches is not its time
                _together(way, side, TURN if len(sides) > 1 or left is None else float("inf"), 1, left)
    return Benchmark(sides, requests, compiled.threads)


def _is_done(sides: Sequence[Side], seconds: float, runs: int | None, requests: int) -> bool:
    if runs is not None:
        return all(len(side.latencies) >= runs * requests for side in sides)
    return all(side.wall >= seconds for side in sides)


def _call(request: Any, model: Model, inputs: Sequence[Array]) -> Run:
    """One inference; variables begin anew each time, so that all inferences are alike."""
    infer, reset, given = request.infer, request.reset_state, list(inputs)
    if not any(node.type == "ReadValue" for graph in model.walk() for node in graph.nodes):
        return lambda: infer(given)

    def run() -> None:
        reset()
        infer(given)

    return run


def _first(name: str, way: Sequence[Run], compile: float, before: int | None) -> Side:
    start = time.perf_counter()
    way[0]()
    first = time.perf_counter() - start
    after = resident_memory()
    return Side(name, compile, first, None if before is None or after is None else max(after - before, 0))


def _together(way: Sequence[Run], side: Side, seconds: float, least: int, most: int | None = None) -> None:
    """Run all requests at a time for `seconds`, at least `least` and at most `most` times each, and keep the times."""
    if len(way) == 1:
        start = time.perf_counter()
        side.latencies += _timed(way[0], seconds, least, most)
        side.wall += time.perf_counter() - start
        return
    found: list[list[float]] = [[] for _ in way]
    errors: list[BaseException] = []
    ready = Barrier(len(way) + 1)

    def work(k: int) -> None:
        try:
            ready.wait()
            found[k] = _timed(way[k], seconds, least, most)
        except BaseException as error:
            errors.append(error)

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
    side.latencies += (seconds for each in found for seconds in each)


def _timed(run: Run, seconds: float, least: int, most: int | None) -> list[float]:
    found: list[float] = []
    clock = time.perf_counter
    now = clock()
    end = now + seconds
    while (now < end or len(found) < least) and (most is None or len(found) < most):
        start = now
        run()
        now = clock()
        found.append(now - start)
    return found


def _openvino(model: Model, inputs: Sequence[Array], threads: int, requests: int, precision: str) -> list[Run]:
    try:
        import openvino as ov  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Unsupported("OpenVINO is not installed here; pip install openvino") from None
    if model.file is None:
        raise InputInvalid("OpenVINO reads files, and this model was read from none")
    config: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY" if requests == 1 else "THROUGHPUT",
        "NUM_STREAMS": requests,
        "INFERENCE_NUM_THREADS": threads * requests,
        "INFERENCE_PRECISION_HINT": precision if precision in ("f32", "bf16") else "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # else compressed models are computed on activations of 8 bits
    }
    try:
        core: Any = ov.Core()
        read: Any = core.read_model(model.file, model.weights_file or "")
        read.reshape({k: list(a.shape) for k, a in enumerate(inputs)})
        compiled: Any = core.compile_model(read, "CPU", config)
        found = [compiled.create_infer_request() for _ in range(requests)]
    except RuntimeError as error:
        raise Unsupported(f"OpenVINO does not run the model: {str(error).strip().splitlines()[-1][:300]}") from None
    return [_call(request, model, inputs) for request in found]
