"""The setup of the suite: environment variables, the tests of each tier, and common fixtures."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

os.environ.setdefault(
    "IRLOAD_JIT", "off"
)  # NumPy's kernels, which cover all steps; `make test-jit` runs with compiled ones
os.environ.setdefault("IRLOAD_MODEL_CACHE", "off")  # a plan cached by an earlier run would ignore patches of a test

from irload import extensions
from irload.core import registry
from tests.harness.tiers import nightly_only

if find_spec("hypothesis"):  # not installed in the environment of the tests on Ray
    from hypothesis import HealthCheck, settings

    # An example may take any time: the machine may be slow or suspended for a while.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Omit the tests that only the nightly run includes (tests/harness/tiers.py)."""
    left_out = list(nightly_only(item for item in items if isinstance(item, pytest.Function)))
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which otherwise traverses them repeatedly."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def passing_extensions() -> Iterator[None]:
    """Unregister the operations that a test registered."""
    yield
    for key, versions in list(registry.table.items()):
        ours = [cls for cls in versions if cls.__module__.startswith("irload.ops.")]
        if ours:
            registry.table[key] = ours
        else:
            del registry.table[key]
    for name in [n for n in sys.modules if n.startswith(extensions._PREFIX)]:  # otherwise batches would load them again
        del sys.modules[name]
