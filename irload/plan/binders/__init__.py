"""How each step is bound to a kernel, a file a group. Importing the package fills the table of irload.plan.bind."""

from irload.plan.binders import maps, matrices, movement, operation, resampling, rows, sequences, windows

__all__ = ["maps", "matrices", "movement", "operation", "resampling", "rows", "sequences", "windows"]
