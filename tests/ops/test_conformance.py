"""Every row of the operation table against the real runtime, on seeded random cases."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.harness import verify
from tests.harness.case import GENERATORS
from tests.ops.families import load_families

load_families()
CASES_A_ROW = 6


@pytest.mark.parametrize("row", sorted(GENERATORS), ids="-".join)
def test_agrees_with_the_runtime(row: tuple[str, str]) -> None:
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    for _ in range(CASES_A_ROW):
        for generate in GENERATORS[row]:
            verify.check_everything(generate(rng), rng)
