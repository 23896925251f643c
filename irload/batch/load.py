"""Items become rows: their files read, their arrays assigned to the inputs of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irload.arrays import load_npy, load_npz
from irload.batch.images import SUFFIXES, Pixels, load_image
from irload.batch.items import Item
from irload.batch.predictor import Predictor
from irload.batch.rows import Rows, require_fit, rows_of
from irload.batch.stacking import per_sample
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.graph import Port


def load_item(item: Item, predictor: Predictor, pixels: Pixels) -> Rows:
    """The rows of an item. Raises ReadError, LimitExceeded or InputInvalid saying why it cannot be used."""
    if item.fault:
        raise InputInvalid(item.fault)
    ports = predictor.inputs
    if item.row is not None:
        row = item.row
        return rows_of(predictor, [_shaped(p, _of_port(p, row, len(ports)), predictor) for p in ports])
    values: dict[int, Array] = {}
    for name, path in item.files.items():
        if path.lower().endswith(".npz"):
            _archive(path, name, predictor, values)
        else:
            port = _port(name, predictor)
            _put(values, port, _file(path, port, predictor, pixels))
    missing = [f"'{p.any_name}'" for p in ports if p.index not in values]
    if missing:
        raise InputInvalid(f"no value for input {', '.join(missing)}")
    return rows_of(predictor, [values[p.index] for p in ports])


def _file(path: str, port: Port, predictor: Predictor, pixels: Pixels) -> Array:
    if Path(path).suffix.lower() in SUFFIXES:
        sample = load_image(path, port, pixels)
        return sample if predictor.stacking.stacked else sample[None]
    return load_npy(path, lambda _, dtype, shape: require_fit(predictor, port, shape), predictor.compiled.limits)


def _archive(path: str, name: str, predictor: Predictor, values: dict[int, Array]) -> None:
    """The arrays of a .npz that feed inputs. Those that fit none are refused by their shape, not unpacked."""
    named = _port(name, predictor) if name else None

    def port_of(key: str) -> Port:
        found = named or next((p for p in predictor.inputs if key in p.names or key == p.node.name), None)
        if found is None and len(predictor.inputs) == count == 1:
            found = predictor.inputs[0]
        if found is None:
            known = ", ".join(f"'{p.any_name}'" for p in predictor.inputs)
            raise InputInvalid(f"the model has no input '{key}'; it has {known}")
        return found

    def only(keys: Sequence[str]) -> Collection[str]:
        nonlocal count
        count = len(keys)
        return (
            keys if named is None or count == 1 else [k for k in keys if k in named.names or k == named.node.name][:1]
        )

    count = 0
    arrays = load_npz(
        path, lambda key, _, shape: require_fit(predictor, port_of(key), shape), predictor.compiled.limits, only
    )
    if not arrays:
        raise InputInvalid(f"no array for input '{name}' among its {count}")
    for key, array in arrays.items():
        _put(values, port_of(key), array)


def _put(values: dict[int, Array], port: Port, array: Array) -> None:
    if port.index in values:
        raise InputInvalid(f"input '{port.any_name}' was given twice")
    values[port.index] = array


def _port(name: str, predictor: Predictor) -> Port:
    if name:
        return next(p for p in predictor.inputs if name in p.names or name == p.node.name)
    if len(predictor.inputs) != 1:
        names = ", ".join(f"'{p.any_name}'" for p in predictor.inputs)
        raise InputInvalid(f"the model has the inputs {names}; say which as name=pattern, or give .npz files")
    return predictor.inputs[0]


def _of_port(port: Port, arrays: Mapping[str, Any], inputs: int) -> Array:
    """The array that is named for the port, or the only one for the only port."""
    for name in (*port.names, port.node.name):
        if name in arrays:
            return np.asarray(arrays[name])
    if len(arrays) == 1 and inputs == 1:
        return np.asarray(next(iter(arrays.values())))
    raise InputInvalid(f"no column or array for input '{port.any_name}'; there is {', '.join(map(repr, arrays))}")


def _shaped(port: Port, value: Array, predictor: Predictor) -> Array:
    """The value of a cell: a flat list takes the shape of one sample."""
    shape = per_sample(port) if predictor.stacking.stacked else port.partial_shape
    if value.ndim == 1 and shape.is_static and len(shape.static) != 1 and value.size == np.prod(shape.static):
        return value.reshape(shape.static)
    return value
