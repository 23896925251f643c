"""Binds the inputs of a call to the ports of a model by position or name; converts and checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.element import ELEMENTS, ElementType, dynamic, string
from irload.core.fitting import fitting
from irload.core.shape import ARRAY_AXES, shape_of
from irload.core.tensor import Array, TensorType
from irload.errors import InputInvalid
from irload.graph import Node, Port, position, positions
from irload.ops.casting import convert
from irload.wording import counted

__all__ = ["InputBinding", "as_element", "bind", "bind_typed"]

FORMS = 64
"""Maximum number of cached combinations of input dtypes and shapes."""
_NARROW = frozenset(e.dtype for e in ELEMENTS if e.is_low_precision)
"""The dtypes of floats narrower than f32, including bf16 and f8, whose NumPy kind is not `f`."""


def bind(ports: Sequence[Port], inputs: Any) -> list[Array]:
    """Return one array per port, from an array, a sequence in port order, or a dict by name, position or Port.

    Arrays are converted to the element type of the port as in OpenVINO's Python API: any boolean, integer or float
    to any other, by the rules of Convert; text is parsed as numbers; a number becomes a tensor of one element. For
    ports of strings, text and UTF-8 bytes are accepted. Python numbers must be representable in the type. Raises
    InputInvalid, whose message names the input and both shapes or types.
    """
    given = _by_port(ports, inputs)
    return [_fit(port, given[k]) for k, port in enumerate(ports)]


def bind_typed(ports: Sequence[Port], inputs: Any, *, wide: bool = False) -> tuple[list[Array], list[TensorType]]:
    """Return the arrays of `bind`, converted to the types of the graph, and these types with their shapes.

    With `wide`, f32 arrays for f16 and bf16 are not converted, because the graph is computed in f32.
    """
    elements = [p.output.type.element for p in ports]
    arrays = [
        array if wide and array.dtype == np.float32 and element.dtype in _NARROW else as_element(element, array)
        for element, array in zip(elements, bind(ports, inputs), strict=True)
    ]
    return arrays, [TensorType(e, shape_of(a.shape)) for e, a in zip(elements, arrays, strict=True)]


class InputBinding:
    """`bind_typed` for the ports of one model, with a cache of dtypes and shapes that need no conversion."""

    def __init__(self, ports: Sequence[Port], *, wide: bool) -> None:
        self._ports = ports
        self._wide = wide
        takes = [p for p in ports if _takes_as_they_are(p, wide=wide)]
        self._accepts = [(p.element_type.dtype, p.output.type.element, p.partial_shape) for p in takes]
        """For each port that accepts arrays without conversion: the accepted dtype, type in the graph, and shape."""
        self._known: dict[tuple[Any, ...], list[TensorType]] = {}
        self._known_types: list[dict[tuple[int, ...], TensorType]] = [{} for _ in takes]
        """For each of these ports, the types of arrays that need no conversion, by shape."""
        self._orders: dict[tuple[Any, ...], list[Any]] = {}
        """For dicts that have a value for each port: the keys in port order, by the keys in the order given."""

    def __call__(self, inputs: Any) -> tuple[list[Array], list[TensorType]]:
        given = self._in_order(inputs)
        form = _form(given)
        types = None if form is None else self._known.get(form)
        if form is not None and types is None:
            types = self._types(form)
            if types is not None:
                if len(self._known) >= FORMS:
                    self._known.clear()
                self._known[form] = types
        return bind_typed(self._ports, inputs, wide=self._wide) if types is None else (list(given), types)

    def _in_order(self, inputs: Any) -> Sequence[Any]:
        """Return the inputs in port order; empty if only `bind` can determine the order."""
        if type(inputs) is np.ndarray:
            return (inputs,)
        if type(inputs) is dict:
            keys: tuple[Any, ...] = tuple(inputs)
            order = self._orders.get(keys)
            if order is None and all(type(key) is str for key in keys):
                order = _from_mapping(self._ports, dict(zip(keys, keys, strict=True)))
                if len(self._orders) >= FORMS:
                    self._orders.clear()
                self._orders[keys] = order
            return () if order is None else [inputs[key] for key in order]
        return inputs if type(inputs) in (list, tuple) else ()

    def _types(self, form: tuple[Any, ...]) -> list[TensorType] | None:
        """Return the types of arrays that need no conversion; None if any array does."""
        dtypes, shapes = form[::2], form[1::2]
        if not len(dtypes) == len(self._accepts) == len(self._ports):
            return None
        types: list[TensorType] = []
        ports = zip(dtypes, shapes, self._accepts, self._known_types, strict=True)
        for dtype, shape, (accepted, element, takes), known in ports:
            tensor_type = known.get(shape)
            if tensor_type is None:
                tensor_type = TensorType(element, shape_of(shape))
                if not takes.contains(tensor_type.shape):
                    return None
                if len(known) >= FORMS:
                    known.clear()
                known[shape] = tensor_type
            if dtype != accepted:
                return None
            types.append(tensor_type)
        return types


def _form(given: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return dtype and shape of each input, in port order, as one flat tuple; None unless all are arrays in C order."""
    form: list[Any] = []
    for array in given:
        if type(array) is not np.ndarray or not array.flags.c_contiguous:
            return None
        form += array.dtype, array.shape
    return tuple(form) or None


def _takes_as_they_are(port: Port, *, wide: bool) -> bool:
    """True if the port accepts arrays of its dtype without conversion and without a check of their values."""
    shown, internal = port.element_type, port.output.type.element
    if shown in (dynamic, string) or (shown.is_integer and shown.bits < 8):
        return False
    return shown is internal or (wide and shown.dtype == np.float32 and internal.dtype in _NARROW)


def as_element(element: ElementType, array: Array) -> Array:
    """Convert an array to an element type by the rules of Convert.

    The type that a port shows and the type in the graph differ for IR v10.
    """
    if element is dynamic or array.dtype == element.dtype:
        return array
    with np.errstate(all="ignore"):
        return convert(array, element)


def _by_port(ports: Sequence[Port], inputs: Any) -> list[Any]:
    if inputs is None:
        inputs = []
    if isinstance(inputs, Mapping):
        return _from_mapping(ports, inputs)
    values: list[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    several = len(values) > 1 and all(isinstance(v, np.ndarray) for v in values)
    if len(ports) == 1 and len(values) != 1 and inputs and not several:
        values = [inputs]  # a nested list of numbers for a model of one input
    if len(values) != len(ports):
        names = ", ".join(f"'{p.any_name}' {p.type}" for p in ports)
        hint = "; np.concatenate makes one batch of several arrays" if len(ports) == 1 and several else ""
        raise InputInvalid(
            f"expected {counted(len(ports), 'input')} ({names or 'none'}), found {len(values) or 'none'}{hint}"
        )
    return values


def _from_mapping(ports: Sequence[Port], inputs: Mapping[Any, Any]) -> list[Any]:
    by_index: dict[int, Any] = {}
    known = positions(ports)
    for key, value in inputs.items():
        index = _index(ports, known, key)
        if index in by_index:
            raise InputInvalid(f"input '{ports[index].any_name}' was given twice")
        by_index[index] = value
    missing = [f"'{p.any_name}'" for k, p in enumerate(ports) if k not in by_index]
    if missing:
        raise InputInvalid(f"no value for input {', '.join(missing)}")
    return [by_index[k] for k in range(len(ports))]


def _index(ports: Sequence[Port], known: Mapping[Node | str, int], key: Any) -> int:
    index = position(known, key) if isinstance(key, Port | str) else key
    if isinstance(index, int) and 0 <= index < len(ports):
        return index
    names = ", ".join(f"'{p.any_name}'" for p in ports)
    raise InputInvalid(f"the model has no input {key!r}; it has {names or 'none'}")


def _fit(port: Port, value: Any) -> Array:
    if value is None:
        raise InputInvalid(f"input '{port.any_name}' is None; the model takes an array {port.type}")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputInvalid(f"input '{port.any_name}' is not an array: {error}") from None
    takes = port.partial_shape
    if not array.ndim and takes.rank and takes.rank <= ARRAY_AXES and all(d.contains(1) for d in takes):
        array = array.reshape((1,) * takes.rank)  # a number for a tensor of one element
    if not isinstance(value, np.ndarray | np.generic):
        _require_meant(port, array)
    array = _converted(port, array)
    shape = shape_of(array.shape)
    if not takes.contains(shape):
        advice = fitting(array.shape, takes)
        raise InputInvalid(f"input '{port.any_name}' has shape {shape}; the model takes {takes}{advice}")
    return array


def _require_meant(port: Port, array: Array) -> None:
    """Raise InputInvalid for Python numbers that the port's integer type cannot represent. Arrays are not checked."""
    element = port.element_type
    if not element.is_integer or not array.size or array.dtype.kind not in "iuf":
        return
    info = np.iinfo(element.dtype)
    if array.dtype.kind == "f" or array.min() < info.min or array.max() > info.max:
        raise InputInvalid(f"input '{port.any_name}' has numbers that {element} cannot represent")


def _converted(port: Port, array: Array) -> Array:
    element = port.element_type
    if element is dynamic:
        return array
    if element is string:
        return _strings(port, array)
    if array.dtype != element.dtype:
        array = convert(_numbers(port, array), element)
    return _within(port, element, np.ascontiguousarray(array).reshape(array.shape))


def _numbers(port: Port, array: Array) -> Array:
    """Return the array as booleans, integers or floats in native byte order. Raises InputInvalid."""
    if array.dtype.kind in "biuf" or array.dtype in _NARROW:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "c" and not np.imag(array).any():
        return np.real(array)
    if array.dtype.kind in "OUST":
        try:  # text to parse as numbers, or Python numbers
            return array.astype(np.int64 if port.element_type.is_integer else np.float64)
        except (ValueError, TypeError, OverflowError):
            pass
    text = f", and some text is not {'an integer' if port.element_type.is_integer else 'a number'}"
    reason = {"c": ", and some imaginary part is not 0", "U": text, "S": text, "T": text}.get(array.dtype.kind, "")
    raise InputInvalid(
        f"input '{port.any_name}' is of dtype {array.dtype}{reason}; the model takes {port.element_type} "
        f"(NumPy {port.element_type.dtype})"
    )


def _within(port: Port, element: ElementType, array: Array) -> Array:
    """Check the values of integers of fewer than 8 bits, whose dtype can also represent larger values."""
    if element.is_integer and element.bits < 8 and array.size:
        low, high = (-8, 7) if element.is_signed else (0, (1 << element.bits) - 1)
        if array.min() < low or array.max() > high:
            raise InputInvalid(f"input '{port.any_name}' has values outside {low}..{high}, the range of {element}")
    return array


def _strings(port: Port, array: Array) -> Array:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind not in "UOT":
        raise InputInvalid(f"input '{port.any_name}' is of dtype {array.dtype}; the model takes strings")
    strings = array.astype(object)
    for k, item in enumerate(strings.flat) if array.dtype.kind == "O" else ():
        if isinstance(item, bytes):
            strings.flat[k] = item.decode("utf-8", "replace")
        elif not isinstance(item, str):
            raise InputInvalid(f"input '{port.any_name}' has {item!r:.40} at index {k}; the model takes strings")
    return strings
