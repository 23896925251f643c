"""How each operation becomes a step, a file a group. Importing the package fills the table of irload.plan.lowering."""

from irload.plan.lowered import (
    elementwise,
    matrices,
    movement,
    normalizations,
    quantization,
    resizing,
    sequences,
    windows,
)

__all__ = ["elementwise", "matrices", "movement", "normalizations", "quantization", "resizing", "sequences", "windows"]
