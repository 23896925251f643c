"""The smallest kernel there is, and libraries and objects of it: for tests of what surrounds kernels."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.compiler import compile_object
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import AVX2
from irload.record import record


class Units(Kernel):
    """A kernel of `units`, which threads share however few there are."""

    units: int

    @property
    def count(self) -> int:
        return self.units

    @property
    def cycles(self) -> float:
        return 1e9


@record()
class Fill(Units):
    """Writes a number to as many f32 as there are units. `table`: by way of a constant table of the module."""

    number: int
    units: int = 8
    table: bool = False

    def write(self, function: Function) -> None:
        f = function
        out = f.load_pointer(f["arguments"])
        numbers = f.module.table("numbers", [self.number]) if self.table else None

        def one(index: object, _: object) -> None:
            number = f.load_int(numbers) if numbers is not None else self.number
            value = f.value("float", f"sitofp i64 {number} to float")
            f.store_scalar(value, out, f.multiply(index, 4))  # type: ignore[arg-type]

        f.loop(f["begin"], f["end"], 1, one)  # type: ignore[arg-type]


def filled(kernel: Fill, threads: int = 1) -> np.ndarray:
    """What the kernel writes."""
    out = np.zeros(kernel.units, np.float32)
    launched([Launch(kernel, [address(out)])], AVX2, threads, 0).run(0, 1)
    return out


def compiled(kernel: Kernel) -> bytes:
    """The object of a kernel."""
    return compile_object(kernel.text(AVX2), AVX2)
