"""Intermediates in a folder: a .npy for each, and an index that says which layer each is of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irload.arrays import save_npy, storable
from irload.errors import InputInvalid
from irload.observation import Visit, as_patterns, chosen
from irload.portable import file_name
from irload.write.atomic import write_atomically

if TYPE_CHECKING:
    from irload.run import CompiledModel

__all__ = ["INDEX", "Dumped", "dump_intermediates"]

INDEX = "index.json"
"""The file of a dump that lists the others."""
HEADER = 128
"""Bytes that a .npy takes beside its data, for all but very many axes."""


@dataclass(frozen=True, slots=True)
class Dumped:
    """One array of a dump: the name of the output, its layer, and the file in the folder of the dump.

    `type` is the element type of the tensor; bf16 and 8-bit floats stand in the file as f32. `layer`, `id` and
    `operation` are of the layer, in the graph or body where it stands.
    """

    name: str
    layer: str
    id: int
    operation: str
    type: str
    shape: tuple[int, ...]
    file: str


def dump_intermediates(
    model: CompiledModel, inputs: Any, folder: str | Path, layers: str | Sequence[str] = (), *, force: bool = False
) -> list[Dumped]:
    """Write the outputs of every layer to `folder`, each as it is made, and index.json last. Returns its entries.

    `inputs`, `layers`: as for `CompiledModel.intermediates`. The folder is made with the first of them; with `force` it
    may hold files, which are replaced where names meet. Raises FileExistsError for a folder that is not empty,
    LimitExceeded before the files take more than `Limits.dump_bytes`, InputInvalid where no layer is meant by
    `layers`, OSError, and what the run raises: what was written until then stays, with its index.
    """
    folder = Path(folder)
    patterns = as_patterns(layers)
    if not force and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists already and is not empty")
    entries: list[Dumped] = []
    taken: set[str] = {INDEX}
    written = 0

    def write(visit: Visit) -> None:
        nonlocal written
        for name, tensor, array in visit.named() if chosen(visit, patterns) else ():
            stored = storable(array)
            written += stored.nbytes + HEADER
            model.limits.require("dump_bytes", written, "the dump is too large")
            if not entries:  # a run that cannot begin leaves nothing behind
                folder.mkdir(parents=True, exist_ok=True)
            file = _file(name, len(entries), taken)
            save_npy(folder / file, stored, force=force)
            node = visit.node
            entries.append(Dumped(name, node.name, node.id, node.type, tensor.element.name, array.shape, file))

    try:
        model.observe(inputs, write)
    finally:
        if entries:
            _write_index(folder, entries)
    if patterns and not entries:
        raise InputInvalid(f"no layer that ran is named as {', '.join(patterns)}")
    return entries


def _file(name: str, number: int, taken: set[str]) -> str:
    """A file name made of the output's, unlike the others whatever the case."""
    base = file_name(name, "output")
    file = f"{base}.npy"
    if file.lower() in taken:
        file = f"{base}~{number}.npy"  # `~` stands in no name that is made of a layer's
    taken.add(file.lower())
    return file


def _write_index(folder: Path, entries: Sequence[Dumped]) -> None:
    document = {"arrays": [asdict(entry) for entry in entries]}
    write_atomically(folder / INDEX, lambda stream: stream.write(json.dumps(document, indent=1).encode("ascii")))
