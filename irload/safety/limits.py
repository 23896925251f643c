"""Limits on the resources that an untrusted file can cause irload to use: sizes, counts, depth, memory, time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import fields
from functools import cache
from time import monotonic
from typing import Any

from irload.errors import InputInvalid, LimitExceeded, Where
from irload.record import record
from irload.system.portable import physical_memory

__all__ = ["DEFAULT", "Deadline", "Limits", "bounded", "checkpoint", "limits_of", "machine_memory"]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGT]?)", re.ASCII | re.IGNORECASE)


@record(kw_only=True)
class Limits:
    """Bounds on files and on the resources for running them. The defaults exceed the needs of all published models.

    A model keeps the limits that it was read with (`Model.limits`). Raises InputInvalid for invalid values.
    """

    xml_bytes: int = 1 << 28
    """Size of the XML file."""
    layers: int = 500_000
    """Layers in a file, including the layers of bodies."""
    ports: int = 4_000_000
    """Ports of all layers in a file; outputs of one layer; edges."""
    attributes: int = 1_000
    """Attributes of one XML element."""
    element_bytes: int = 1 << 26
    """Maximum bytes of XML in one layer (without its bodies) or one block of metadata."""
    body_depth: int = 32
    """Depth of bodies inside bodies."""
    name_length: int = 1 << 14
    """Characters of a layer's name, of its type, or of a tensor's name."""
    tensor_bytes: int = 1 << 34
    """Bytes of one tensor, and of the arrays of one .npy or .npz file."""
    image_pixels: int = 89_478_485
    """Pixels of one image, as stored and after resizing. The default is Pillow's limit."""
    peak_bytes: int | None = None
    """Bytes of constants and activations together while a model runs; None: the memory of this machine."""
    dump_bytes: int = 1 << 36
    """Bytes of all files written by one dump of intermediates."""
    iterations: int = 1_000_000
    """Iterations of all loops in one run."""
    body_passes: int = 20_000
    """Passes over bodies in one inference of shapes and types, until types are stable."""
    wall_time: float | None = 3600.0
    """Seconds per stage: reading the file, one inference of shapes and types, one plan, one run including its plan.

    None: unbounded.
    """

    def __post_init__(self) -> None:
        for name in self.names():
            value, is_open, is_time = getattr(self, name), name in _OPEN, name == "wall_time"
            if value is None and is_open:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float) if is_time else int) or not value >= 0:
                kind = "a number of seconds" if is_time else "a non-negative integer"
                raise InputInvalid(f"the limit {name} must be {kind}{' or None' if is_open else ''}, found {value!r}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all limits."""
        return tuple(f.name for f in fields(cls))

    @property
    def memory(self) -> int | None:
        """`peak_bytes`, or the memory of this machine if it is None; None if that cannot be determined."""
        return machine_memory() if self.peak_bytes is None else self.peak_bytes

    def exceeded(self, name: str, fact: str, where: Where | None = None) -> LimitExceeded:
        """The error for an exceeded limit: the fact, the limit, and how to raise it."""
        value = getattr(self, name)
        shown = f"{machine_memory()}, the memory of this machine" if value is None else value
        return LimitExceeded(
            f"{fact}; the limit {name} is {shown} (to allow more: limits=irload.Limits({name}=…) "
            f"(irrun --limit {name.replace('_', '-')}=…))",
            where,
            limit=name,
        )

    def require(self, name: str, amount: float, fact: str) -> None:
        """Raise LimitExceeded if `amount` exceeds the limit; `fact` names the quantity."""
        bound = self.memory if name == "peak_bytes" else getattr(self, name)
        if bound is not None and amount > bound:
            raise self.exceeded(name, f"{fact}: {amount}{' bytes' if name.endswith('bytes') else ''}")


_OPEN = ("peak_bytes", "wall_time")
"""The limits that may be None."""
DEFAULT = Limits()
"""The default limits."""


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
"""The deadline of the current stage of this thread."""


def checkpoint() -> None:
    """Raise LimitExceeded if the time of this thread's stage is over. Long computations call it periodically."""
    deadline = _current.get()
    if deadline is not None:
        deadline.check()


def bounded(limits: Limits) -> AbstractContextManager[None]:
    """Limit the time of the block by `wall_time`, which `checkpoint` checks, unless an enclosing stage has a limit."""
    return Deadline(limits) if _current.get() is None else nullcontext()


class Deadline:
    """The end of a stage: `wall_time` after the Deadline is created. A context in which `checkpoint` checks it."""

    __slots__ = ("_token", "at", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.at = float("inf") if limits.wall_time is None else monotonic() + limits.wall_time

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def check(self) -> None:
        """Raise LimitExceeded if the time is over."""
        if monotonic() > self.at:
            raise self.limits.exceeded("wall_time", f"is not finished after {self.limits.wall_time:g} s")


def limits_of(texts: Iterable[str]) -> Limits:
    """The limits in texts such as `tensor-bytes=8G`, `layers=1M`, `wall-time=60`, `peak-bytes=none`; else the defaults.

    K, M, G and T stand for 2 to the 10, 20, 30 and 40; seconds may have decimals. Raises InputInvalid.
    """
    limits: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        name = key.strip().replace("-", "_")
        if name not in Limits.names():
            known = ", ".join(n.replace("_", "-") for n in Limits.names())
            raise InputInvalid(f"'{text}' is not a limit; the limits are {known}")
        if not sign:
            raise InputInvalid(f"'{text}' has no value; write, for example, {key}=1M")
        limits[name] = _number(name, value.strip())
    return Limits(**limits)


def _number(name: str, text: str) -> float | None:
    if name in _OPEN and text.lower() == "none":
        return None
    match = _NUMBER.fullmatch(text)
    number = None if match is None else float(match[1]) * _UNITS[match[2].upper()]
    if name == "wall_time" and number is not None and match is not None and not match[2]:
        return number
    if name == "wall_time" or number is None or number != int(number):
        form = "a number of seconds as 60 or 0.5" if name == "wall_time" else "a whole number as 500, 64K or 8G"
        raise InputInvalid(
            f"{name.replace('_', '-')}='{text[:40]}' is not {form}{', or none' if name in _OPEN else ''}"
        )
    return int(number)


@cache
def machine_memory() -> int | None:
    """The bytes of memory that this process may use: of the machine or its container; None if unknown."""
    bounds: list[int] = []
    physical = physical_memory()
    if physical is not None:
        bounds.append(physical)
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError), open(file, encoding="ascii") as stream:
            bounds.append(int(stream.read(32)))
    return min((n for n in bounds if n > 0), default=None)
