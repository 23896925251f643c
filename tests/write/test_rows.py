"""Every row of the operation table, saved and read back: the same types, in irload and in the real runtime."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import irload
from tests.harness import runtime, verify
from tests.harness.case import GENERATORS
from tests.harness.ir import ir_of
from tests.harness.recorded import agrees
from tests.ops.families import load_families

load_families()
CASES_A_ROW = 3


def types(model):
    return [(o.element_type, o.partial_shape) for o in model.outputs]


def attributes(model):
    """The attributes of every layer but the constants, which OpenVINO adds automatically."""
    ops = (op for op in model.get_ops() if op.get_type_name() != "Constant")
    return sorted((op.get_friendly_name(), op.get_type_name(), str(op.get_attributes())) for op in ops)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("row", sorted(GENERATORS), ids="-".join)
def test_saved_cases_read_back_the_same(row, tmp_path):
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    pairs = []
    for k in range(CASES_A_ROW):
        case = GENERATORS[row][k % len(GENERATORS[row])](rng)
        for shapes in (None, verify.relax(case, rng)):
            file = tmp_path / f"{len(pairs)}.xml"
            model = irload.read_model(*ir_of(case, shapes))
            irload.save_model(model, file)
            assert types(irload.read_model(file)) == types(model)
            pairs.append((case, shapes, file))

    def evidence():
        for case, shapes, file in pairs:
            yield from (*ir_of(case, shapes), file.read_bytes(), file.with_suffix(".bin").read_bytes())

    def compare():
        for case, shapes, file in pairs:
            try:
                original = runtime.read(case, shapes)
            except runtime.Rejected:
                continue
            saved = runtime.core().read_model(file)
            assert runtime.inferred(saved) == runtime.inferred(original)
            if row[0] not in ("Loop", "TensorIterator", "If"):  # their attributes are the bodies themselves
                assert attributes(saved) == attributes(original)

    agrees(f"saved {'-'.join(row)}", evidence(), compare)
