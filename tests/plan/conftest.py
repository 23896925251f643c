"""All plans of these tests check themselves: programs after each pass, calls at binding, memory in every run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irload.plan.sanitizing import sanitizing


@pytest.fixture(autouse=True)
def sanitized() -> Iterator[None]:
    """Switch the sanitizer on."""
    with sanitizing():
        yield
