"""How contractions address tensors."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.elements import F32
from irload.record import record


@record()
class Access:
    """The bytes between neighbours of a tensor along each outer axis, columns and channels."""

    outer: tuple[int, ...]
    column: int
    channel: int = 0
    start: int = 0
    """The bytes from the tensor's pointer to the first output: negative for data with padding."""
    element: str = F32

    def place(self, f: Function, pointer: Pointer, outer: Sequence[AnyInt], column: AnyInt, channel: AnyInt) -> Pointer:
        """The address of an element."""
        offset: AnyInt = self.start
        for index, stride in zip(outer, self.outer, strict=True):
            offset = offset + index * stride
        offset = offset + column * self.column
        return pointer + (offset + channel * self.channel)
