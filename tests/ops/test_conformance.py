"""Every row of the operation table against the real runtime, on seeded random cases."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.harness.case import GENERATORS
from tests.harness.recorded import agrees
from tests.harness.verify import Proofs
from tests.ops.families import load_families

load_families()
CASES_A_ROW = 4


@pytest.mark.parametrize("row", sorted(GENERATORS), ids="-".join)
def test_agrees_with_the_runtime(row: tuple[str, str]) -> None:
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    proofs = [Proofs(generate(rng), rng) for _ in range(CASES_A_ROW) for generate in GENERATORS[row]]

    def compare() -> None:
        for proof in proofs:
            proof.check()

    agrees(f"conformance {'-'.join(row)}", (piece for proof in proofs for piece in proof.evidence()), compare)
