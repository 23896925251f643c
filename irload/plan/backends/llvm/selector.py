"""The arrays, packed weights and temporary memory from which selections build launches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from weakref import WeakValueDictionary

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary, address
from irload.plan.backends.llvm.target import Target, in_bf16
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import PlanInvalid, Value
from irload.plan.memory.memory import Memory

PackedConstants = WeakValueDictionary[tuple[Hashable, Constant], Array]
"""Packed weights by packing and constant. They live as long as a plan that uses them."""


class Selector:
    """Provides selections with arrays and launches. One for each executable."""

    def __init__(self, memory: Memory, target: Target, options: Options, packs: PackedConstants) -> None:
        self.memory = memory
        self.target = target
        self.threads = options.threads
        self.precise = options.precise
        self.variables = options.variables
        self.resized = options.resized
        self.bf16 = in_bf16(target, options.precision, precise=options.precise)
        self.constants: list[Array] = []
        """Constants that kernels read unpacked."""
        self.packed_weights: list[Array] = []
        self.temporary_bytes = 0
        self._packs = packs
        self._offset = 0

    def begin(self) -> None:
        """Begin a step: the temporaries of the last one are free."""
        self._offset = 0

    def array(self, value: Value) -> Array:
        """Return a value, or a constant, which is kept. Raises PlanInvalid for values stored in another type."""
        found = self.stored(value)
        if found.dtype != value.dtype:
            raise PlanInvalid(f"{value} is stored in {found.dtype}, which this kernel does not read")
        return found

    def stored(self, value: Value) -> Array:
        """Return the same for kernels that read any stored type."""
        if value.source is None:
            return self.memory.array(value)
        found = value.source.held_array()
        self.constants.append(found)
        return found

    def own(self, array: Array) -> Array:
        """Keep an array that a selection has created, equal for all steps that differ only in their operands."""
        self.constants.append(array)
        return array

    def chunks(self, value: Value) -> Array | None:
        """Return the bytes of a copy in chunks, None for a value that strides describe."""
        return self.memory.buffer(value) if self.memory.layout(value).nbytes is not None else None

    def packed(self, value: Value, how: Hashable, pack: Callable[[Array], Array], *, stored: bool = False) -> Array:
        """Return constant weights packed by `pack`, once for all plans of a model; the original is released.

        `stored`: `pack` reads f16 if the file holds f16 for f32. Raises ValueError for a value that is not constant.
        """
        return self.packed_constant(value, how, lambda source: pack(source.stored if stored else source.array))

    def packed_constant(self, value: Value, how: Hashable, pack: Callable[[Constant], Array]) -> Array:
        """Return the same for a `pack` that reads the constant in another form."""
        source = value.source
        if source is None:
            raise ValueError(f"{value} is not constant")
        found = self._packs.get((how, source))
        if found is None:
            found = self._packs[how, source] = pack(source)
            source.release()
        self.packed_weights.append(found)
        return found

    def temporary(self, nbytes: int) -> Temporary:
        """Allocate memory that one kernel of a step writes and the next one reads, aligned to cache lines."""
        start = self._offset
        self._offset += -(-nbytes // 64) * 64
        self.temporary_bytes = max(self.temporary_bytes, self._offset)
        return Temporary(start)

    def launch(self, kernel: Kernel, pointers: Sequence[Array | Temporary | None]) -> Launch:
        """Return the launch of a kernel with arrays, temporaries or null as its pointers."""
        keep = [p for p in pointers if p is not None and not isinstance(p, Temporary)]
        found = [p if isinstance(p, Temporary) else 0 if p is None else address(p) for p in pointers]
        return Launch(kernel, found, keep)
