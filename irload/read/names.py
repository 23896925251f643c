"""Tensor names: comma-separated sets in which a comma inside a name is written with a backslash before it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATOR = re.compile(r"(?<!\\),")


def split_names(text: str) -> tuple[str, ...]:
    r"""The names in `text`: `a,b\,c` holds 'a' and 'b,c'. Empty items are dropped, blanks are kept."""
    return tuple(item.replace(r"\,", ",") for item in _SEPARATOR.split(text) if item)


def join_names(names: Iterable[str]) -> str:
    """The text of a set of names, sorted as the runtime writes it."""
    return ",".join(name.replace(",", r"\,") for name in sorted(names))
