"""The conversion of f16 to f32 by integer arithmetic, for every value."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.half import widened

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("values", [EVERY, EVERY[np.isfinite(EVERY)], EVERY[::2], EVERY.reshape(256, 256).T, EVERY[:9]])
def test_every_half_is_widened_exactly(values):
    wide, expected = widened(values), values.astype(np.float32)
    assert wide.shape == values.shape
    assert wide.dtype == np.float32
    np.testing.assert_array_equal(wide, expected)
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(wide)[finite], np.signbit(expected)[finite])
