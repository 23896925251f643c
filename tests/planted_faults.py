"""One fault at a time for compare: `python -m tests.planted_faults DIR… [--count N] [--untouched] [--seed S]`.

Plants a fault in a copy of a model (a constant, an attribute, an edge, a type, a layer added or removed; in bodies,
too) and disguises every third copy (renamed, reordered, renumbered). `irload.compare` has to name the layer first.
Faults that change no output by more than the tolerance are drawn again, except in constants. `--untouched` compares
models with equivalent ones instead: fast, jit, openvino, saved, disguised.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import irload
from irload.comparison.compare import TOLERANCES
from irload.comparison.measures import measure
from irload.errors import IRError
from irload.graph import Port
from tests.disguise import disguise
from tests.planted_edits import WAYS, Copy, Edit, Make
from tests.planted_edits import constant as constant_edit

LENGTH = 4
"""The size of dynamic axes other than the first."""
WITHOUT_FILE = ("fast", "jit", "openvino")
ELSEWHERE = (*WITHOUT_FILE, "saved", "disguised")


@dataclass
class Tally:
    """Counts the outcomes of the faults, or of the untouched pairs."""

    planted: Counter[str] = field(default_factory=Counter[str])
    named: int = 0
    passed_wrongly: int = 0
    crashes: int = 0
    lines: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        count = self.planted.total()
        kinds = ", ".join(f"{n} {k}" for k, n in sorted(self.planted.items()))
        share = 100 * self.named / max(count, 1)
        return (
            f"{count} pairs ({kinds}): {self.named} right ({share:.1f} %), "
            f"{self.passed_wrongly} passed with an output beyond tolerance, {self.crashes} crashes"
        )


def sample(port: Port, rng: np.random.Generator) -> Any:
    """Data for an input: small integers, floats around 0. A dynamic first axis has length 1, others LENGTH."""
    dims = [d.lo if d.is_static else max(d.lo, 1 if k == 0 else LENGTH) for k, d in enumerate(port.partial_shape)]
    element = port.element_type
    if element.kind == "string":
        return np.full(dims, "irload", object)
    if element.is_integer or element.kind == "boolean":
        values = rng.integers(0, 2, dims) if np.prod(dims) > 1 else np.zeros(dims)
        return values.astype(element.dtype)
    return rng.standard_normal(dims).astype(np.float32).astype(element.dtype)


def inputs_of(model: irload.Model, xml: Path) -> list[Any]:
    """The arrays next to the model's file (in_0.npy …, input_0.npy …), otherwise random ones."""
    for prefix in ("in", "input"):
        files = [xml.parent / f"{prefix}_{k}.npy" for k in range(len(model.inputs))]
        if files and all(f.exists() for f in files):
            return [np.load(f, allow_pickle=True) for f in files]
    rng = np.random.default_rng(0)
    drawn = [sample(p, rng) for p in model.inputs]
    results = runs(model, drawn)
    if results is None or all(r.dtype.kind not in "fV" or np.isfinite(r.astype(np.float64)).all() for r in results):
        return drawn
    return [np.ones_like(a) if a.ndim > 1 and a.dtype.kind in "iu" else a for a in drawn]  # masks that exclude nothing


def runs(model: irload.Model, inputs: Sequence[Any]) -> list[Any] | None:
    """The outputs by each layer's `compute`; None if the model does not run."""
    try:
        results = irload.compile_model(model, optimize=False)(inputs)
        return [results[k] for k in range(len(model.outputs))]
    except IRError:
        return None


def diverge(a: Sequence[Any], b: Sequence[Any], model: irload.Model) -> bool:
    """Whether some output exceeds the tolerance of its type."""
    for port, x, y in zip(model.outputs, a, b, strict=True):
        element = port.output.type.element.name
        allowed = TOLERANCES.get("f8" if element.startswith("f8") else element, 0.0)
        least = 1.0 if element in ("i8", "u8") else 0.0
        if x.shape != y.shape or not measure(np.asarray(x), np.asarray(y), allowed, least).passed:
            return True
    return False


class Planter:
    """A model into whose copies faults are planted."""

    def __init__(self, xml: Path, folder: Path) -> None:
        self.copy = Copy(xml, folder)
        self.model = irload.read_model(xml)
        self.inputs = inputs_of(self.model, xml)
        self.results = runs(self.model, self.inputs)

    def plant(self, way: Make, rng: np.random.Generator, hidden: bool, tally: Tally) -> bool:
        """Plant a fault and compare; False if it applies to no copy, or has no effect."""
        copy = self.copy
        copy.reset()
        edit = way(copy, rng)
        if edit is None or self.results is None:
            return False
        copy.write()
        try:
            edited = irload.read_model(copy.file)
        except IRError:
            return False
        results = runs(edited, self.inputs) if len(edited.outputs) == len(self.model.outputs) else None
        if results is None:
            return False
        effect = diverge(results, self.results, self.model)
        if not effect and way is not constant_edit:
            return False
        names: dict[str, str] = {}
        if hidden:
            names = disguise(copy.tree.getroot(), rng)
            copy.write()
            edited = irload.read_model(copy.file)
        kind = (edit.what or edit.kind) + (", disguised" if hidden else "")
        tally.planted[kind] += 1
        self._judge(edit, edited, names, effect, f"{copy.xml}: {kind} {edit.name}", tally)
        return True

    def _judge(
        self, edit: Edit, edited: irload.Model, names: dict[str, str], effect: bool, what: str, tally: Tally
    ) -> None:
        try:
            comparison = irload.compare(self.model, edited, self.inputs)
        except Exception as error:
            tally.crashes += 1
            tally.lines.append(f"{what}: {type(error).__name__} {error}\n{traceback.format_exc(limit=-3)}")
            return
        first = comparison.first
        if comparison.passed and effect:
            tally.passed_wrongly += 1
        if first is not None and is_named(first.name, edit.name, names):
            tally.named += 1
        else:
            tally.lines.append(f"{what}: {comparison}")

    def untouched(self, way: str, folder: Path, tally: Tally) -> None:
        """Compare the model with an equivalent one."""
        b: Any = way
        if way == "saved":
            irload.save_model(self.model, folder / "saved.xml")
            b = folder / "saved.xml"
        elif way == "disguised":
            self.copy.reset()
            disguise(self.copy.tree.getroot(), np.random.default_rng(0))
            self.copy.write()
            b = self.copy.file
        try:
            sides = (b, self.model) if way in WITHOUT_FILE else (self.model, b)
            comparison = irload.compare(*sides, self.inputs)
        except irload.Unsupported as error:
            tally.lines.append(f"{self.copy.xml}: {way} left out: {error}")
            return
        except Exception as error:
            tally.planted[way] += 1
            tally.crashes += 1
            tally.lines.append(
                f"{self.copy.xml}: {way}: {type(error).__name__} {error}\n{traceback.format_exc(limit=-3)}"
            )
            return
        tally.planted[way] += 1
        if comparison.passed:
            tally.named += 1
        else:
            tally.lines.append(f"{self.copy.xml}: {comparison} {comparison.first and comparison.first.own}")


def is_named(name: str, wanted: str, names: dict[str, str]) -> bool:
    """Whether an error names the edited layer, in a body and for one of its outputs as well."""
    last = f"/{name}"
    ends = {wanted, *(new for new, old in names.items() if old == wanted)}
    plain = {last, last.partition("#")[0], last.rpartition(":")[0]}
    return any(p.endswith(f"/{end}") for p in plain for end in ends)


def models(folders: Sequence[Path]) -> list[Path]:
    """The model files of folders, and the given files."""
    return [f for folder in folders for f in (sorted(folder.rglob("*.xml")) if folder.is_dir() else [folder])]


def run(files: Sequence[Path], count: int, seed: int) -> Tally:
    """Plant `count` faults, spread over the files and the kinds."""
    tally, rng = Tally(), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        planters: dict[Path, Planter] = {}
        for attempt in range(count * 30):
            done = tally.planted.total()
            if done == count:
                break
            xml = files[attempt % len(files)]
            if xml not in planters:
                planters[xml] = Planter(xml, Path(folder))
            for _ in range(10):
                if planters[xml].plant(WAYS[int(rng.integers(len(WAYS)))], rng, done % 3 == 2, tally):
                    break
    return tally


def compare_untouched(files: Sequence[Path], ways: Sequence[str] = ELSEWHERE) -> Tally:
    """Compare each file with its equivalents of each kind."""
    tally = Tally()
    for xml in files:
        with tempfile.TemporaryDirectory() as folder:
            planter = Planter(xml, Path(folder))
            if planter.results is None:
                tally.lines.append(f"{xml}: does not run on these inputs")
                continue
            for way in ways:
                planter.untouched(way, Path(folder), tally)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--untouched", action="store_true")
    arguments = parser.parse_args()
    files = models(arguments.folders)
    tally = compare_untouched(files) if arguments.untouched else run(files, arguments.count, arguments.seed)
    print("\n".join(tally.lines))
    print(f"{len(files)} models, {tally}")
    return 1 if tally.passed_wrongly or tally.crashes or tally.named < tally.planted.total() else 0


if __name__ == "__main__":
    sys.exit(main())
