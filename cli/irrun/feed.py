"""Inputs for a model: from files in order or by name, or random for a smoke test."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click
import numpy as np

from irload import InputInvalid, Limits, Port, Shape
from irload.arrays.input_files import Fits, InputValue, InputValues, is_archive, load_archive, load_array, split_word
from irload.core.fitting import fitting
from irload.core.tensor import Array
from irload.safety.limits import DEFAULT

AXES = 64
"""Upper bound of the rank of a NumPy array."""


Suggest = Callable[[Sequence[Port]], str]
"""Returns the advice in an error about inputs of dynamic shape."""
Reshapes = Callable[[Port, Shape], bool]
"""Returns True if inference succeeds with this shape of an input; --shape is then a remedy."""


def gather(
    ports: Sequence[Port],
    words: Sequence[str],
    seed: int | None,
    limits: Limits = DEFAULT,
    suggest: Suggest | None = None,
    reshapes: Reshapes | None = None,
) -> list[InputValue]:
    """Return one value per port, from files, and random values for the other ports if a seed is given.

    `words` are paths (assigned in port order, after the named ones) or `name=path`. A .npz feeds the ports named like
    its arrays; an archive of unnamed arrays (arr_0, arr_1 …) feeds the ports in order.
    """
    values = InputValues(ports)
    unnamed: list[str] = []
    for word in words:
        port, path = split_word(ports, word, os.path.exists)
        if not path:
            raise InputInvalid(f"'{word}': the file name is empty")
        if port is None:
            unnamed.append(path)
        else:
            values.put(port, _array(path, port, limits, reshapes), path)
    for path in unnamed:
        free = values.missing()
        if is_archive(path):
            load_archive(path, values, _fits(path, reshapes), limits)
        elif free:
            values.put(free[0], _array(path, free[0], limits, reshapes), path)
        else:
            raise InputInvalid(f"{path}: more files than inputs; the model has {len(ports)}")
    if seed is not None:
        rng = np.random.default_rng(seed)
        _require_static(values.missing(), suggest)
        for port in values.missing():
            _require_possible(port, limits)
            values.put(port, random_value(port, rng), f"random, seed {seed}")
    missing = [f"'{p.any_name}' {p.type}" for p in values.missing()]
    if missing:
        raise click.UsageError(
            f"no value for input {', '.join(missing)}. Give a .npy or .npz file, name=file, or --random SEED"
        )
    return values.all()


def _array(path: str, port: Port, limits: Limits, reshapes: Reshapes | None) -> Array:
    try:
        return load_array(path, port, _fits(path, reshapes), limits)
    except InputInvalid as error:
        raise error if error.message.startswith(path) else InputInvalid(f"{path} {error.message}") from None


def _fits(path: str, reshapes: Reshapes | None) -> Fits:
    def fits(port: Port, shape: tuple[int, ...]) -> None:
        """Check type and shape before the data are read. Raises UsageError."""
        given = Shape(*shape)
        if not port.partial_shape.contains(given):
            raise InputInvalid(
                f"{path} has shape {given}; input '{port.any_name}' takes {port.partial_shape}"
                f"{_remedy(port, given, reshapes)}"
            )

    return fits


def _remedy(port: Port, shape: Shape, reshapes: Reshapes | None) -> str:
    """Suggest another shape of the array, or of the input; empty if none fits."""
    advice = fitting(shape.static, port.partial_shape)
    if not advice and reshapes is not None and reshapes(port, shape):
        return f"; reshape the input with --shape '{port.any_name}{shape}'"
    return advice


def _require_static(ports: Sequence[Port], suggest: Suggest | None) -> None:
    """Raise UsageError with the names of the inputs whose sizes are unknown: random values cannot fill them."""
    open_ports = [p for p in ports if p.partial_shape.is_dynamic]
    if open_ports:
        named = ", ".join(f"'{p.any_name}' {p.partial_shape}" for p in open_ports)
        have = f"input {named} has a dynamic shape" if len(open_ports) == 1 else f"inputs {named} have dynamic shapes"
        advice = "" if suggest is None else f", or {suggest(open_ports)}"
        raise click.UsageError(f"{have}; give {'a file' if len(open_ports) == 1 else 'files'}{advice}")


def _require_possible(port: Port, limits: Limits) -> None:
    """Raise LimitExceeded or UsageError for an input that NumPy cannot represent."""
    type = port.type
    limits.require("tensor_bytes", type.nbytes or 0, f"input '{port.any_name}' {type} is too large to be filled")
    if (type.rank or 0) > AXES:
        raise click.UsageError(f"input '{port.any_name}' has {type.rank} axes; NumPy supports at most {AXES}")


def random_value(port: Port, rng: np.random.Generator) -> Array:
    """Return a value that suits most models: floats in 0..1, integers 0 or 1 (they may be indices or masks).

    A tensor of one integer is 0 (a valid index for an axis of length 1), a scalar 1 (it may be a count).
    """
    element, shape = port.element_type, port.partial_shape
    sizes = shape.static
    if element.kind == "string":
        return np.full(sizes, "irload", object)
    if element.kind == "boolean":
        return rng.integers(0, 2, sizes).astype(bool)
    if element.is_integer:
        values = rng.integers(0, 2, sizes) if shape.size.size > 1 else np.full(sizes, 1 if not sizes else 0)
        return values.astype(element.dtype)
    return np.asarray(rng.random(sizes)).astype(np.float32).astype(element.dtype if element.is_float else np.float32)
