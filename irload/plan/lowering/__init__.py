"""How each operation becomes a step, a file a group. Importing it fills the table of lower.py."""

from irload.plan.lowering import (
    convolutions,
    elementwise,
    matrices,
    movement,
    normalizations,
    quantization,
    resizing,
    sequences,
)

__all__ = [
    "convolutions",
    "elementwise",
    "matrices",
    "movement",
    "normalizations",
    "quantization",
    "resizing",
    "sequences",
]
