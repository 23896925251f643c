"""Two tiers of the suite: `make test` runs samples of the tests that `make test-all`, the nightly run, runs in full."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

NIGHTLY = os.environ.get("IRLOAD_TESTS") == "all"
SEEDS = 16
"""The number of seeds per commit of a test parametrized by `seed`.

A multiple of the small cycles by which tests derive targets, layouts and padding from the seed.
"""


def tiered(commit: T, nightly: T) -> T:
    """One value on a commit, another one (more cases, longer chains) in the nightly run."""
    return nightly if NIGHTLY else commit


def is_nightly_only(test: pytest.Function) -> bool:
    """True for a test that `make test` omits.

    It is marked `nightly`, or a case with a high seed, or of a grid marked `one_in(n)` a case whose indices do not add
    up to a multiple of n: so each value of each parameter remains.
    """
    if NIGHTLY:
        return False
    if test.get_closest_marker("nightly") is not None:
        return True
    if not hasattr(test, "callspec"):
        return False
    seed, mark = test.callspec.params.get("seed"), test.get_closest_marker("one_in")
    return (isinstance(seed, int) and seed >= SEEDS) or (
        mark is not None and sum(test.callspec.indices.values()) % mark.args[0] != 0
    )
