"""What this machine can do at most, measured once: multiplications with additions, and bytes copied."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import perf_counter

import numpy as np

from irload.machine import cache_folder, processor
from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.dots import dot
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import Tiles
from irload.portable import replace
from irload.record import record

ROUNDS = 7
"""How often each kernel is timed; the least counts."""
UNITS = 64
"""Units of work of each kernel."""
TURNS = 20_000
"""Turns of a unit's loop of sums."""
SUMS = 12
"""Independent sums: enough to hide the latency of an addition, few enough for 16 registers."""
TILES, TILE_TURNS = 4, 1250
"""Tiles of sums, and turns of a unit's loop of them: a product of tiles takes as long as 16 instructions."""
CHUNK = 1 << 20
"""Bytes that a unit copies; all of them together are more than a cache holds."""


@record()
class Peaks:
    """Floating-point operations in f32, bytes read or written, and operations of products in bf16, per second.

    The last is 0 where the target has no products in bf16.
    """

    flops: float
    nbytes: float
    bf16: float


@record()
class Multiply(Kernel):
    """Multiplies and adds in registers, in f32 or `pairs` of bf16. Pointers: a vector for each unit, for the result."""

    lanes: int
    pairs: bool = False

    @property
    def count(self) -> int:
        return UNITS

    @property
    def cycles(self) -> float:
        return UNITS * TURNS * SUMS / 2

    @property
    def operations(self) -> int:
        """Multiplications and additions of all units."""
        return UNITS * TURNS * SUMS * self.lanes * (4 if self.pairs else 2)

    def write(self, function: Function) -> None:
        f = function
        out = f.load_pointer(f["arguments"])
        factor = f.number(0.999)

        def more(total: Value) -> Value:
            return dot(f, total, factor, factor) if self.pairs else f.fma(total, factor, factor)

        def unit(index: Value, _: list[Value]) -> None:
            place = f.multiply(index, 4 * self.lanes)
            start = [f.load(out, place)] * SUMS
            totals = f.loop(0, TURNS, 1, lambda _, sums: [more(s) for s in sums], start)
            total = totals[0]
            for other in totals[1:]:
                total = f.arithmetic("fadd", total, other)
            f.store(total, out, place)

        f.loop(f["begin"], f["end"], 1, unit)


@record()
class MultiplyTiles(Kernel):
    """Multiplies tiles of zeros, and adds them. No pointers."""

    @property
    def count(self) -> int:
        return UNITS

    @property
    def cycles(self) -> float:
        return UNITS * TILE_TURNS * TILES * tiles.ROWS

    @property
    def scratch(self) -> int:
        return tiles.STATE

    @property
    def operations(self) -> int:
        """Multiplications and additions of all units."""
        return UNITS * TILE_TURNS * TILES * 2 * tiles.ROWS * tiles.ROWS * tiles.DEPTH

    def write(self, function: Function) -> None:
        f = function
        registers = Tiles(f, f["scratch"])

        def turn(_: Value, __: list[Value]) -> None:
            for sums in range(TILES):
                registers.dot(sums, TILES, TILES + 1)

        registers.configure([(tiles.ROWS, tiles.BYTES)] * (TILES + 2))
        f.loop(f["begin"], f["end"], 1, lambda _, __: f.loop(0, TILE_TURNS, 1, turn))
        registers.release()


@record()
class Move(Kernel):
    """Copies one block of memory. Pointers: from, to."""

    lanes: int

    @property
    def count(self) -> int:
        return UNITS

    @property
    def cycles(self) -> float:
        return UNITS * CHUNK / 8

    def write(self, function: Function) -> None:
        f = function
        source, target = f.load_pointer(f["arguments"]), f.load_pointer(f["arguments"], 8)

        def unit(index: Value, _: list[Value]) -> None:
            start = f.multiply(index, CHUNK)

            def vector(at: Value, _: list[Value]) -> None:
                place = f.add(start, at)
                f.store(f.load(source, place), target, place)

            f.loop(0, CHUNK, 4 * self.lanes, vector)

        f.loop(f["begin"], f["end"], 1, unit)


@cache
def peaks(target: Target, threads: int) -> Peaks:
    """The peaks of so many threads, from the user's cache or measured, which takes a fraction of a second."""
    key = f"{processor()}, {target.name}, {threads} threads"
    known = _read(peaks_file())
    if key not in known:
        known[key] = measure(target, threads)
        _write(peaks_file(), known)
    return known[key]


def peaks_file() -> Path:
    """Where peaks are kept."""
    return cache_folder() / "peaks.json"


def measure(target: Target, threads: int) -> Peaks:
    """The peaks as they are now."""
    out = np.ones(UNITS * target.lanes, np.float32)
    blocks = np.ones((2, UNITS * CHUNK // 4), np.float32)
    plain, pairs = Multiply(target.lanes), MultiplyTiles() if target.tiles else Multiply(target.lanes, pairs=True)
    flops = plain.operations / _least(Launch(plain, [address(out)], [out]), target, threads)
    moving = _least(Launch(Move(target.lanes), [address(b) for b in blocks], [blocks]), target, threads)
    bf16 = pairs.operations / _least(Launch(pairs, [address(out)], [out]), target, threads) if target.bf16 else 0.0
    return Peaks(flops, blocks.nbytes / moving, bf16)


def _least(launch: Launch, target: Target, threads: int) -> float:
    table = launched([launch], target, threads, 0)
    seconds: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        table.run(0, 1)
        seconds.append(perf_counter() - start)
    return min(seconds)


def _read(file: Path) -> dict[str, Peaks]:
    """What the file holds; nothing where it is missing or not what it should be."""
    with suppress(OSError, ValueError, AttributeError, TypeError):
        found = {str(key): Peaks(*map(float, value)) for key, value in json.loads(file.read_text("utf-8")).items()}
        return {key: p for key, p in found.items() if min(p.flops, p.nbytes) > 0 <= p.bf16 and _is_finite(p)}
    return {}


def _is_finite(found: Peaks) -> bool:
    return all(math.isfinite(x) for x in (found.flops, found.nbytes, found.bf16))


def _write(file: Path, known: dict[str, Peaks]) -> None:
    """Keep what was measured. That it cannot be written is no reason to fail."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({key: (p.flops, p.nbytes, p.bf16) for key, p in known.items()}, indent=1, sort_keys=True)
        with NamedTemporaryFile("w", dir=file.parent, prefix=".peaks", delete=False, encoding="utf-8") as stream:
            stream.write(text)
        replace(stream.name, file)
