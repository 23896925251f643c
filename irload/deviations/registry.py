"""The deviations of OpenVINO from the specification, listed in deviations.toml, and the layers they affect."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import TensorType

__all__ = ["Deviation", "deviations", "met_by"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """`operations`: affected types; `where`: the part of OpenVINO; `what`: its behaviour, and that of irload.

    `when`: tables of conditions on a layer, which is affected if all conditions of one table hold; empty if a file does
    not show whether a layer is affected. `emulated`: whether `irload.deviations.emulation` reproduces it.
    """

    operations: tuple[str, ...]
    where: str
    what: str
    when: tuple[Mapping[str, Any], ...] = ()
    emulated: bool = False


@cache
def deviations() -> tuple[Deviation, ...]:
    """Return all deviations, in the order of the file."""
    text = Path(__file__).with_name("deviations.toml").read_text("utf-8")
    return tuple(
        Deviation(
            tuple(entry["operations"]),
            entry["where"],
            entry["what"].strip(),
            tuple(entry.get("when", ())),
            entry.get("emulated", False),
        )
        for entry in tomllib.loads(text)["deviation"]
    )


def met_by(op: Op, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> list[Deviation]:
    """Return the deviations that affect a layer, as far as its types, shapes, attributes and constants show."""
    layer = _Layer(op, inputs, outputs)
    return [d for d in _by_type().get(op.type, ()) if any(layer.fits(table) for table in d.when)]


@cache
def _by_type() -> dict[str, list[Deviation]]:
    by_type: dict[str, list[Deviation]] = {}
    for deviation in deviations():
        for type in deviation.operations if deviation.when else ():
            by_type.setdefault(type, []).append(deviation)
    return by_type


@dataclass(frozen=True, slots=True)
class _Layer:
    """The queries in a table of `when`; each key is a method of this class."""

    op: Op
    given: Sequence[TensorType]
    gives: Sequence[TensorType]

    def fits(self, table: Mapping[str, Any]) -> bool:
        return all(getattr(self, key)(wanted) for key, wanted in table.items())

    def elements(self, names: Sequence[str]) -> bool:
        return bool(self.given) and self.given[0].element.name in names

    def outputs(self, names: Sequence[str]) -> bool:
        return any(t.element.name in names for t in self.gives)

    def since(self, opsets: Sequence[int]) -> bool:
        return self.op.since in opsets

    def attributes(self, wanted: Mapping[str, Sequence[Any]]) -> bool:
        return all(self.op.attributes.get(name) in values for name, values in wanted.items())

    def inputs(self, count: int) -> bool:
        return len(self.given) >= count

    def empty_input(self, port: int) -> bool:
        return len(self.given) > port and (self.given[port].ints == () or self.given[port].shape == Shape(0))

    def not_constant(self, wanted: bool) -> bool:
        return any(t.value is None for t in self.given) is wanted

    def not_constant_input(self, port: int) -> bool:
        return len(self.given) > port and self.given[port].value is None

    def dynamic(self, wanted: bool) -> bool:
        return any(not t.shape.is_static for t in self.given) is wanted

    def fraction(self, name: str) -> bool:
        return float(self.op.attributes.get(name) or 0) % 1 != 0

    def even(self, name: str) -> bool:
        return int(self.op.attributes.get(name) or 1) % 2 == 0
