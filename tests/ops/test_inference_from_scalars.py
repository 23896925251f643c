"""Types of operations that infer from scalars do not depend on values of other inputs: the interpreter caches them."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest

from irload.core.op import infer_outputs
from irload.core.tensor import TensorType
from irload.inference import Inference
from tests.harness.case import GENERATORS
from tests.harness.verify import load
from tests.ops.families import load_families

load_families()
CASES_A_ROW = 3


@pytest.mark.parametrize("row", sorted(GENERATORS), ids="-".join)
def test_types_without_values(row: tuple[str, str]) -> None:
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    for case in (generate(rng) for _ in range(CASES_A_ROW) for generate in GENERATORS[row]):
        node = next(n for n in load(case).nodes if n.type == row[0])
        if not node.op.infers_from_scalars or node.op.supplied:
            continue
        given = [TensorType(i.element, TensorType.of(i.value).shape, i.value) for i in case.inputs]
        scalars = [t if i.value.size == 1 and i.value.dtype.kind in "biu" else replace(t, value=None)
                   for t, i in zip(given, case.inputs, strict=True)]  # fmt: skip
        found, alone = (infer_outputs(node.op, types, Inference()) for types in (given, scalars))
        assert [(t.element, t.shape) for t in found] == [(t.element, t.shape) for t in alone], case
