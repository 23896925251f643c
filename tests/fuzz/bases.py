"""The valid models that are mutated: the models of models/, the nets of nets.py, and single operations.

All are saved by irload, so each port declares the inferred shape and type: every declaration is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import irload
from tests.fuzz.nets import NETS
from tests.harness.case import GENERATORS, Array, Random
from tests.harness.ir import ir_of
from tests.harness.material import pick

MODELS = Path(__file__).parents[2] / "models"
HANDMADE = 0.65
"""Share of mutants derived from models; the rest derive from single operations."""


@dataclass(frozen=True)
class Base:
    """A valid model: its two files, and an input for each Parameter."""

    name: str
    xml: bytes
    blob: bytes
    inputs: Sequence[Array] = field(default_factory=list[Array])


def chosen(rng: Random) -> Base:
    """A random base: one of the models, or a random case of one operation."""
    if rng.random() < HANDMADE:
        return pick(rng, models())
    row = pick(rng, sorted(GENERATORS))
    case = pick(rng, GENERATORS[row])(rng)
    for _ in range(20):
        if sum(i.value.size for i in case.inputs) <= 5_000:
            break
        case = pick(rng, GENERATORS[row])(rng)
    try:
        xml, blob = saved(*ir_of(case))
    except irload.IRError:  # the case expects an error
        return pick(rng, models())
    return Base("-".join(row), xml, blob, [i.value for i in case.inputs if not i.constant])


@cache
def models() -> list[Base]:
    """The models of models/ and nets.py; read once per process."""
    bases: list[Base] = []
    for file in sorted(MODELS.glob("*/model.xml")):
        inputs = [np.load(f) for f in sorted(file.parent.glob("input_*.npy"))]
        bases.append(Base(file.parent.name, file.read_bytes(), file.with_suffix(".bin").read_bytes(), inputs))
    for name, make in NETS.items():
        net = make()
        bases.append(Base(name, *saved(*net.body.model()), net.inputs))
    return bases


def saved(xml: bytes, blob: bytes) -> tuple[bytes, bytes]:
    """The XML and weights of a model as irload writes them, with true declarations at every port."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.xml"
        irload.save_model(irload.read_model(xml, blob), file)
        return file.read_bytes(), file.with_suffix(".bin").read_bytes()
