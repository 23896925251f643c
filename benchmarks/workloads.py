"""Workloads whose shapes change from call to call: decoding with state, texts of random lengths, images of many sizes.

`python -m benchmarks.workloads PEER KIND FILE THREADS` runs one. Stdin has the inputs as JSON, stdout the results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.worker import PEERS

Feed = dict[str, Any]
Infer = Callable[[Feed], Any]
PROMPT = 64
"""Number of tokens of a prompt."""
TOKENS = 32
"""Number of tokens generated after the prompt."""
LENGTHS = (5, 512)
"""The range of text lengths, in tokens."""
SIZES = (96, 384)
"""The range of image heights and widths in pixels; multiples of 32 are drawn."""
CALLS = 40
"""Number of measured calls with random lengths or sizes."""


def started(peer: str, file: Path, threads: int) -> tuple[Infer, Callable[[], None]]:
    """Return the functions of a request that run the model and reset its state."""
    compile_file = PEERS[peer].compile
    assert compile_file is not None
    request = compile_file(file, threads, **PEERS[peer].options).create_infer_request()
    return request.infer, request.reset_state


def decoding(infer: Infer, reset: Callable[[], None], ports: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the milliseconds of a prompt (minimum) and of a later token (median), after a conversation as warm-up."""
    prompts: list[float] = []
    tokens: list[float] = []
    for turn in range(3):
        reset()
        before = 0
        for count in [PROMPT, *[1] * TOKENS]:
            feed = _text(ports, count, before)
            start = time.perf_counter()
            infer(feed)
            if turn:
                (prompts if before == 0 else tokens).append(time.perf_counter() - start)
            before += count
    return {"prompt ms": 1e3 * min(prompts), "token ms": 1e3 * median(tokens), "tokens/s": 1 / median(tokens)}


def lengths(infer: Infer, reset: Callable[[], None], ports: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the mean milliseconds of calls with texts of random lengths; lengths repeat only by chance."""
    import numpy as np

    drawn = np.random.default_rng(0).integers(*LENGTHS, CALLS + 2)
    return _calls(infer, [_text(ports, int(n), 0) for n in drawn])


def sizes(infer: Infer, reset: Callable[[], None], ports: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the mean milliseconds of calls with images of random sizes."""
    import numpy as np

    rng = np.random.default_rng(0)
    (port,) = ports
    feeds: list[Feed] = []
    for _ in range(CALLS + 2):
        drawn = iter(32 * rng.integers(SIZES[0] // 32, SIZES[1] // 32, 2, endpoint=True))
        shape = [port["shape"][0] or 1, *(n or int(next(drawn)) for n in port["shape"][1:])]
        feeds.append({port["name"]: rng.random(shape).astype(port["dtype"])})
    return _calls(infer, feeds)


def _calls(infer: Infer, feeds: Sequence[Feed]) -> dict[str, float]:
    seconds: list[float] = []
    for feed in feeds:
        start = time.perf_counter()
        infer(feed)
        seconds.append(time.perf_counter() - start)
    return {"call ms": 1e3 * sum(seconds[2:]) / len(seconds[2:])}  # the first two calls include planning


def _text(ports: Sequence[dict[str, Any]], count: int, before: int) -> Feed:
    """Return the inputs for `count` tokens after `before` others. Exporters' names of ports determine their roles."""
    import numpy as np

    rows = {"position": np.arange(before, before + count), "mask": np.ones(before + count), "beam": np.zeros(1)}
    feed: Feed = {}
    for port in ports:
        found = next((v for word, v in rows.items() if word in port["name"]), np.arange(count) * 7 % 97)
        feed[port["name"]] = found.reshape([1] * (len(port["shape"]) - 1) + [-1]).astype(port["dtype"])
    return feed


KINDS = {"decoding": decoding, "random lengths": lengths, "image sizes": sizes}


def described(file: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the kind of workload that suits a model, or None, and its inputs; a dynamic dim is 0 in their shapes."""
    from irload import read_model

    model = read_model(file)
    ports = [
        {
            "name": p.any_name,
            "dtype": p.element_type.dtype.name,
            "shape": [d.lo if d.is_static else 0 for d in p.partial_shape],
        }
        for p in model.inputs
        if p.partial_shape.rank is not None
    ]
    changing = [[k for k, n in enumerate(port["shape"]) if k and not n] for port in ports]
    if len(ports) != len(model.inputs) or not any(changing):
        return None, ports
    if any(node.type == "ReadValue" for node in model.nodes):
        return ("decoding" if any("ids" in port["name"] for port in ports) else None), ports
    if all(port["dtype"] in ("int32", "int64") for port in ports):
        return "random lengths", ports
    return ("image sizes" if changing == [[2, 3]] or changing == [[1, 2]] else None), ports


def workload(file: Path, threads: int, rounds: int) -> tuple[str, dict[str, dict[str, float]]] | None:
    """Return the kind of a model's workload and the results of each peer: medians over alternating processes.

    None if no workload suits the model. The first round is discarded: it fills the caches of kernels and of the disk.
    """
    kind, ports = described(file)
    if kind is None:
        return None
    found: dict[str, list[dict[str, float]]] = {name: [] for name, peer in PEERS.items() if peer.in_workloads}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for turn in range(rounds + 1):
        for peer in found:
            command = [sys.executable, "-m", "benchmarks.workloads", peer, kind, str(file), str(threads)]
            given = json.dumps(ports)
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                raise RuntimeError(f"{peer} cannot run {file}: {done.stderr.strip().splitlines()[-1:]}")
            if turn:
                found[peer].append(json.loads(done.stdout))
    return kind, {peer: {k: median(one[k] for one in each) for k in each[0]} for peer, each in found.items()}


def main() -> None:
    peer, kind, file, threads = sys.argv[1:]
    from resource import RUSAGE_SELF, getrusage

    ports = json.load(sys.stdin)
    start = time.perf_counter()
    infer, reset = started(peer, Path(file), int(threads))
    found = {"load s": time.perf_counter() - start, **KINDS[kind](infer, reset, ports)}
    found["peak MiB"] = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main()
