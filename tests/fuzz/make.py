"""Generates mutants: selects a base and a family of changes, and writes the files. Deterministic for a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.bases import Base, chosen
from tests.fuzz.lies import LIES
from tests.fuzz.mutant import Mutant, generator
from tests.fuzz.rewrites import TREE, as_written
from tests.fuzz.spoil_bytes import BYTES, weights
from tests.fuzz.spoil_plausible import PLAUSIBLE
from tests.fuzz.spoil_structure import STRUCTURE
from tests.fuzz.spoil_values import VALUES
from tests.harness.case import Array

SPOILT, LIE, HARMLESS = "spoilt", "lie", "harmless"
TRIES = 50
KINDS = (VALUES, VALUES, VALUES, VALUES, VALUES, STRUCTURE, STRUCTURE, PLAUSIBLE, PLAUSIBLE, PLAUSIBLE, (weights,))


@dataclass(frozen=True)
class MutantFiles:
    """A mutant as files, with its base, its family and its changes."""

    base: Base
    family: str
    xml: bytes
    blob: bytes | None
    inputs: Sequence[Array]
    done: Sequence[str]
    seed: int = 1
    """Seed of the random numbers used to run the mutant."""

    def write(self, folder: Path) -> Path:
        """Write model.xml and model.bin. Returns the former."""
        file = folder / "model.xml"
        file.write_bytes(self.xml)
        if self.blob is not None:
            file.with_suffix(".bin").write_bytes(self.blob)
        return file


def make(seed: int, index: int) -> MutantFiles:
    """Mutant `index` of a seed."""
    rng = generator(seed, index)
    m = Mutant(chosen(rng), rng)
    roll = rng.random()
    if roll < 0.2:
        _apply(m, LIES)
        return _finished(m, LIE, m.text())
    if roll < 0.4:
        for _ in range(m.between(1, 5)):
            _apply(m, TREE)
        text = m.text()
        return _finished(m, HARMLESS, as_written(m, text) if m.chance(0.3) else text)
    for _ in range(m.of((1, 1, 1, 1, 2, 2, 3, 6))):
        _apply(m, m.of(KINDS))
    text = m.text()
    if m.chance(0.12):
        for _ in range(m.of((1, 1, 2, 4))):
            change = m.of(BYTES)
            text = change(m, text or b" ")
            m.note(f"XML: {change.__name__}")
    return _finished(m, SPOILT, text)


def _apply(m: Mutant, changes: Sequence[Callable[[Mutant], Any]]) -> None:
    """Apply one change; skips changes that do not apply to this model."""
    for _ in range(TRIES):
        with suppress(TypeError, ValueError):  # an earlier change may have removed elements that this one needs
            if m.of(changes)(m):
                return
        if m.root.tag != "net":
            return


def _finished(m: Mutant, family: str, text: bytes) -> MutantFiles:
    return MutantFiles(
        m.base, family, text, None if m.blob is None else bytes(m.blob), m.inputs, m.done, m.between(0, 1 << 30)
    )
