"""Provides selections of kernels with arrays, packed weights and temporary memory."""

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
"""Packed weights by packing and constant. They are released with the last plan that uses them."""


class Selector:
    """Provides kernel selections of one executable with arrays, packed weights, temporary memory and launches."""

    def __init__(self, memory: Memory, target: Target, options: Options, packs: PackedConstants) -> None:
        self.memory = memory
        self.target = target
        self.threads = options.threads
        self.precise = options.precise
        self.variables = options.variables
        self.resized = options.resized
        """True if the sizes of values differ between calls."""
        self.bf16 = in_bf16(target, options.precision, precise=options.precise)
        self.constants: list[Array] = []
        """Constants that kernels read unpacked."""
        self.packed_weights: list[Array] = []
        self.temporary_bytes = 0
        self._packs = packs
        self._offset = 0

    def begin(self) -> None:
        """Begin a step: the temporary memory of the previous step is reused."""
        self._offset = 0

    def array(self, value: Value) -> Array:
        """Return the array of a value, or of a constant. Raises PlanInvalid for values stored in another type."""
        stored = self.stored(value)
        if stored.dtype != value.dtype:
            raise PlanInvalid(f"{value} is stored in {stored.dtype}, which this kernel does not read")
        return stored

    def stored(self, value: Value) -> Array:
        """Return the array of a value or constant in its stored type."""
        if value.source is None:
            return self.memory.array(value)
        array = value.source.held_array()
        self.constants.append(array)
        return array

    def keep_alive(self, array: Array) -> Array:
        """Keep an array alive that a selection has created. It must be equal for steps that differ only in operands."""
        self.constants.append(array)
        return array

    def chunks(self, value: Value) -> Array | None:
        """Return the buffer of a value that is stored in chunks; None for values that strides describe."""
        return self.memory.buffer(value) if self.memory.layout(value).nbytes is not None else None

    def packed(self, value: Value, how: Hashable, pack: Callable[[Array], Array], *, stored: bool = False) -> Array:
        """Return constant weights packed by `pack`, once for all plans of a model. The original is released.

        `how`: the key of the packing. `stored`: `pack` gets f16 weights if the file stores them as f16 and the model
        widens them to f32. Raises ValueError for a value that is not constant.
        """
        return self.packed_constant(value, how, lambda source: pack(source.stored if stored else source.array))

    def packed_constant(self, value: Value, how: Hashable, pack: Callable[[Constant], Array]) -> Array:
        """Return constant weights packed by a function of the constant, which may be compressed."""
        source = value.source
        if source is None:
            raise ValueError(f"{value} is not constant")
        packed = self._packs.get((how, source))
        if packed is None:
            packed = self._packs[how, source] = pack(source)
            source.release()
        self.packed_weights.append(packed)
        return packed

    def temporary(self, nbytes: int) -> Temporary:
        """Allocate memory, aligned to cache lines, that one kernel of a step writes and a later one reads."""
        start = self._offset
        self._offset += -(-nbytes // 64) * 64
        self.temporary_bytes = max(self.temporary_bytes, self._offset)
        return Temporary(start)

    def launch(self, kernel: Kernel, pointers: Sequence[Array | Temporary | None]) -> Launch:
        """Return the launch of a kernel with arrays, temporaries or null as its pointers."""
        keep = [p for p in pointers if p is not None and not isinstance(p, Temporary)]
        values = [p if isinstance(p, Temporary) else 0 if p is None else address(p) for p in pointers]
        return Launch(kernel, values, keep)
