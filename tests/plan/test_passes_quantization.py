"""FakeQuantize as an expression: fewer instructions if bounds are scalars or zero, the same rounding of halves."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from tests.harness.case import Case, const, param
from tests.harness.verify import load

CHANNELS = np.array([0.5, 1, 2], np.float32).reshape(1, 3, 1, 1)


@pytest.mark.parametrize("levels", [2, 16, 255, 256])
@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 2.55), (-1.28, 1.27), (-CHANNELS, CHANNELS), (0.0, CHANNELS), (-CHANNELS, 0.7)]
)
def test_it_rounds_as_plainly(levels: int, low: Array | float, high: Array | float) -> None:
    wide = np.max(np.asarray(high)) - np.min(np.asarray(low))
    x = (
        (np.arange(-300, 3 * 700 - 300) / 2 * wide / (levels - 1)).astype(np.float32).reshape(1, 3, 20, 35)
    )  # many halves
    x[0, 0, 0, :2] = np.inf, np.nan
    bounds = [const(np.asarray(b, np.float32)) for b in (low, high, low, high)]
    model = load(Case("FakeQuantize", "opset1", [param(x), *bounds], {"levels": levels}))
    plain = irload.compile_model(model, optimize=False)(x)[0]
    planned = irload.compile_model(model, 1)(x)[0]
    np.testing.assert_allclose(planned, plain, 1e-6, 1e-6)
