"""The base class of operations on texts."""

from __future__ import annotations

from irload.core.op import Op


class Text(Op):
    """Base of operations on texts, whose output types depend only on lengths."""
