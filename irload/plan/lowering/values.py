"""What lowerings ask of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.plan.ir.program import Value


def all_f32(values: Sequence[Value]) -> bool:
    """True when every value is f32, the type that steps with arithmetic take."""
    return all(v.dtype == np.float32 for v in values)


def scalar(value: Value) -> float | None:
    """The number that a constant of one element holds, None for all else."""
    return None if value.size != 1 or value.constant is None else float(value.constant.reshape(-1)[0])
