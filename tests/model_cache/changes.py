"""Ways to change the files of a model under one path, most of which preserve sizes and times."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

WIDTH = 64
TYPES = ("ReLU", "Sqrt")
"""Functions whose names have equal length."""
FILLINGS = (1.0, 2.0, 3.0, 5.0)
WHEN = 1_700_000_000_000_000_000
"""The modification time of every file, in nanoseconds."""
XML = f"""<?xml version="1.0"?>
<net name="product" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,{WIDTH}" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>{WIDTH}</dim></port></output></layer>
<layer id="1" name="w" type="Const" version="opset1">
<data element_type="f32" shape="{WIDTH},{WIDTH}" offset="0" size="{4 * WIDTH * WIDTH}"/>
<output><port id="0" precision="FP32"><dim>{WIDTH}</dim><dim>{WIDTH}</dim></port></output></layer>
<layer id="2" name="product" type="MatMul" version="opset1"><data transpose_a="false" transpose_b="false"/>
<input><port id="0"/><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>1</dim><dim>{WIDTH}</dim></port></output></layer>
<layer id="3" name="function" type="TYPE" version="opset1"><input><port id="0"/></input>
<output><port id="1" precision="FP32"><dim>1</dim><dim>{WIDTH}</dim></port></output></layer>
<layer id="4" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
<edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
</edges></net>
"""

Version = tuple[str, float]
VERSIONS: list[Version] = [(type, value) for type in TYPES for value in FILLINGS]


def value_of(version: Version) -> float:
    """The value of each output element for an input of ones."""
    product = WIDTH * version[1]
    return float(np.sqrt(np.float32(product))) if version[0] == "Sqrt" else product


def contents(version: Version) -> dict[str, bytes]:
    """The two files of a version."""
    type, value = version
    weights = np.full((WIDTH, WIDTH), value, np.float32).tobytes()
    return {"model.xml": XML.replace("TYPE", type).encode(), "model.bin": weights}


class Changing:
    """A folder that holds one version at a time, with copies of all versions next to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "current"
        for k, version in enumerate(VERSIONS):
            (root / f"v{k}").mkdir(parents=True)
            for name, data in contents(version).items():
                _write(root / f"v{k}" / name, data)
        self._mounted = False
        self._fresh()

    @property
    def model(self) -> Path:
        """The path that is compiled."""
        return self.folder / "model.xml"

    def close(self) -> None:
        """Unmount the folder."""
        self._unmount()

    # -- atomic for each file ------------------------------------------------------------------------------------------

    def renamed(self, k: int) -> None:
        """New files are renamed to the names."""
        self._plain()
        for name, data in contents(VERSIONS[k]).items():
            _write(self.root / "new", data)
            os.replace(self.root / "new", self.folder / name)

    def linked_hard(self, k: int) -> None:
        """The names become hard links to other inodes, alternately."""
        self._plain()
        for name in ("model.xml", "model.bin"):
            os.link(self.root / f"v{k}" / name, self.root / "new")
            os.replace(self.root / "new", self.folder / name)
            (self.root / "new").unlink(missing_ok=True)  # both names of one inode stay

    def linked(self, k: int) -> None:
        """Each name becomes a symbolic link."""
        self._plain()
        for name in ("model.xml", "model.bin"):
            os.symlink(self.root / f"v{k}" / name, self.root / "new")
            os.replace(self.root / "new", self.folder / name)

    def folder_linked(self, k: int) -> None:
        """The folder becomes a symbolic link."""
        self._unmount()
        if not self.folder.is_symlink():
            shutil.rmtree(self.folder)
        os.symlink(f"v{k}", self.root / "new")
        os.replace(self.root / "new", self.folder)

    # -- not atomic ----------------------------------------------------------------------------------------------------

    def in_place(self, k: int) -> None:
        """The same inodes get other bytes."""
        self._plain(own=True)
        for name, data in contents(VERSIONS[k]).items():
            with open(self.folder / name, "r+b") as file:
                file.write(data)
                file.truncate()
            os.utime(self.folder / name, ns=(WHEN, WHEN))

    def mapped(self, k: int) -> None:
        """The same inodes get other bytes, through a memory map."""
        self._plain(own=True)
        for name, data in contents(VERSIONS[k]).items():
            with open(self.folder / name, "r+b") as file:
                file.truncate(len(data))
                with mmap.mmap(file.fileno(), 0) as memory:
                    memory[:] = data
            os.utime(self.folder / name, ns=(WHEN, WHEN))

    def removed(self, k: int) -> None:
        """The files are removed for a moment, so that new ones may reuse their inodes."""
        self._plain()
        for name, data in contents(VERSIONS[k]).items():
            (self.folder / name).unlink()
            _write(self.folder / name, data)

    def folder_renamed(self, k: int) -> None:
        """Another folder is renamed to the name."""
        self._plain()
        shutil.copytree(self.root / f"v{k}", self.root / "next")
        os.rename(self.folder, self.root / "before")
        os.rename(self.root / "next", self.folder)
        shutil.rmtree(self.root / "before")

    def longer(self, k: int) -> None:
        """Unused bytes follow the weights."""
        self.renamed(k)
        with open(self.folder / "model.bin", "ab") as file:
            file.write(bytes(k + 1))

    def mounted(self, k: int) -> None:
        """Mount another folder over it. Raises OSError without the privilege."""
        self._plain()
        done = subprocess.run(["mount", "--bind", self.root / f"v{k}", self.folder], capture_output=True, check=False)
        if done.returncode:
            raise PermissionError(done.stderr.decode())
        self._mounted = True

    def _plain(self, *, own: bool = False) -> None:
        """Restore a plain folder with files; with `own`, with inodes that no other version shares."""
        self._unmount()
        files = [self.folder / name for name in ("model.xml", "model.bin")]
        shared = own and any(f.is_symlink() or f.stat().st_nlink > 1 for f in files if f.exists())
        if self.folder.is_symlink() or shared:
            self._fresh()

    def _fresh(self) -> None:
        if self.folder.is_symlink():
            self.folder.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.root / "v0", self.folder)

    def _unmount(self) -> None:
        if self._mounted:
            subprocess.run(["umount", "-l", self.folder], check=True)
            self._mounted = False


ATOMIC: tuple[Callable[[Changing, int], None], ...] = (
    Changing.renamed,
    Changing.linked_hard,
    Changing.linked,
    Changing.folder_linked,
)
OTHERS: tuple[Callable[[Changing, int], None], ...] = (
    Changing.in_place,
    Changing.mapped,
    Changing.removed,
    Changing.folder_renamed,
    Changing.longer,
)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    os.utime(path, ns=(WHEN, WHEN))
