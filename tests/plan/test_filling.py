"""Arrays with a short innermost axis are filled one position of this axis at a time, others at once."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.memory.filling import SHORT, pieces


def channels_last(*shape: int) -> Array:
    return np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), np.float32), -1, 1)


@pytest.mark.parametrize(
    ("target", "count"),
    [
        (channels_last(1, 3, 5, 7), 3),
        (channels_last(2, SHORT, 5, 7), SHORT),
        (channels_last(2, SHORT + 1, 5, 7), 1),
        (channels_last(2, 1, 5, 7), 1),
        (channels_last(1, 3, 1, 1), 1),
        (channels_last(2, 3, 9), 3),
        (np.empty((4, 3), np.float32), 1),
        (np.empty((4, 3), np.float32).T, 3),
        (np.empty((), np.float32), 1),
        (np.empty((0, 3, 0, 2), np.float32), 1),
    ],
)
def test_a_short_innermost_axis_is_filled_position_by_position(target: Array, count: int) -> None:
    cuts = pieces(target)
    assert len(cuts) == count
    source = np.arange(target.size, dtype=np.float32).reshape(target.shape)
    wanted = np.full(target.shape, -1, np.float32)
    for part in cuts:
        wanted[part] = source[part]
    np.testing.assert_array_equal(wanted, source)
