"""Writes intermediates to a folder: one .npy each, and an index that maps files to layers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irload.arrays.npy import save_npy, storable
from irload.runtime.observation import Visit, as_patterns, chosen, unmatched
from irload.system.portable import file_name
from irload.write.atomic import write_atomically

if TYPE_CHECKING:
    from irload.runtime.compiled_model import CompiledModel

__all__ = ["INDEX", "Dumped", "dump_intermediates"]

INDEX = "index.json"
"""The index of a dump."""
HEADER = 128
"""Bytes of a .npy header; it is larger only for very many axes."""


@dataclass(frozen=True, slots=True)
class Dumped:
    """One array of a dump: the name of the output, its layer, and the file in the folder of the dump.

    `type` is the element type of the tensor; the file stores bf16 and 8-bit floats as f32. `layer`, `id` and
    `operation` describe the layer within its graph or body.
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
    """Write the outputs of every layer to `folder`, each once it is computed, then index.json. Returns its entries.

    `inputs`, `layers`: as for `CompiledModel.intermediates`. The folder is created for the first array; with `force` it
    may contain files, and files of equal names are replaced. Raises FileExistsError for a folder that is not empty,
    LimitExceeded before the files take more than `Limits.dump_bytes`, InputInvalid if no layer matches `layers`,
    OSError, and the errors of the run. After an error the arrays written so far remain, with their index.
    """
    folder = Path(folder)
    patterns = as_patterns(layers)
    if not force and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists already and is not empty")
    entries: list[Dumped] = []
    files: set[str] = {INDEX}
    written = 0

    def write(visit: Visit) -> None:
        nonlocal written
        for name, tensor, array in visit.named() if chosen(visit, patterns) else ():
            stored = storable(array)
            written += stored.nbytes + HEADER
            model.limits.require("dump_bytes", written, "the dump is too large")
            if not entries:  # a run that cannot begin creates no files
                folder.mkdir(parents=True, exist_ok=True)
            file = _file(name, len(entries), files)
            save_npy(folder / file, stored, force=force)
            node = visit.node
            entries.append(Dumped(name, node.name, node.id, node.type, tensor.element.name, array.shape, file))

    try:
        model.observe(inputs, write)
    except BaseException:
        if entries:
            with suppress(OSError):  # on a full disk, report the array that did not fit
                _write_index(folder, entries)
        raise
    if entries:
        _write_index(folder, entries)
    if patterns and not entries:
        raise unmatched(patterns)
    return entries


def _file(name: str, number: int, used: set[str]) -> str:
    """Return a file name based on the output's name, unique also on file systems that ignore case."""
    base = file_name(name, "output")
    file = f"{base}.npy"
    if file.lower() in used:
        file = f"{base}~{number}.npy"  # names derived from layers never contain `~`
    used.add(file.lower())
    return file


def _write_index(folder: Path, entries: Sequence[Dumped]) -> None:
    document = {"arrays": [asdict(entry) for entry in entries]}
    write_atomically(folder / INDEX, lambda stream: stream.write(json.dumps(document, indent=1).encode("ascii")))
