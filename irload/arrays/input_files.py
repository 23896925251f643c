"""Reads values for the inputs of a model from .npy and .npz files, and assigns them by name or by order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from irload.arrays.npy import load_npy, load_npz
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.graph import Port
from irload.safety.limits import DEFAULT, Limits

__all__ = [
    "Fits",
    "InputValue",
    "InputValues",
    "is_archive",
    "load_archive",
    "load_array",
    "names_of",
    "port_named",
    "split_word",
]

Fits = Callable[[Port, tuple[int, ...]], None]
"""Checks that an input accepts an array of this shape; raises InputInvalid otherwise. Called before the data are read.

Arguments: the input, the shape of the array.
"""


@dataclass(frozen=True, slots=True)
class InputValue:
    """A value for one input, and the path of the file that contains it."""

    value: Array
    source: str


class InputValues:
    """The values assigned so far, at most one per input."""

    def __init__(self, ports: Sequence[Port]) -> None:
        self.ports = ports
        self._values: dict[int, InputValue] = {}

    def put(self, port: Port, value: Array, source: str) -> None:
        """Assign a value. Raises InputInvalid if the input already has one."""
        if port.index in self._values:
            first = self._values[port.index].source
            raise InputInvalid(f"input '{port.any_name}' was given twice: {first} and {source}")
        self._values[port.index] = InputValue(value, source)

    def missing(self) -> list[Port]:
        """The inputs that have no value yet, in the model's order."""
        return [p for p in self.ports if p.index not in self._values]

    def all(self) -> list[InputValue]:
        """Return the values in the order of the inputs. Raises KeyError if one is missing."""
        return [self._values[p.index] for p in self.ports]


def names_of(port: Port) -> frozenset[str]:
    """Return the names by which an input may be given: its tensor's names and its layer's name."""
    return port.names | {port.node.name}


def port_named(ports: Sequence[Port], name: str) -> Port:
    """Return the input with this name. Raises InputInvalid, which lists the inputs, if there is none."""
    for port in ports:
        if name in names_of(port):
            return port
    known = ", ".join(f"'{p.any_name}'" for p in ports)
    raise InputInvalid(f"the model has no input '{name}'; it has {known or 'none'}")


def split_word(ports: Sequence[Port], word: str, exists: Callable[[str], bool]) -> tuple[Port | None, str]:
    """Split `name=path` into (input, path); anything else gives (None, word). Raises InputInvalid for an unknown name.

    Names and paths may contain `=`. A word is not split if it `exists` as a path. Any other word is split at the first
    `=` that follows a name of an input, or, if no input has this name, at the first `=`.
    """
    if "=" not in word or exists(word):
        return None, word
    cuts = [k for k, c in enumerate(word) if c == "="]
    known = {name for port in ports for name in names_of(port)}
    cut = next((k for k in cuts if word[:k] in known), cuts[0])
    return port_named(ports, word[:cut]), word[cut + 1 :]


def is_archive(path: str) -> bool:
    """Return True if the path ends in .npz."""
    return path.lower().endswith(".npz")


def load_array(path: str, port: Port, fits: Fits, limits: Limits = DEFAULT) -> Array:
    """Return the value of one input: a .npy, the only array of a .npz, or the array named like the input.

    Raises ReadError and LimitExceeded as `load_npy` does, InputInvalid if no array of the .npz matches the input.
    """
    if not is_archive(path):
        return load_npy(path, lambda _, dtype, shape: fits(port, shape), limits)

    def only(keys: Sequence[str]) -> Collection[str]:
        named = [k for k in keys if k in names_of(port)][:1]
        if not named and len(keys) != 1:
            raise InputInvalid(f"holds {len(keys)} arrays, none of them named '{port.any_name}'")
        return named or keys

    (value,) = load_npz(path, lambda _, dtype, shape: fits(port, shape), limits, only).values()
    return value


def load_archive(path: str, values: InputValues, fits: Fits, limits: Limits = DEFAULT) -> None:
    """Assign the arrays of a .npz to inputs by name.

    If no input is named `arr_k`, array `arr_k` (written by numpy.savez without a name) is assigned to the input with
    index k among the inputs without a value. If the archive has one array and the model one input, any name is
    accepted. An array whose name or shape matches no input is rejected before it is unpacked: raises InputInvalid.
    Also raises the errors of `load_npz`.
    """
    free, ports = values.missing(), values.ports
    count = 0

    def every(keys: Sequence[str]) -> Collection[str]:
        nonlocal count
        count = len(keys)
        return keys

    def port_of(key: str) -> Port:
        number = key.removeprefix("arr_")
        if not any(key in names_of(p) for p in ports):
            if number != key and number.isascii() and number.isdigit() and int(number) < len(free):
                return free[int(number)]
            if count == len(ports) == 1:
                return ports[0]
            inputs = ", ".join(f"'{p.any_name}'" for p in ports) or "none"
            raise InputInvalid(f"{path} has an array '{key}', but the model has no such input; it has {inputs}")
        return port_named(ports, key)

    arrays = load_npz(path, lambda key, _, shape: fits(port_of(key), shape), limits, every)
    for key, array in arrays.items():
        values.put(port_of(key), array, path)
