"""The back end of compiled kernels: implements the contracts of plan/backends/base.py and compiled.py.

Modules that only planning needs are imported when the first step is planned. A plan from the cache runs without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from irload.core.op import Op
from irload.core.size import reaches
from irload.plan.backends.llvm.compiler import llvmlite_version
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import LEAST_RELAID

if TYPE_CHECKING:
    from irload.options import Options
    from irload.plan.backends.base import SharedData
    from irload.plan.backends.compiled import Peaks
    from irload.plan.backends.llvm.executable import LlvmExecutable
    from irload.plan.backends.llvm.image import LoadedImage
    from irload.plan.backends.llvm.relocatable import RelocatableSegment
    from irload.plan.ir.program import Program, Step, Value
    from irload.plan.memory.aliases import Aliases
    from irload.plan.memory.layout import Layout
    from irload.plan.memory.memory import Memory
    from irload.plan.memory.requests import MemoryRequests


def _is_transposed(value: Value) -> bool:
    """True for values of 4-byte elements that channels-last layout reorders, if they are many or of symbolic size."""
    is_large = reaches(value.size, LEAST_RELAID)
    return is_large and value.shape[1] > 1 and prod(value.shape[2:]) > 1 and value.dtype.itemsize == 4


def _with(op: Op, name: str, inner: object) -> Op:
    """A copy of the operation with attribute `name` replaced by `inner`."""
    changed = copy(op)
    changed.__dict__[name] = inner
    return changed


class LlvmBackend:
    """Runs most steps on f32; NumPy runs the others.

    `bf16`: products are computed, and some values stored, in bf16. `bf16_weights`: only matmuls with constant weights
    are computed in bf16. `int8`: products of quantized values are computed in integers.
    """

    name = "llvm"

    def __init__(self, target: Target, *, bf16: bool = False, bf16_weights: bool = False, int8: bool = False) -> None:
        self.target = target
        self.bf16 = bf16
        self.bf16_weights = bf16_weights
        self.int8 = int8

    @property
    def identity(self) -> str:
        weights = " bf16 weights" if self.bf16_weights else ""
        return f"llvmlite {llvmlite_version()} {self.target!r} {self.precision}{weights}"

    @property
    def precision(self) -> str:
        return "bf16" if self.bf16 else "f32"

    def supports(self, step: Step) -> bool:
        from irload.plan.backends.llvm.selection import TABLE

        return TABLE.supports(step)

    def operation(self, op: Op) -> Op:
        from irload.ops.detection.boxes import Suppressing
        from irload.ops.movement.scatter import ScatterElementsUpdate12
        from irload.ops.sparse.embedding import EmbeddingBag
        from irload.ops.text.tools import TextOp

        if isinstance(op, Suppressing):
            from irload.plan.backends.llvm.kernels.suppression import suppressor  # not needed by plans from the cache

            return _with(op, "suppress", suppressor(self.target))
        if isinstance(op, EmbeddingBag):
            from irload.plan.backends.llvm.kernels.embedding_bags import row_summer  # rarely used

            return _with(op, "sum_rows", row_summer(self.target))
        if isinstance(op, ScatterElementsUpdate12):
            from irload.plan.backends.llvm.kernels.scattering import along_reducer  # rarely used

            return _with(op, "reduce_along", along_reducer(self.target))
        if isinstance(op, TextOp):
            from irload.plan.backends.llvm.kernels.text.tools import CompiledTools

            return _with(op, "tools", CompiledTools(self.target))
        return op

    def fuse(self, program: Program) -> None:
        """No-op: kernels support several results and any expression."""

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        from irload.plan.backends.channels_last import layouts
        from irload.plan.ir.steps import ProductStep
        from irload.plan.memory.requests import MemoryRequests

        requested = layouts(program, steps)
        first_input_layouts: dict[Step, Layout] = {}
        if self.int8:
            from irload.plan.backends.llvm.row_codes import quantized_operands  # not needed by f32

            first_input_layouts |= quantized_operands(steps, self.target, bf16=self.bf16)
        if self.bf16 or self.bf16_weights:
            from irload.plan.backends.llvm.storage import (  # not needed by f32
                reordered_operands,
                stored_layouts,
            )

            requested = stored_layouts(program, steps, requested, self.target) if self.bf16 else requested
            floats = [s for s in steps if s not in first_input_layouts]
            first_input_layouts |= reordered_operands(floats, requested, self.target, weights_only=self.bf16_weights)
        if any(isinstance(s, ProductStep) and s.multiplies_integers for s in steps):
            from irload.plan.backends.llvm.storage import widened_layouts  # not needed by floats

            requested = widened_layouts(program, steps, requested, self.target)
        copied_results = {v for v in requested if v in program.returned and _is_transposed(v)}
        return MemoryRequests(requested, copied_results, first_input_layouts)

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options, shared: SharedData) -> LlvmExecutable:
        from irload.plan.backends.llvm.executable import LlvmExecutable

        return LlvmExecutable(steps, memory, self.target, self.resolved(options), shared)

    def prepare(
        self,
        steps: Sequence[Step],
        aliases: Aliases,
        numbering: Mapping[Value, int],
        options: Options,
        shared: SharedData,
    ) -> RelocatableSegment:
        from irload.plan.backends.llvm.relocatable import RelocatableSegment

        return RelocatableSegment(steps, aliases, numbering, self.target, self.resolved(options), shared)

    def resolved(self, options: Options) -> Options:
        """The options with the precision of this back end instead of `auto`."""
        return replace(options, precision="bf16" if self.bf16 else "f32")

    def peaks(self, threads: int) -> Peaks:
        from irload.plan.backends.llvm.peaks import peaks

        return peaks(self.target, threads)

    def restore(self, code: bytes) -> LoadedImage:
        from irload.plan.backends.llvm.image import LoadedImage

        return LoadedImage(code, self.target)
