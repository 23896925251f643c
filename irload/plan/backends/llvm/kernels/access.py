"""How kernels of products reach tensors."""

from __future__ import annotations

from irload.plan.backends.llvm.elements import F32
from irload.record import record


@record()
class Access:
    """How a tensor is reached: bytes between neighbours along each outer axis, columns and channels."""

    outer: tuple[int, ...]
    column: int
    channel: int = 0
    start: int = 0
    """Bytes from the pointer that is given to where output 0 begins: negative for data with padding."""
    element: str = F32
