from __future__ import annotations

from collections.abc import Iterator

import pytest

from irload.core import registry


@pytest.fixture
def passing_extensions() -> Iterator[None]:
    """Operations that a test registers are gone after it."""
    yield
    for key, versions in list(registry._table.items()):
        ours = [cls for cls in versions if cls.__module__.startswith("irload.")]
        if ours:
            registry._table[key] = ours
        else:
            del registry._table[key]
