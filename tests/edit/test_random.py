"""Random applications of each tool to the models of the repository; `tests.edit.sweep` runs them on larger ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.edit.applications import APPLICATIONS
from tests.edit.conftest import NAMES
from tests.edit.source import Source
from tests.harness.tiers import tiered


@pytest.mark.one_in(2)
@pytest.mark.parametrize("tool", APPLICATIONS)
def test_outputs_stay_and_the_runtime_agrees(tool: str, sources: dict[str, Source], tmp_path) -> None:
    done = 0
    for seed in range(tiered(1, 20)):
        for k, name in enumerate(NAMES):
            if tool == "set_batch" and name == "state":
                continue  # test_set_batch has the refusal
            edited = APPLICATIONS[tool](sources[name], np.random.default_rng([seed, k]))
            if edited is not None:
                assert sources[name].faults(edited, tmp_path) == [], (name, edited.text)
                done += 1
    assert done >= tiered(1, 20)
