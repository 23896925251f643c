"""How the time of a token grows with the tokens before it: it must not outgrow what attention has to look at."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.worker import inputs

LENGTHS = (16, 32, 64, 128, 256, 512)
TOKENS = 12
"""Tokens timed at each length."""


@dataclass
class Decoder:
    """The median milliseconds of a token when so many came before it."""

    tokens: int
    ms: float


def decoder(folder: Path, threads: int = 1) -> list[Decoder]:
    """Feed one token after the other, as generation does, and time some at each length that the model bears."""
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
        except irload.IRError:  # the table of positions ends
            break
        found.append(Decoder(length, median(seconds) * 1e3))
    return found
