"""Layout: the names of axes, such as `NCHW` or `N...C`."""

from __future__ import annotations

import re
from typing import Any

from irload.openvino.errors import OpenVINOError

__all__ = ["Layout"]

_NAME = re.compile(r"[A-Za-z0-9_]+")
_SCALAR = "**SCALAR**"


class Layout:
    """Names of axes: a character each (`NHWC`), or a list (`[N,C,H,W]`). `?`: an unnamed axis, `...`: any axes."""

    __slots__ = ("_ellipsis", "_left", "_right", "_scalar")
    __hash__ = None

    def __init__(self, layout_str: str | Layout = "...") -> None:
        text = str(layout_str).strip()
        self._scalar = text == _SCALAR
        if self._scalar:
            text = ""
        elif not text:
            text = "..."
        if text.startswith("["):
            if not text.endswith("]"):
                raise OpenVINOError(f"layout '{text}' lacks its closing bracket")
            inside = text[1:-1].strip()
            items = [item.strip() for item in inside.split(",")] if inside else []
        else:
            items = re.findall(r"\.\.\.|.", text)
        names = [_name(item, text) for item in items]
        if names.count("...") > 1:
            raise OpenVINOError(f"layout '{text}' has several '...'")
        self._ellipsis = "..." in names
        split = names.index("...") if self._ellipsis else len(names)
        self._left, self._right = names[:split], names[split + 1 :]
        named = [n for n in (*self._left, *self._right) if n != "?"]
        if len(set(named)) < len(named):
            raise OpenVINOError(f"layout '{text}' names an axis twice")

    @staticmethod
    def scalar() -> Layout:
        """The layout of a tensor without axes."""
        return Layout(_SCALAR)

    @property
    def empty(self) -> bool:
        """True for `Layout()`, which allows any axes."""
        return self._ellipsis and not self._left and not self._right

    @property
    def names(self) -> list[str]:
        """The names in order, with `...` and `?`."""
        return [*self._left, *(["..."] if self._ellipsis else []), *self._right]

    @property
    def rank(self) -> int | None:
        """The number of axes, None with `...`."""
        return None if self._ellipsis else len(self._left)

    def has_name(self, dimension_name: str) -> bool:
        """True if an axis has the name."""
        return dimension_name.upper() in (*self._left, *self._right)

    def get_index_by_name(self, dimension_name: str) -> int:
        """The position of an axis; negative, counted from the end, if it follows `...`."""
        name = dimension_name.upper()
        if name in self._left:
            return self._left.index(name)
        if name in self._right:
            return self._right.index(name) - len(self._right)
        raise OpenVINOError(f"{dimension_name} dimension index is not defined in layout {self}")

    def to_string(self) -> str:
        """The text `[N,C,H,W]`."""
        return str(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            other = Layout(other)
        if isinstance(other, Layout):
            return self._scalar == other._scalar and self.names == other.names
        return NotImplemented

    def __copy__(self) -> Layout:
        return Layout(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Layout:
        return Layout(self)

    def __str__(self) -> str:
        return _SCALAR if self._scalar else f"[{','.join(self.names)}]"

    def __repr__(self) -> str:
        return f"<Layout: {self}>"


def _name(item: str, text: str) -> str:
    if item in ("...", "?"):
        return item
    if item == "*":
        return "?"
    if not _NAME.fullmatch(item):
        raise OpenVINOError(f"Layout name is invalid ({item}) in '{text}'; names have letters, digits and '_' only")
    return item.upper()
