"""Property: the name of a property, which is also a function."""

from __future__ import annotations

from typing import Any

from irload.openvino.rt_info import OVAny

__all__ = ["Property"]


class Property(str):
    """The name of a property. Called without arguments it returns the name, with a value the pair of both."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        if not value:
            return str(self)
        return str(self), OVAny(value[0] if len(value) == 1 else " ".join(map(str, value)))
