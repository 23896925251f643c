"""Hostile data sets from a seed: names, links, FIFOs, damaged and unusual files, tables of every type."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.batch.models import fixed, identity

NAMES: tuple[bytes, ...] = (
    b"a", b"b c", "é".encode(), b"caf\xe9", b"\xff\xfe", b"a=b", b"-x", b"@list", b"[x]", b"*", b"%s%n", b"#0", b"a#1",
    b"line\nbreak", b"tab\t", "\u202egnp".encode(), b" lead", b"trail ", b"dots...", b"..a", b"con", b"quote\"'",
    b"back\\slash", b"$(id)", b"x" * 200, "名前".encode(), b"a.npy", b"a.npz", b".batch", b"manifest", b"input", b"NUL",
    b"~", b"{}", b"::error",
)  # fmt: skip


@dataclass(slots=True)
class Known:
    """The expected result of an item, by its name: the values of its samples, or None if it has to fail."""

    items: dict[str, np.ndarray | None] = field(default_factory=dict)


@dataclass(slots=True)
class DataSet:
    """A folder with inputs, a model, and matching arguments for `irrun batch`."""

    root: Path
    model: Path
    kind: str
    words: list[str]
    known: Known
    rng: random.Random

    def change(self) -> None:
        """Repair, damage, add or remove inputs."""
        if self.kind == "table":
            table(self)
            return
        for _ in range(self.rng.randint(1, 3)):
            files = sorted(self.known.items)
            if files and self.rng.random() < 0.6:
                path = self.rng.choice(files)
                if self.rng.random() < 0.3:
                    os.unlink(path)
                    del self.known.items[path]
                    continue
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
            else:
                path = _path(self)
                if path is None:
                    continue
            _write(self, path)


def make(root: Path, rng: random.Random) -> DataSet:
    """A data set below `root`."""
    kind = rng.choice(("arrays", "arrays", "images", "table", "table"))
    (root / "in").mkdir(parents=True)
    if kind == "images":
        model = identity(root / "m.xml", x=rng.choice(("?,3,6,8", "?,3,?,?", "1,3,6,8")))
    else:
        shapes = ("?,4", "1,4", "?,?")
        model = fixed(root / "m.xml", 3) if rng.random() < 0.1 else identity(root / "m.xml", x=rng.choice(shapes))
    dataset = DataSet(root, model, kind, [str(root / "in")], Known(), rng)
    if kind == "table":
        table(dataset)
        return dataset
    for _ in range(rng.randint(1, 14)):
        path = _path(dataset)
        if path is not None:
            _write(dataset, path)
    _strange(dataset)
    return dataset


def _path(dataset: DataSet) -> str | None:
    """A new path below the inputs, sometimes in a hostile folder."""
    rng, folder = dataset.rng, os.fsencode(dataset.root / "in")
    while rng.random() < 0.3 and len(folder) < 600:
        folder = os.path.join(folder, rng.choice(NAMES))
    suffix = rng.choice((b".png", b".PNG")) if dataset.kind == "images" else b".npy"
    path = os.path.join(folder, rng.choice(NAMES) + suffix)
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return None
    name = os.fsdecode(path)
    return None if os.path.lexists(path) or os.path.basename(name).startswith(".") else name


def _write(dataset: DataSet, path: str) -> None:
    rng = dataset.rng
    wanted = _image(dataset, path) if dataset.kind == "images" else _array(rng, path, dataset)
    dataset.known.items[path] = wanted
    if wanted is not None and rng.random() < 0.15:  # truncated
        size = os.path.getsize(path)
        os.truncate(path, rng.randrange(min(size, 40)))
        dataset.known.items[path] = None


def _array(rng: random.Random, path: str, dataset: DataSet) -> np.ndarray | None:
    good = np.array([[rng.randint(-9, 9) for _ in range(4)] for _ in range(rng.choice((1, 1, 2, 5)))], np.float32)
    dynamic = 'shape="?,?"' in dataset.model.read_text()
    kinds: list[Callable[[], tuple[object, np.ndarray | None]]] = [
        lambda: (good, good),
        lambda: (good, good),
        lambda: (good, good),
        lambda: (good[0], good[:1]),
        lambda: (good.astype(np.float64), good),
        lambda: (good.astype(np.int64), good),
        lambda: (np.asfortranarray(good), good),
        lambda: (good.astype(">f4"), good),
        lambda: (np.full((1, 4), 1e300), None),
        lambda: (good[:, :3], good[:, :3] if dynamic else None),
        lambda: (good[:0], None),
        lambda: (good[None, None], None),
        lambda: (np.array(["a", "b", "c", "d"]), None),
        lambda: (np.array([1j] * 4), None),
        lambda: (np.array([{}, 1, 2, 3], object), None),
    ]
    value, wanted = rng.choice(kinds)()
    with open(path, "wb") as stream:
        np.save(stream, value, allow_pickle=True)
    if rng.random() < 0.05:
        Path(path).write_bytes(rng.randbytes(rng.randrange(300)))
        return None
    return wanted


def _image(dataset: DataSet, path: str) -> np.ndarray | None:
    rng = dataset.rng
    size = (8, 6) if rng.random() < 0.7 else (rng.randint(1, 40), rng.randint(1, 40))
    pixels = np.frombuffer(rng.randbytes(size[0] * size[1] * 3), np.uint8).reshape(size[1], size[0], 3)
    image = Image.fromarray(pixels)
    mode = rng.choice(("RGB", "RGB", "L", "RGBA", "P", "1", "LA", "I;16", "F"))
    image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
    image.save(path, "TIFF" if mode == "F" else "PNG")
    if rng.random() < 0.05:
        bomb = io.BytesIO()
        Image.new("1", (30_000, 3_000)).save(bomb, "PNG")
        Path(path).write_bytes(bomb.getvalue())
        return None
    open_size = 'shape="?,3,?,?"' in dataset.model.read_text()
    if mode == "F" or (size != (8, 6) and not open_size):
        return None
    base = Image.fromarray(pixels[..., 0]) if mode == "I;16" else image
    return np.asarray(base.convert("RGB")).transpose(2, 0, 1)[None].astype(np.float32)


def _strange(dataset: DataSet) -> None:
    """Paths other than regular files: links (outward and cyclic, too), FIFOs, folders with the suffix of a file."""
    rng, folder = dataset.rng, dataset.root / "in"
    suffix = ".png" if dataset.kind == "images" else ".npy"
    outside = dataset.root / f"outside{suffix}"
    for kind in ("fifo", "dangling", "outside", "circle", "folder", "device"):
        path = str(folder / f"{kind}{suffix}")
        if rng.random() > 0.12:
            continue
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "dangling":
            os.symlink("nowhere", path)
        elif kind == "circle":
            os.symlink(folder, folder / "circle")
            continue
        elif kind == "folder":
            os.mkdir(path)
            continue
        elif kind == "device":
            os.symlink("/dev/zero", path)
        else:
            _write(dataset, str(outside))
            wanted = dataset.known.items.pop(str(outside))
            os.symlink(outside, path)
            dataset.known.items[path] = wanted
            continue
        dataset.known.items[path] = None


# -- tables ------------------------------------------------------------------------------------------------------------


def table(dataset: DataSet) -> None:
    """Write or replace a table, whose rows become known items."""
    rng = dataset.rng
    path = dataset.root / "in" / "rows.parquet"
    dataset.words, dataset.known = [str(path)], Known()
    count = rng.randint(0, 12)
    rows = [[float(rng.randint(-9, 9)) for _ in range(4)] for _ in range(count)]
    cells: list[object] = [None if rng.random() < 0.1 else row for row in rows]
    nested = rng.random() < 0.2
    cells = [[*c[:3], None] if c is not None and nested and rng.random() < 0.3 else c for c in cells]
    form = rng.choice(
        (pa.list_(pa.float64()), pa.list_(pa.float32(), 4), pa.large_list(pa.float32()), "struct", "text", "tensor")
    )
    if form == "struct":
        column = pa.array([None if c is None else {"shape": [4], "data": c} for c in cells])
    elif form == "text":
        column, cells = pa.array([str(c) for c in cells], pa.string()), [None] * count
    elif form == "tensor":
        storage = pa.array(cells, pa.list_(pa.float32(), 4))
        column = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [4]), storage)
    else:
        column = pa.array(cells, form)
    columns, names = [column], ["x"]
    for name in rng.sample(("id", "y", "input", "n", "n", "x_1", "", "é"), rng.randint(0, 5)):
        columns.append(_carried(rng, count))
        names.append(name)
    pq.write_table(pa.Table.from_arrays(columns, names), path, row_group_size=rng.choice((1, 3, 100)))
    if rng.random() < 0.07:
        os.truncate(path, rng.randrange(path.stat().st_size))
        dataset.known.items["?"] = None
        return
    for k, cell in enumerate(cells):
        bad = cell is None or None in cell
        dataset.known.items[f"{path}#{k}"] = None if bad else np.array([cell], np.float32)


def _carried(rng: random.Random, count: int) -> pa.Array:
    numbers = [None if rng.random() < 0.2 else rng.randint(-(2**62), 2**62) for _ in range(count)]
    types = (
        pa.int64(), pa.timestamp("ns"), pa.timestamp("us", tz="Nowhere/Land"), pa.timestamp("ms"), pa.duration("us"),
    )  # fmt: skip
    kind = rng.randrange(8)
    if kind < 3:
        return pa.array(numbers, pa.int64()).cast(rng.choice(types))
    if kind == 3:
        return pa.array([None if n is None else (n % 2**31) - 2**30 for n in numbers], pa.int32()).cast(pa.date32())
    if kind == 4:
        odd = (float("nan"), float("inf"), 1.5)
        return pa.array([None if n is None else odd[n % 3] for n in numbers], pa.float64())
    if kind == 5:
        return pa.array([None if n is None else rng.randbytes(3) for n in numbers], pa.binary())
    if kind == 6:
        nested = pa.list_(pa.struct({"a": pa.list_(pa.int64())}))
        return pa.array([None if n is None else [{"a": [n, None]}] for n in numbers], nested)
    texts = ("", 'a"b\n,', "\u202e", "é\0")
    return pa.array([None if n is None else texts[n % 4] for n in numbers], pa.string()).dictionary_encode()
