"""Inputs as users give them, bound to the ports of a model: counted, named, converted where safe, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.element import ElementType, dynamic, string
from irload.core.shape import Shape
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.graph import Node, Port, positions

__all__ = ["bind"]


def bind(ports: Sequence[Port], inputs: Any) -> list[Array]:
    """One array for each port, from an array, a sequence in port order, or a dict by name, position or Port.

    Element types are converted only where no value can change (i32 → i64, f32 → f64, Python numbers). Raises
    InputInvalid naming the input and both shapes or types.
    """
    given = _by_port(ports, inputs)
    return [_fit(port, given[k]) for k, port in enumerate(ports)]


def _by_port(ports: Sequence[Port], inputs: Any) -> list[Any]:
    if inputs is None:
        inputs = []
    if isinstance(inputs, Mapping):
        return _from_mapping(ports, inputs)  # pyright: ignore[reportUnknownArgumentType]
    values: list[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if len(ports) == 1 and len(values) != 1:
        values = [inputs]  # a nested list of numbers for a model of one input
    if len(values) != len(ports):
        names = ", ".join(f"'{p.any_name}'" for p in ports)
        raise InputInvalid(f"expected {len(ports)} inputs ({names or 'none'}), found {len(values)}")
    return values


def _from_mapping(ports: Sequence[Port], inputs: Mapping[Any, Any]) -> list[Any]:
    found: dict[int, Any] = {}
    known = positions(ports)
    for key, value in inputs.items():
        index = _index(ports, known, key)
        if index in found:
            raise InputInvalid(f"input '{ports[index].any_name}' was given twice")
        found[index] = value
    missing = [f"'{p.any_name}'" for k, p in enumerate(ports) if k not in found]
    if missing:
        raise InputInvalid(f"no value for input {', '.join(missing)}")
    return [found[k] for k in range(len(ports))]


def _index(ports: Sequence[Port], known: Mapping[Node | str, int], key: Any) -> int:
    found = known.get(key.node if isinstance(key, Port) else key) if isinstance(key, Port | str) else key
    if isinstance(found, int) and 0 <= found < len(ports):
        return found
    names = ", ".join(f"'{p.any_name}'" for p in ports)
    raise InputInvalid(f"the model has no input {key!r}; it has {names or 'none'}")


def _fit(port: Port, value: Any) -> Array:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputInvalid(f"input '{port.any_name}' is no array: {error}") from None
    array = _converted(port, array, from_python=not isinstance(value, np.ndarray | np.generic))
    shape = Shape(*array.shape)
    if not port.partial_shape.contains(shape):
        raise InputInvalid(f"input '{port.any_name}' has shape {shape}; the model takes {port.partial_shape}")
    return array


def _converted(port: Port, array: Array, *, from_python: bool) -> Array:
    element = port.element_type
    if element is dynamic:
        return array
    if element is string:
        return _strings(port, array)
    if array.dtype == element.dtype:
        return _within(port, element, np.ascontiguousarray(array).reshape(array.shape))
    native = array.dtype.newbyteorder("=")
    if native == element.dtype or _is_safe(array, element, from_python=from_python):
        return _within(port, element, np.ascontiguousarray(array, element.dtype).reshape(array.shape))
    raise InputInvalid(
        f"input '{port.any_name}' is of dtype {array.dtype}; the model takes {element} (NumPy {element.dtype}). "
        f"Convert it: array.astype('{element.dtype}')"
    )


def _is_safe(array: Array, element: ElementType, *, from_python: bool) -> bool:
    """True when converting changes no value. Python's own numbers may also round to the float type of the model."""
    if array.dtype.kind not in "biuf":
        return False
    if from_python and array.dtype.kind in "iuf" and element.is_float:
        return True
    if from_python and array.dtype.kind in "iu" and element.is_integer:
        info = np.iinfo(element.dtype)
        return not array.size or bool(info.min <= array.min() and array.max() <= info.max)
    return array.dtype.kind != "b" and np.can_cast(array.dtype, element.dtype, "safe")


def _within(port: Port, element: ElementType, array: Array) -> Array:
    """Narrow integers are kept in wider storage, so their values are checked."""
    if element.is_integer and element.bits < 8 and array.size:
        low, high = (-8, 7) if element.is_signed else (0, (1 << element.bits) - 1)
        if array.min() < low or array.max() > high:
            raise InputInvalid(f"input '{port.any_name}' has values outside {low}..{high}, the range of {element}")
    return array


def _strings(port: Port, array: Array) -> Array:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind not in "UOT":
        raise InputInvalid(f"input '{port.any_name}' is of dtype {array.dtype}; the model takes strings")
    return array.astype(object)
