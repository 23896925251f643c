"""What a selection works with: the memory of the plan, its target and threads, and what it keeps for the executable."""

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

PackedWeights = WeakValueDictionary[tuple[Hashable, Constant], Array]
"""Weights as kernels read them, by the way of packing; they live as long as a plan that uses them."""


class Selector:
    """Gives selections arrays and launches. One for each executable."""

    def __init__(self, memory: Memory, target: Target, options: Options, packs: PackedWeights) -> None:
        self.memory = memory
        self.target = target
        self.threads = options.threads
        self.precise = options.precise
        self.bf16 = in_bf16(target, options.precision, precise=options.precise)
        self.constants: list[Array] = []
        """Those that kernels read where they are."""
        self.packed_weights: list[Array] = []
        self.temporary_bytes = 0
        self.borrowed: Launch | None = None
        """What made the copy that this step reads, if that was an earlier one's."""
        self._packs = packs
        self._offset = 0
        self._left: tuple[Value, Launch, int] | None = None
        """The value that the first temporary holds a copy of, what made it, and its bytes."""

    def begin(self) -> None:
        """A new step: the temporaries of the last one are free."""
        self._offset = 0
        self.borrowed = None

    def array(self, value: Value) -> Array:
        """A value where it lies, or a constant, which is kept. Raises PlanInvalid for values stored in another type."""
        found = self.stored(value)
        if found.dtype != value.dtype:
            raise PlanInvalid(f"{value} is stored in {found.dtype}, which this kernel does not read")
        return found

    def stored(self, value: Value) -> Array:
        """The same for kernels that take any type in which values are stored."""
        if value.source is None:
            return self.memory.array(value)
        found = value.source.held_array()
        self.constants.append(found)
        return found

    def packed(self, value: Value, how: Hashable, pack: Callable[[Array], Array], *, stored: bool = False) -> Array:
        """Constant weights as `pack` makes them, once for all plans of a model; the original is released.

        `stored`: `pack` takes f16 for f32, where the file holds f16.

        Raises ValueError for a value that is not constant.
        """
        source = value.source
        if source is None:
            raise ValueError(f"{value} is no constant")
        found = self._packs.get((how, source))
        if found is None:
            found = self._packs[how, source] = pack(source.stored if stored else source.array)
            source.release()
        self.packed_weights.append(found)
        return found

    def temporary(self, nbytes: int) -> Temporary:
        """Memory for what one kernel of a step hands to the next, aligned to cache lines."""
        start = self._offset
        if self._left is not None and start < self._left[2]:
            self._left = None
        self._offset += -(-nbytes // 64) * 64
        self.temporary_bytes = max(self.temporary_bytes, self._offset)
        return Temporary(start)

    def copied(self, value: Value, data: Array, copy: Kernel, nbytes: int) -> tuple[Temporary, list[Launch]]:
        """Memory with a copy of a value, and what makes it: nothing where the steps before have left the very same.

        So products that read one value copy it once. `data`: where the value lies, as the kernel reads it.
        """
        left = self._left
        if left is not None and self._offset == 0 and left[0] is value and left[1].kernel == copy:
            self._offset = -(-nbytes // 64) * 64
            self.borrowed = left[1]
            return Temporary(0), []
        place = self.temporary(nbytes)
        launch = self.launch(copy, [data, place])
        self._left = (value, launch, nbytes) if place.offset == 0 else None
        return place, [launch]

    def launch(self, kernel: Kernel, pointers: Sequence[Array | Temporary | None]) -> Launch:
        """A kernel with arrays, temporaries or nothing as its pointers."""
        keep = [p for p in pointers if p is not None and not isinstance(p, Temporary)]
        found = [p if isinstance(p, Temporary) else 0 if p is None else address(p) for p in pointers]
        return Launch(kernel, found, keep)
