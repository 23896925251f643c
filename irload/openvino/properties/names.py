"""Property: the name of a property, which is also a function."""

from __future__ import annotations

from typing import Any

from irload.openvino.rt_info import OVAny

__all__ = ["DeviceList", "Fact", "Property", "TextProperty"]


class Property(str):
    """The name of a property. Called without arguments it returns the name, with a value the pair of both."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        if not value:
            return str(self)
        return str(self), OVAny(value[0] if len(value) == 1 else " ".join(map(str, value)))


class TextProperty(Property):
    """A property whose value is a text."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        if value and not isinstance(value[0], str):
            raise TypeError(f"{self}: incompatible function arguments; expected a text, found {value[0]!r}")
        return super().__call__(*value)


class DeviceList(Property):
    """A property whose value is a list of devices, each followed by a comma."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        for device in value:
            if not isinstance(device, str):
                raise TypeError(f"Incorrect passed value: {device} , expected string values.")
        return super().__call__("".join(f"{device}," for device in value)) if value else str(self)


class Fact(Property):
    """A property that cannot be set."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        if value:
            raise TypeError(f"{self}: incompatible function arguments; the property cannot be set")
        return str(self)
