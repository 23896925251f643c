"""All plans of these tests check themselves: programs after each pass, calls at binding, memory in every run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irload.plan.sanitizing import sanitizing


@pytest.fixture(autouse=True)
def numpy_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch compiled kernels off for tests of NumPy's kernels."""
    if request.node.get_closest_marker("numpy_kernels"):
        monkeypatch.setenv("IRLOAD_JIT", "off")


@pytest.fixture(autouse=True)
def sanitized() -> Iterator[None]:
    """Switch the sanitizer on."""
    with sanitizing():
        yield
