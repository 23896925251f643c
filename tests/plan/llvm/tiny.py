"""A minimal kernel, its output and its compiled object, for tests of loading, caching and running."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.compiler import compile_object
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import AVX2
from irload.record import record


class Units(Kernel):
    """A kernel of `units` units whose cost estimate is high, so that threads share even a few units."""

    units: int

    @property
    def count(self) -> int:
        return self.units

    @property
    def cycles(self) -> float:
        return 1e9


@record()
class Fill(Units):
    """Writes a number as f32 to each unit. With `table`, the number is read from a constant table of the module."""

    number: int
    units: int = 8
    table: bool = False

    def write(self, function: Function) -> None:
        f = function
        out = f.load_pointer(f["arguments"])
        numbers = f.table("numbers", [self.number]) if self.table else None
        for index in f.range(f["begin"], f["end"]):
            number = f.load_int(numbers) if numbers is not None else self.number
            value = f.value("float", f"sitofp i64 {number} to float")
            f.store_scalar(value, out, index * 4)


def filled(kernel: Fill, threads: int = 1) -> np.ndarray:
    """Return the output of the kernel."""
    out = np.zeros(kernel.units, np.float32)
    launched([Launch(kernel, [address(out)])], AVX2, threads, 0).run(0, 1)
    return out


def compiled(kernel: Kernel) -> bytes:
    """Return the compiled object of a kernel."""
    return compile_object(kernel.text(AVX2), AVX2)
