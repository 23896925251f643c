"""Tensor names: comma-separated lists in which a comma inside a name is escaped by a backslash."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATOR = re.compile(r"(?<!\\),")


def split_names(text: str) -> tuple[str, ...]:
    r"""Split `text` into names: `a,b\,c` contains 'a' and 'b,c'. Empty items are dropped, blanks are kept."""
    return tuple(item.replace(r"\,", ",") for item in _SEPARATOR.split(text) if item)


def join_names(names: Iterable[str]) -> str:
    """Join a set of names in the order in which OpenVINO writes them."""
    return ",".join(name.replace(",", r"\,") for name in sorted(names))
