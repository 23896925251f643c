"""Weights: ranges of the .bin file as arrays. Overlapping ranges share memory; a changed file is an error."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.tensor import owner_of
from irload.errors import LimitExceeded, OutOfMemory, ReadError
from irload.read import Weights
from irload.read import weights as module
from irload.safety.limits import Limits

BYTES = bytes(range(100))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "model.bin").write_bytes(BYTES)
    return tmp_path / "model.bin"


@pytest.mark.parametrize(
    ("offset", "size", "inside"),
    [
        *((0, 100, True), (0, 0, True), (100, 0, True), (99, 1, True), (0, 101, False), (100, 1, False)),
        *((101, 0, False), (-1, 1, False), (50, -1, False), (101, -1, False)),
    ],
)
@pytest.mark.parametrize("by", ["bytes", "path", "map"])
def test_ranges_inside_the_file(file: Path, offset: int, size: int, inside: bool, by: str) -> None:
    weights = Weights(BYTES) if by == "bytes" else Weights(file, mmap=by == "map")
    assert weights.size == 100
    if inside:
        weights.check(offset, size)
        assert weights.raw(offset, size).tobytes() == BYTES[offset : offset + size]
    else:
        with pytest.raises(ReadError, match=r"outside the \.bin file of 100 bytes"):
            weights.raw(offset, size)


@pytest.mark.parametrize("mmap", [False, True])
def test_an_empty_file_is_present(tmp_path: Path, mmap: bool) -> None:
    (tmp_path / "model.bin").touch()
    weights = Weights(tmp_path / "model.bin", mmap=mmap)
    assert (weights.present, weights.size, weights.raw(0, 0).size) == (True, 0, 0)
    assert (Weights(b"").present, Weights(None).present, Weights(None).size) == (True, False, 0)


@pytest.mark.parametrize(
    ("ranges", "whole"),
    [
        ([(0, 50), (50, 50)], False),
        ([(0, 50), (25, 50)], False),
        ([(0, 50), (25, 51)], True),
        ([(0, 50), (25, 50), (30, 1)], True),
        ([(0, 60), (30, 60)], True),
        ([(0, 50), (50, 50), (25, 50)], True),
        ([(0, 20), (0, 20), (0, 20), (0, 20), (0, 20), (0, 20)], False),
    ],
)
def test_overlapping_ranges_read_the_file_once(file: Path, ranges: Sequence[tuple[int, int]], whole: bool) -> None:
    weights = Weights(file)
    held = [weights.raw(offset, size) for offset, size in ranges]
    assert [a.tobytes() for a in held] == [BYTES[offset : offset + size] for offset, size in ranges]
    assert (owner_of(held[-1]).nbytes == 100) == whole


def test_ranges_that_were_dropped_do_not_count(file: Path) -> None:
    weights = Weights(file)
    kept = weights.raw(0, 50)
    for _ in range(5):
        assert owner_of(weights.raw(50, 50)).nbytes == 50
    assert weights.raw(0, 50) is kept


def test_live_ranges_are_counted_after_each_size_of_the_file(file: Path) -> None:
    weights = Weights(file)
    weights.raw(0, 50)
    assert owner_of(weights.raw(0, 51)).nbytes == 51  # 101 bytes read: the live arrays are counted; none is
    held = [weights.raw(0, 50), weights.raw(25, 50)]
    assert [owner_of(a).nbytes for a in held] == [50, 50]  # 100 bytes since that count: not counted again
    assert owner_of(weights.raw(30, 1)).nbytes == 100


STRINGS = bytes.fromhex("0400000000000000020000000300000003000000050000006162637a6f")
STORED: list[tuple[ElementType, bytes, int]] = [
    (et.f32, np.arange(6, dtype=np.float32).tobytes(), 6),
    (et.boolean, bytes([0, 1, 1, 0]), 4),
    (et.u4, bytes([0x21, 0x43, 0x65]), 6),
    (et.i4, bytes([0x21, 0xF3, 0x8E]), 6),
    (et.nf4, bytes([0x21, 0xF3]), 4),
    (et.u1, bytes([0b10110010]), 8),
    (et.string, STRINGS, 4),
]


@pytest.mark.parametrize("start", [0, 8, 9], ids=["first", "aligned", "misaligned"])
@pytest.mark.parametrize(("element", "raw", "count"), STORED, ids=[e.name for e, _, _ in STORED])
def test_every_shape_of_a_range_has_its_values(element: ElementType, raw: bytes, count: int, start: int) -> None:
    blob = bytes([0x77]) * start + raw + bytes([0x77]) * 5
    expected = Weights(raw).array(0, len(raw), element, (count,)).tolist()
    weights = Weights(blob)
    row = weights.array(start, len(raw), element, (count,))
    square = weights.array(start, len(raw), element, (2, count // 2))
    part = weights.array(start, len(raw), element, (2,)) if element is not et.string else row[:2]
    assert row.tolist() == expected
    assert square.reshape(-1).tolist() == expected
    assert part.tolist() == expected[:2]
    assert not square.flags.writeable
    assert weights.array(start, len(raw), element, (count,)) is row
    if element is not et.string:
        assert np.shares_memory(row, square), "unpacked once for all shapes"


def test_an_array_of_any_layout_is_read_in_row_major_order() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert Weights(values.T).array(0, 24, et.f32, (3, 2)).tolist() == values.T.tolist()
    assert Weights(np.full((), 3, np.float32)).array(0, 4, et.f32, ()).item() == 3


@pytest.mark.parametrize("part", [1, 7, 50, 99, 100, 101])
@pytest.mark.parametrize("keep", [False, True])
def test_the_digest_of_a_file(file: Path, monkeypatch: pytest.MonkeyPatch, part: int, keep: bool) -> None:
    monkeypatch.setattr(module, "PART", part)
    weights = Weights(file)
    assert weights.digest(keep=keep) == hashlib.sha256(BYTES).hexdigest()
    assert (owner_of(weights.raw(0, 1)).nbytes == 100) == keep
    assert Weights(BYTES).digest(keep=keep) == hashlib.sha256(BYTES).hexdigest()
    assert Weights(None).digest(keep=keep) is None


def test_a_kept_digest_is_that_of_the_bytes_that_are_used(file: Path) -> None:
    weights = Weights(file)
    weights.digest(keep=True)
    file.write_bytes(bytes(100))
    assert weights.raw(1, 2).tobytes() == BYTES[1:3]


@pytest.mark.parametrize("change", ["contents", "time", "shorter", "longer", "another file", "removed", "folder"])
def test_a_file_that_changes_after_it_was_opened(file: Path, change: str) -> None:
    weights = Weights(file)
    status = os.stat(file)
    if change in ("contents", "time"):
        file.write_bytes(BYTES[::-1] if change == "contents" else BYTES)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    elif change in ("shorter", "longer"):
        file.write_bytes(BYTES[:-1] if change == "shorter" else BYTES + b"x")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        file.rename(file.with_name("old"))
        if change == "another file":
            file.write_bytes(BYTES)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        elif change == "folder":
            file.mkdir()
    with pytest.raises(ReadError, match=r"model\.bin"):
        weights.raw(0, 1)


def test_a_range_that_the_system_has_no_memory_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = Weights(file)

    def refuse(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "empty", refuse)
    with pytest.raises(OutOfMemory, match="100 bytes of"):
        weights.raw(0, 100)


def test_a_file_that_cannot_be_mapped(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(19, "No such device")

    monkeypatch.setattr(module.mapping, "mmap", refuse)
    with pytest.raises(ReadError, match=r"cannot map .*model\.bin: No such device"):
        Weights(file, mmap=True)


def test_reading_is_limited_by_the_memory(file: Path) -> None:
    assert Weights(file, Limits(peak_bytes=10)).raw(0, 10).size == 10
    with pytest.raises(LimitExceeded, match="peak_bytes"):
        Weights(file, Limits(peak_bytes=10)).raw(0, 11)
