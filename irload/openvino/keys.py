"""The keys by which scripts select ports: an index, or the name of a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from irload.openvino.errors import OpenVINOError
from irload.openvino.ports import ConstOutput

__all__ = ["first_of", "port_named"]

P = TypeVar("P", bound=ConstOutput)


def first_of(*keys: int | str | None) -> int | str | None:
    """The first key that is not None. `or` cannot be used, as it would skip the index 0."""
    return next((key for key in keys if key is not None), None)


def port_named(ports: Iterable[P], name: str, kind: str) -> P:
    """The port whose tensor has this name. Raises OpenVINOError; `kind`: "input" or "output"."""
    for port in ports:
        if name in port.names:
            return port
    raise OpenVINOError(f"{kind.capitalize()} for tensor name '{name}' is not found.")
