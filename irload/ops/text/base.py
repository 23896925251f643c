"""The base class of operations on texts."""

from __future__ import annotations

from irload.core.op import Op


class Text(Op):
    """Base of operations on texts. Output types depend only on lengths, so inference at run time is cached."""

    infers_from_scalars = True
