"""Remarks: what a layer does against the specification though the runtime takes it.

An operation's `infer` calls `remark` and goes on as the runtime does. Whoever infers a graph collects what was said of
each layer; `Model.warnings` and `irrun check` show it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


def remark(fact: str) -> None:
    """Say what is against the specification. Without anyone who collects remarks it is lost."""
    collected = _collected.get()
    if collected is not None:
        collected.append(fact)


@contextmanager
def collecting() -> Generator[list[str]]:
    """A list of the remarks made inside; those of a nested `collecting` go to its own list."""
    found: list[str] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)
