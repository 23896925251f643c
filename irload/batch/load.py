"""Converts items to samples: reads files, assigns arrays to the inputs of the model."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from irload.arrays.input_files import InputValues, is_archive, load_archive, load_array, port_named
from irload.batch.images import SUFFIXES, ImageOptions, load_image
from irload.batch.items import Item
from irload.batch.predictors import AnyPredictor
from irload.batch.samples import Samples
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.graph import Port
from irload.safety.files import open_regular


def load_item(item: Item, predictor: AnyPredictor, images: ImageOptions) -> Samples:
    """The samples of an item. Raises ReadError, LimitExceeded or InputInvalid with the reason if it cannot be used."""
    if item.fault:
        raise InputInvalid(item.fault)
    ports, takes = predictor.inputs, predictor.takes
    if item.row is not None:
        row = item.row
        return takes.samples([_of_row(p, _of_port(p, row, len(ports)), predictor, images) for p in ports])
    values = InputValues(ports)
    for name, path in item.files.items():
        if is_archive(path) and not name:
            load_archive(path, values, takes.require_fit, predictor.compiled.limits)
        else:
            port = port_of(name, predictor)
            values.put(port, _file(path, port, predictor, images), path)
    missing = [f"'{p.any_name}'" for p in values.missing()]
    if missing:
        raise InputInvalid(f"no value for input {', '.join(missing)}")
    return takes.samples([v.value for v in values.all()])


def _file(path: str, port: Port, predictor: AnyPredictor, images: ImageOptions) -> Array:
    if Path(path).suffix.lower() in SUFFIXES:
        with os.fdopen(open_regular(path, "the image")[0], "rb") as stream:
            return _image(stream, port, predictor, images)
    return load_array(path, port, predictor.takes.require_fit, predictor.compiled.limits)


def _image(source: IO[bytes], port: Port, predictor: AnyPredictor, images: ImageOptions) -> Array:
    sample = load_image(source, port, images, predictor.compiled.limits)
    return sample if predictor.takes.stacked else sample[None]


def port_of(name: str, predictor: AnyPredictor) -> Port:
    """The input with this name, or the only input. Raises InputInvalid if there is none."""
    if name:
        return port_named(predictor.inputs, name)
    if len(predictor.inputs) != 1:
        names = ", ".join(f"'{p.any_name}'" for p in predictor.inputs)
        raise InputInvalid(f"the model has the inputs {names}; assign them with name=pattern, or give .npz files")
    return predictor.inputs[0]


def _of_port(port: Port, arrays: Mapping[str, Array | bytes], inputs: int) -> Array | bytes:
    """The array named after the port, or the only array for the only port."""
    for name in (*port.names, port.node.name):
        if name in arrays:
            return arrays[name]
    if len(arrays) == 1 and inputs == 1:
        return next(iter(arrays.values()))
    raise InputInvalid(f"no column or array for input '{port.any_name}'; there is {', '.join(map(repr, arrays))}")


def _of_row(port: Port, value: Array | bytes, predictor: AnyPredictor, images: ImageOptions) -> Array:
    """The value of a cell: bytes are decoded as an image, a flat list is reshaped to one sample."""
    if isinstance(value, bytes):
        if port.element_type.kind == "string":
            return np.array(value.decode("utf-8", "replace"), object)
        return _image(io.BytesIO(value), port, predictor, images)
    shape = predictor.takes.sample_shape(port)
    if value.ndim == 1 and shape.is_static and len(shape.static) != 1 and value.size == np.prod(shape.static):
        return value.reshape(shape.static)
    return value
