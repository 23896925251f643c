"""The base class of operations on texts."""

from __future__ import annotations

from irload.core.op import Op


class Text(Op):
    """Base of operations on texts. Their types depend on no values but lengths, so inference at run time is cached."""

    infers_from_scalars = True
