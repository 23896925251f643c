"""The peak performance of this machine, measured once: floating-point operations and bytes copied per second."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np

from irload.plan.backends.compiled import Peaks
from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.dot import FMA, Dot, byte_dot, dots
from irload.plan.backends.llvm.elements import BF16, F32
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.kernels.copying import RunCopy
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import Tiles
from irload.record import record
from irload.safety.private_json import read_json, write_json
from irload.system.machine import cache_folder, processor

ROUNDS = 7
"""Runs of each kernel; the fastest is used."""
UNITS = 64
"""Units of work of each kernel."""
TURNS = 20_000
"""Iterations of the loop of a unit, with vectors."""
SUMS = 12
"""Independent accumulators: enough to hide the latency of FMA, few enough for 16 registers."""
TILES, TILE_TURNS = 4, 1250
"""Tiles of sums, and iterations of the loop of a unit: a tile product takes as long as 16 instructions."""
COPIED = 64 << 20
"""Bytes of the copy, more than the caches."""
LARGEST = 1e18
"""Larger rates are invalid."""
COPIES, INT8 = "copies", "int8"
"""Kinds of peaks, besides products in F32 and BF16."""


@record()
class MultiplyLoop(Kernel):
    """Multiplies and adds in vector registers, or in tiles of zeros. Pointer: the results, one vector per unit."""

    lanes: int
    dot: Dot = FMA

    @property
    def count(self) -> int:
        return UNITS

    @property
    def cycles(self) -> float:
        return UNITS * TURNS * SUMS / 2

    @property
    def scratch(self) -> int:
        return tiles.STATE if self.dot.tiled else 0

    @property
    def operations(self) -> int:
        """Multiplications and additions of all units."""
        sums = TILE_TURNS * TILES * tiles.ROWS**2 if self.dot.tiled else TURNS * SUMS
        return UNITS * sums * self.lanes * 2 * self.dot.k

    def write(self, f: Function) -> None:
        if self.dot.tiled:
            self._write_tiles(f)
        else:
            self._write_vectors(f)

    def _write_vectors(self, f: Function) -> None:
        out = f.load_pointer(f["arguments"])
        factor = f.number(0.999)
        for index in f.range(f["begin"], f["end"]):
            place = index * (4 * self.lanes)
            totals = [f.load(out, place, element=self.dot.sums)] * SUMS
            for _ in f.range(0, TURNS, 1, totals):
                # LLVM would hoist integer products of constants out of the loop
                data = [factor] * SUMS if self.dot.sums == F32 else [totals[-1], *totals[:-1]]
                pairs = zip(totals, data, strict=True)
                totals[:] = [self.dot.multiply(f, total, other, factor) for total, other in pairs]
            total = totals[0]
            for other in totals[1:]:
                total = total + other
            f.store(total, out, place)

    def _write_tiles(self, f: Function) -> None:
        registers = Tiles(f, f["scratch"])
        registers.configure([(tiles.ROWS, tiles.BYTES)] * (TILES + 2))
        for _ in f.range(f["begin"], f["end"]):
            for _ in f.range(0, TILE_TURNS):
                for sums in range(TILES):
                    registers.dot(sums, TILES, TILES + 1)
        registers.release()


def peaks(target: Target, threads: int) -> Peaks:
    """The peaks with this number of threads, from the user's cache or measured in a fraction of a second."""
    return Peaks(*(rate(target, threads, kind) for kind in (F32, COPIES, BF16, INT8)))


@cache
def rate(target: Target, threads: int, kind: str) -> float:
    """A peak, from the user's cache or measured; 0 for products that the target does not compute.

    `kind`: of products (F32, BF16 or INT8), or COPIES.
    """
    if kind == BF16 and not target.bf16:
        return 0.0
    key = f"{processor()}, {target.name}, {threads} threads, {kind}"
    known = _read(peaks_file())
    if key not in known:
        known[key] = measure(target, threads, kind)
        write_json(peaks_file(), known)
    return known[key]


def peaks_file() -> Path:
    """The file in the user's cache."""
    return cache_folder() / "peaks.json"


def measure(target: Target, threads: int, kind: str) -> float:
    """Measure a peak: operations or bytes per second."""
    if kind == COPIES:
        blocks = np.ones((2, COPIED), np.uint8)
        copy = RunCopy(target.lanes, (Axis(COPIED, (1, 1)),))
        return blocks.nbytes / _least(Launch(copy, [address(b) for b in blocks], [blocks]), target, threads)
    dot = byte_dot(target, saturates=False) if kind == INT8 else dots(target)[kind]
    out, loop = np.ones(UNITS * target.lanes, np.float32), MultiplyLoop(target.lanes, dot)
    return loop.operations / _least(Launch(loop, [address(out)], [out]), target, threads)


def _least(launch: Launch, target: Target, threads: int) -> float:
    table = launched([launch], target, threads, 0)
    seconds: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        table.run(0, 1)
        seconds.append(perf_counter() - start)
    return min(seconds)


def _read(file: Path) -> dict[str, float]:
    """The valid entries of the file; none if it is missing or damaged."""
    entries = read_json(file).items()
    return {key: float(value) for key, value in entries if isinstance(value, int | float) and 0 < value < LARGEST}
