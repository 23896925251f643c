"""Two tiers of the suite: `make test` runs samples of the tests that `make test-all`, the nightly run, runs in full."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

T = TypeVar("T")

NIGHTLY = os.environ.get("IRLOAD_TESTS") == "all"
SEEDS = 5
"""The number of seeds per commit of a test parametrized by `seed`.

At least the small numbers by which tests reduce the seed to select targets, layouts and padding.
"""


def tiered(commit: T, nightly: T) -> T:
    """`commit` on a commit, `nightly` (more cases, longer chains) in the nightly run."""
    return nightly if NIGHTLY else commit


def nightly_only(tests: Iterable[pytest.Function]) -> Iterator[pytest.Function]:
    """The tests that `make test` omits.

    These are tests marked `nightly`, cases with a seed of at least SEEDS, and most cases of grids marked `one_in(n)`:
    all except cases in which the indices of the parameter values add up to a multiple of n. Every value is still tested
    if the other parameters together have at least n values.
    """
    if NIGHTLY:
        return
    positions: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for test in tests:
        mark, total = test.get_closest_marker("one_in"), 0
        params: dict[str, object] = test.callspec.params if hasattr(test, "callspec") else {}
        for name, value in params.items():
            known = positions[test.nodeid.partition("[")[0], name]
            total += known.setdefault(id(value), len(known))
        seed = params.get("seed")
        if (
            test.get_closest_marker("nightly") is not None
            or (isinstance(seed, int) and seed >= SEEDS)
            or (mark is not None and total % mark.args[0] != 0)
        ):
            yield test
