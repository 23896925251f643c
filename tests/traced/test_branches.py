"""Conditions of If on sizes are guards of traced plans."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from tests.plan.lowering.test_branches import X, doubled, model, product, rows_are


@pytest.mark.parametrize(("type", "plans"), [("NotEqual", 2), ("GreaterEqual", 2), ("Less", 2)])
def test_conditions_on_sizes_are_guards(type: str, plans: int) -> None:
    branching = model(rows_are(type, 5), doubled, product, rows="?")
    compiled, plain = irload.compile_model(branching, 1), irload.compile_model(branching, 1, optimize=False)
    for rows in (3, 4, 5, 7, 9, 5, 3):
        x = np.resize(X, (rows, 6))
        np.testing.assert_allclose(compiled(x)[0], plain(x)[0], rtol=1e-6)
    recent = compiled._traced.families.recent
    assert len(recent) <= plans
    assert {variant.remainder for variant in recent} == {None}
