"""Inputs for a model: from files in order or by name, or random ones for a smoke run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from irload import InputInvalid, Limits, Port, Shape
from irload.arrays import load_npy, load_npz
from irload.core.tensor import Array
from irload.safety import DEFAULT


@dataclass(frozen=True)
class Fed:
    """A value for one input and where it came from."""

    value: Array
    source: str


AXES = 64
"""The most that NumPy holds."""


def gather(ports: Sequence[Port], words: Sequence[str], seed: int | None, limits: Limits = DEFAULT) -> list[Fed]:
    """One value for each port: those that files give, and random ones for the rest where a seed is given.

    `words` are paths (taken in port order, after the named ones) or `name=path`. A .npz feeds the ports that its arrays
    are named for; one of NumPy's unnamed archives (arr_0, arr_1 …) feeds them in order.
    """
    fed: dict[int, Fed] = {}
    unnamed: list[str] = []
    for word in words:
        name, path = _split(ports, word)
        if name is None:
            unnamed.append(path)
        else:
            port = _named(ports, name)
            _put(fed, port, Fed(_one(path, port, limits), path))
    for path in unnamed:
        for port, value in _load(ports, path, fed, limits).items():
            _put(fed, ports[port], Fed(value, path))
    if seed is not None:
        rng = np.random.default_rng(seed)
        for port in ports:
            if port.index not in fed:
                _require_possible(port, limits)
                fed[port.index] = Fed(random_value(port, rng), f"random, seed {seed}")
    missing = [f"'{p.any_name}' {p.type}" for p in ports if p.index not in fed]
    if missing:
        raise click.UsageError(
            f"no value for input {', '.join(missing)}. Give a .npy or .npz file, name=file, or --random SEED"
        )
    return [fed[p.index] for p in ports]


def _require_possible(port: Port, limits: Limits) -> None:
    """Raise LimitExceeded or UsageError for an input that no array can be."""
    told = port.type
    limits.require("tensor_bytes", told.nbytes or 0, f"input '{port.any_name}' {told} is too large to be filled")
    if (told.rank or 0) > AXES:
        raise click.UsageError(f"input '{port.any_name}' has {told.rank} axes; NumPy's arrays have {AXES} at the most")


def random_value(port: Port, rng: np.random.Generator) -> Array:
    """A value that any model should survive: floats in 0..1, integers 0 or 1 (they may be indices or masks).

    A tensor of one integer is 0 (it may index an axis of length 1), a scalar 1 (it may count something).
    """
    element, shape = port.element_type, port.partial_shape
    if shape.is_dynamic:
        example = Shape(*(max(d.lo, 1) for d in shape)) if shape.rank is not None else Shape(1)
        raise click.UsageError(
            f"input '{port.any_name}' has the dynamic shape {shape}; say which to fill, such as "
            f"--shape '{port.any_name}{example}'"
        )
    sizes = shape.static
    if element.kind == "string":
        return np.full(sizes, "irload", object)
    if element.kind == "boolean":
        return rng.integers(0, 2, sizes).astype(bool)
    if element.is_integer:
        values = rng.integers(0, 2, sizes) if shape.size.size > 1 else np.full(sizes, 1 if not sizes else 0)
        return values.astype(element.dtype)
    return np.asarray(rng.random(sizes)).astype(np.float32).astype(element.dtype if element.is_float else np.float32)


def _split(ports: Sequence[Port], word: str) -> tuple[str | None, str]:
    """`name=path` in its parts; names and paths may hold `=` themselves, so a name that the model has wins."""
    if "=" not in word or Path(word).exists():
        return None, word
    cuts = [k for k, c in enumerate(word) if c == "="]
    known = {n for p in ports for n in (*p.names, p.node.name)}
    cut = next((k for k in cuts if word[:k] in known), cuts[0])
    return word[:cut], word[cut + 1 :]


def _named(ports: Sequence[Port], name: str) -> Port:
    for port in ports:
        if name in port.names or name == port.node.name:
            return port
    raise InputInvalid(
        f"the model has no input '{name}'; it has {', '.join(repr(p.any_name) for p in ports) or 'none'}"
    )


def _put(fed: dict[int, Fed], port: Port, value: Fed) -> None:
    if port.index in fed:
        raise InputInvalid(f"input '{port.any_name}' was given twice: {fed[port.index].source} and {value.source}")
    fed[port.index] = value


def _load(ports: Sequence[Port], path: str, fed: Mapping[int, Fed], limits: Limits) -> dict[int, Array]:
    """What an unnamed file feeds, by port position."""
    free = [p for p in ports if p.index not in fed]
    if not _is_archive(path):
        if not free:
            raise InputInvalid(f"{path}: the model takes {len(ports)} inputs, and each has its value already")
        return {free[0].index: _one(path, free[0], limits)}
    found: dict[int, Array] = {}
    known = {n: p for p in ports for n in (p.node.name, *p.names)}

    def port_of(name: str) -> Port:
        if name in known:
            return known[name]
        number = name.removeprefix("arr_")
        if name != number and number.isascii() and number.isdigit() and int(number) < len(free):
            return free[int(number)]
        raise InputInvalid(f"{path}: the model has no input '{name}'; it has {', '.join(map(repr, known)) or 'none'}")

    arrays = load_npz(path, lambda name, dtype, shape: _check(port_of(name), shape, path), limits)
    for name, value in arrays.items():
        port = port_of(name)
        found[port.index] = _narrowed(port, value)
    return found


def _one(path: str, port: Port, limits: Limits) -> Array:
    """The value of one port from a .npy, or from a .npz of one array or with one of the port's name."""
    if not _is_archive(path):
        return _narrowed(port, load_npy(path, lambda _, dtype, shape: _check(port, shape, path), limits))

    def only(names: Sequence[str]) -> Sequence[str]:
        for name in (*port.names, port.node.name):
            if name in names or len(names) == 1:
                return [name] if name in names else names
        raise InputInvalid(f"{path} holds {len(names)} arrays, none of them named '{port.any_name}'")

    (value,) = load_npz(path, lambda _, dtype, shape: _check(port, shape, path), limits, only).values()
    return _narrowed(port, value)


def _check(port: Port, shape: tuple[int, ...], path: str) -> None:
    """Refuse what does not fit before its data are read."""
    if not port.partial_shape.contains(Shape(*shape)):
        raise InputInvalid(
            f"{path} has shape {Shape(*shape)}; input '{port.any_name}' takes {port.partial_shape} "
            "(--shape gives it another)"
        )


def _narrowed(port: Port, value: Array) -> Array:
    """Values for a model that takes bf16 or f8, which .npy files cannot hold: converted where that loses nothing."""
    element = port.element_type
    if element.is_low_precision and value.dtype.kind == "f" and value.dtype.itemsize > element.dtype.itemsize:
        narrow = value.astype(np.float32).astype(element.dtype)
        if np.array_equal(narrow.astype(value.dtype), value, equal_nan=True):
            return narrow
    return value


def _is_archive(path: str) -> bool:
    return path.lower().endswith(".npz")
