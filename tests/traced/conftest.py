"""Under the sanitizer every shape is planned alone, so it is off in these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irload.plan.sanitizing import sanitizing


@pytest.fixture(autouse=True)
def unsanitized() -> Iterator[None]:
    """Switch the sanitizer off."""
    with sanitizing(False):
        yield
