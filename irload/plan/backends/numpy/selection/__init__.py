"""How each step is bound to a kernel, a file a group. Importing it fills the table of selector.py."""

from irload.plan.backends.numpy.selection import (
    compute,
    convolutions,
    elementwise,
    matrices,
    movement,
    resampling,
    rows,
    sequences,
)

__all__ = ["compute", "convolutions", "elementwise", "matrices", "movement", "resampling", "rows", "sequences"]
