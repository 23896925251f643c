"""Remarks: violations of the specification that OpenVINO accepts.

An operation's `infer` calls `remark` and continues as OpenVINO does. The inference of a graph collects the remarks
of each layer, which `Model.warnings` and `irrun check` show.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


def remark(fact: str) -> None:
    """Record a violation of the specification. Ignored outside `collecting`."""
    collected = _collected.get()
    if collected is not None:
        collected.append(fact)


@contextmanager
def collecting() -> Generator[list[str]]:
    """A list of the remarks recorded inside, except for a nested `collecting`."""
    remarks: list[str] = []
    token = _collected.set(remarks)
    try:
        yield remarks
    finally:
        _collected.reset(token)
