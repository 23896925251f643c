"""Measures the time per token against the number of preceding tokens: it must grow no faster than attention's cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.worker import inputs

LENGTHS = (16, 32, 64, 128, 256, 512)
TOKENS = 12
"""Number of tokens timed after each length."""


@dataclass
class Decoder:
    """Milliseconds per token (median) with this number of preceding tokens."""

    tokens: int
    ms: float


def decoder(folder: Path, threads: int = 1) -> list[Decoder]:
    """Feed tokens one by one, as in generation, and time `TOKENS` of them after each length that the model supports."""
    import irload

    request = irload.compile_model(folder / "model.xml", threads).create_infer_request()
    token = inputs(folder)[0][:, :1]
    found: list[Decoder] = []
    count = 0
    for length in LENGTHS:
        seconds: list[float] = []
        try:
            while count < length + TOKENS:
                start = time.perf_counter()
                request.infer(token)
                count += 1
                if count > length:
                    seconds.append(time.perf_counter() - start)
        except irload.IRError:  # longer than the model's table of positions
            break
        found.append(Decoder(length, median(seconds) * 1e3))
    return found
