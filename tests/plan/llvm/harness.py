"""Runs single steps by compiled kernels, every buffer between protected pages."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm import target as targets
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.target import AMX, AVX512, AVX512_BF16, Target, host_target
from irload.plan.ir.program import Program, Step, Value, walk_values
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests

AVX2 = replace(targets.AVX2, effort=0)
"""AVX2 at LLVM's optimization level 0, which compiles fastest: LLVM's optimizations are not under test here.

`make test-jit` runs plans at the level of users.
"""
WIDE = Target("wide", 16, 32, "x86-64-v3", AVX2.flags, effort=0)
"""The code for AVX-512, run with instructions that every machine supports."""
TILES = Target("tiles", 16, 32, "x86-64-v3", AVX2.flags, tiles=True, emulated=True, effort=0)
"""The code for AMX, its tiles emulated."""
DOTS = Target("dots", 16, 32, "x86-64-v3", AVX2.flags, dots=True, emulated=True, effort=0)
"""The code for AVX512_BF16, its instruction emulated."""
_host = host_target()
TARGETS = [AVX2, WIDE, *([AVX512] if _host is not None and AVX512.flags <= _host.flags else [])]
BF16 = [TILES, DOTS, *(t for t in (AMX, AVX512_BF16) if _host is not None and t.flags <= _host.flags)]
"""The targets for products in bf16."""
TILED = [TILES, *([AMX] if _host is AMX else [])]
"""The targets for products by tiles, including the machine's AMX if present."""


def run_step(
    step: Step,
    arrays: Sequence[Array],
    target: Target = AVX2,
    threads: int = 1,
    *,
    at_end: bool = True,
    precise: bool = False,
    precision: str = "f32",
    variables: bool = False,
    resized: bool = False,
    laid: Callable[[Value, Array], Array] | None = None,
) -> list[Array]:
    """The outputs of a step. `arrays`: one for each input that is not a constant.

    Each buffer has separate pages and ends (`at_end`) or starts at a page boundary. The pages around are protected.
    `laid(value, array)` returns memory with other strides for an input or output: a view with the shape of `array` on
    memory allocated by `guarded`.
    """
    memory = GuardedMemory(step, at_end=at_end, laid=laid)
    arrays_left = iter(arrays)
    for value in step.inputs:
        if not value.is_constant and value not in memory.filled:
            memory.filled.add(value)
            memory.array(value)[...] = next(arrays_left)
    for value in step.outputs:
        memory.array(value).fill(np.nan if value.dtype.kind == "f" else 1)
    with _guarded_allocations(at_end):
        executable = LlvmExecutable(
            [step],
            memory,
            target,
            Options(threads, precise, precision=precision, variables=variables, resized=resized),
        )
        before = [memory.array(v).copy() for v in step.inputs]
        executable.run(None)
    for value, array in zip(step.inputs, before, strict=True):
        np.testing.assert_array_equal(memory.array(value), array, "an input was changed")
    return [memory.array(v).copy() for v in step.outputs]


def kernel_names(
    step: Step,
    target: Target = AVX2,
    *,
    precise: bool = False,
    laid: Callable[[Value, Array], Array] | None = None,
) -> list[str]:
    """The names of the kernels selected for a step, as `explain` shows them."""
    memory = GuardedMemory(step, at_end=True, laid=laid)
    return [kernel.name for kernel in LlvmExecutable([step], memory, target, Options(1, precise)).kernels]


class GuardedMemory(Memory):
    """Every value in separate pages."""

    def __init__(self, step: Step, *, at_end: bool, laid: Callable[[Value, Array], Array] | None) -> None:
        program = Program([step], [v for v in step.inputs if not v.is_constant], step.outputs)
        super().__init__(program, MemoryRequests())
        self.filled: set[Value] = set()
        self._guarded: dict[Value, Array] = {}
        for value in walk_values(program):
            plain = guarded(value.shape, value.dtype, at_end=at_end)
            self._guarded[value] = plain if laid is None else laid(value, plain)

    def is_view(self, value: Value) -> bool:
        return False

    def array(self, value: Value) -> Array:
        return self._guarded[value] if value in self._guarded else super().array(value)


def guarded(shape: Sequence[int], dtype: object = np.float32, *, at_end: bool = True, aligned: int = 1) -> Array:
    """An array that ends or begins at a page beyond which all access faults."""
    kind = np.dtype(dtype)  # type: ignore[call-overload]
    nbytes = int(np.prod(shape)) * kind.itemsize
    page = mmap.PAGESIZE
    inner = -(-max(nbytes, 1) // page) * page
    pages = mmap.mmap(-1, inner + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    for start in (base, base + page + inner):
        assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(page), 0) == 0
    offset = page + ((inner - nbytes) // aligned * aligned if at_end else 0)
    return np.frombuffer(pages, kind, nbytes // kind.itemsize, offset).reshape(shape)


@contextmanager
def _guarded_allocations(at_end: bool) -> Generator[None]:
    """Packed weights, scratch and temporaries are guarded, too, and NaN before they are written."""

    def allocate(size: int, alignment: int = 64) -> Array:
        array = guarded((size,), np.uint8, at_end=at_end, aligned=alignment)
        array.fill(0xFF)
        return array

    here = "irload.plan.backends.llvm"
    with patch(f"{here}.weight_memory._blocks.take", allocate), patch(f"{here}.runtime.aligned_bytes", allocate):
        yield


def channels_last(value: Value, plain: Array) -> Array:
    """The layout of maps in convolutional nets: channels innermost."""
    if not 3 <= len(value.shape) <= 5:
        return plain
    order = (0, *range(2, len(value.shape)), 1)
    return np.moveaxis(plain.reshape([value.shape[k] for k in order]), -1, 1)
