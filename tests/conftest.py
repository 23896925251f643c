from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

os.environ.setdefault("IRLOAD_JIT", "off")  # NumPy's kernels, which are complete; `make test-jit` runs with the others
os.environ.setdefault("IRLOAD_MODEL_CACHE", "off")  # plans of an earlier run know nothing of what a test replaces

from irload import extensions
from irload.core import registry

if find_spec("hypothesis"):  # the environment of the tests on Ray has none
    from hypothesis import HealthCheck, settings

    # An example may take any time: the machine may be slow, or stand still for a while.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


@pytest.fixture
def passing_extensions() -> Iterator[None]:
    """Operations that a test registers are gone after it."""
    yield
    for key, versions in list(registry.table.items()):
        ours = [cls for cls in versions if cls.__module__.startswith("irload.")]
        if ours:
            registry.table[key] = ours
        else:
            del registry.table[key]
    for name in [n for n in sys.modules if n.startswith(extensions._PREFIX)]:  # or batches would load them again
        del sys.modules[name]
