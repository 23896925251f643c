"""Inputs for a model: from files in order or by name, or random ones for a smoke run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click
import numpy as np

from irload import InputInvalid, Limits, Port, Shape
from irload.core.tensor import Array
from irload.input_files import Fits, InputValue, InputValues, is_archive, load_archive, load_array, split_word
from irload.safety import DEFAULT

AXES = 64
"""The most that NumPy holds."""


Suggest = Callable[[Sequence[Port]], str]
"""What an error about inputs of dynamic shape advises."""


def gather(
    ports: Sequence[Port],
    words: Sequence[str],
    seed: int | None,
    limits: Limits = DEFAULT,
    suggest: Suggest | None = None,
) -> list[InputValue]:
    """One value for each port: those that files give, and random ones for the rest where a seed is given.

    `words` are paths (taken in port order, after the named ones) or `name=path`. A .npz feeds the ports that its arrays
    are named for; one of NumPy's unnamed archives (arr_0, arr_1 …) feeds them in order.
    """
    values = InputValues(ports)
    unnamed: list[str] = []
    for word in words:
        port, path = split_word(ports, word, os.path.exists)
        if port is None:
            unnamed.append(path)
        else:
            values.put(port, _array(path, port, limits), path)
    for path in unnamed:
        free = values.missing()
        if is_archive(path):
            load_archive(path, values, _fits(path), limits)
        elif free:
            values.put(free[0], _array(path, free[0], limits), path)
        else:
            raise InputInvalid(f"{path}: the model takes {len(ports)} inputs, and each has its value already")
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


def _array(path: str, port: Port, limits: Limits) -> Array:
    try:
        return load_array(path, port, _fits(path), limits)
    except InputInvalid as error:
        raise error if error.message.startswith(path) else InputInvalid(f"{path} {error.message}") from None


def _fits(path: str) -> Fits:
    def fits(port: Port, shape: tuple[int, ...]) -> None:
        """Refuse what does not fit before its data are read."""
        if not port.partial_shape.contains(Shape(*shape)):
            raise InputInvalid(
                f"{path} has shape {Shape(*shape)}; input '{port.any_name}' takes {port.partial_shape} "
                "(--shape gives it another)"
            )

    return fits


def _require_static(ports: Sequence[Port], suggest: Suggest | None) -> None:
    """Raise UsageError naming the inputs whose shape leaves open what to fill."""
    open_ports = [p for p in ports if p.partial_shape.is_dynamic]
    if open_ports:
        named = ", ".join(f"'{p.any_name}' {p.partial_shape}" for p in open_ports)
        shape = "a dynamic shape" if len(open_ports) == 1 else "dynamic shapes"
        advice = "" if suggest is None else f"; {suggest(open_ports)}"
        inputs = "input" if len(open_ports) == 1 else "inputs"
        raise click.UsageError(f"--random cannot fill {inputs} of {shape}: {named}{advice}")


def _require_possible(port: Port, limits: Limits) -> None:
    """Raise LimitExceeded or UsageError for an input that no array can be."""
    type = port.type
    limits.require("tensor_bytes", type.nbytes or 0, f"input '{port.any_name}' {type} is too large to be filled")
    if (type.rank or 0) > AXES:
        raise click.UsageError(f"input '{port.any_name}' has {type.rank} axes; NumPy's arrays have {AXES} at the most")


def random_value(port: Port, rng: np.random.Generator) -> Array:
    """A value that any model should survive: floats in 0..1, integers 0 or 1 (they may be indices or masks).

    A tensor of one integer is 0 (it may index an axis of length 1), a scalar 1 (it may count something).
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
