"""Output files of `irrun run -o`: one .npz, one .npy, or a folder with one .npy per output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from irload import Port
from irload.arrays.npy import save_npy, save_npz
from irload.runtime.compiled_model import Result
from irload.system.portable import file_name


def plan_files(output: str, ports: Sequence[Port], *, force: bool) -> list[Path]:
    """Return the files to write; checked before the model runs.

    A trailing separator in `output` denotes a folder with any suffix. Raises UsageError for an unsupported suffix and
    for existing files.
    """
    target, as_folder = Path(output), output.endswith((os.sep, os.altsep or os.sep))
    if target.suffix == ".npz" and not as_folder:
        files = [target]
    elif target.suffix == ".npy" and not as_folder:
        if len(ports) != 1:
            raise click.UsageError(
                f"a .npy holds one array and the model has {len(ports)} outputs; use .npz or a folder"
            )
        files = [target]
    elif target.suffix and not as_folder and not target.is_dir():
        raise click.UsageError(
            f"unsupported output format {target.suffix}; use .npz, .npy or a folder ({target}{os.sep})"
        )
    elif target.exists() and not target.is_dir():
        raise click.UsageError(
            f"{target} is a file, but an output without a suffix is a folder; use .npz, .npy or another folder"
        )
    else:
        files = [target / f"{name}.npy" for name in file_names(ports)]
    existing = [f for f in files if f.is_symlink() or f.exists()]
    if existing and not force:
        raise click.UsageError(f"{existing[0]} exists already; --force replaces it")
    if not files[0].parent.is_dir() and target in files:
        raise click.UsageError(f"the folder {files[0].parent} does not exist")
    return files


def write_files(files: Sequence[Path], result: Result, *, force: bool) -> None:
    """Write the outputs to the planned files."""
    if files and files[0].suffix == ".npz":
        names = file_names(list(result))
        save_npz(files[0], dict(zip(names, result.values(), strict=True)), force=force)
        return
    for file, array in zip(files, result.values(), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        save_npy(file, array, force=force)


def file_names(ports: Sequence[Port]) -> list[str]:
    """Return a portable file name for each output, unique also on file systems that ignore case."""
    used: set[str] = set()
    names: list[str] = []
    for port in ports:
        base = file_name(port.any_name, f"output_{port.index}")
        name = base
        while name.lower() in used:
            name = f"{base}_{port.index}" if name == base else f"{name}_"
        used.add(name.lower())
        names.append(name)
    return names
