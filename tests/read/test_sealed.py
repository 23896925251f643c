"""Weights with a fingerprint: each range that is read has the hashed contents."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from irload.errors import ReadError
from irload.read.sealed import SealedWeights
from irload.safety import fingerprint as fingerprints
from irload.safety.fingerprint import BLOCK
from irload.safety.limits import DEFAULT, Limits
from irload.safety.opened import ModelFiles, WeightsFile, open_model

pytest.importorskip("xxhash")
SIZE = 5 * BLOCK + 1000


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "model.xml").write_bytes(b"<net/>")
    (tmp_path / "model.bin").write_bytes(np.random.default_rng(1).bytes(SIZE))
    return tmp_path / "model.xml"


def opened(model: Path, largest: int = SIZE) -> WeightsFile:
    files = open_model(model, DEFAULT, lambda xml: largest)
    assert files is not None
    assert files.weights is not None
    return files.weights


def digest(model: Path) -> str:
    file = opened(model)
    file.close()
    return file.seal.digest


RANGES = [(0, SIZE), (0, 0), (0, 1), (SIZE - 1, 1), (BLOCK - 1, 2), (BLOCK, BLOCK), (3, 2 * BLOCK), (SIZE, 0)]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("offset", "size"), RANGES)
def test_every_range_equals_the_file(model: Path, offset: int, size: int, closed: bool) -> None:
    file = opened(model)
    weights = SealedWeights(file, DEFAULT)
    if closed:
        file.close()
    data = model.with_suffix(".bin").read_bytes()
    assert weights.raw(offset, size).tobytes() == data[offset : offset + size]
    file.close()


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, SIZE - 1])
def test_every_byte_counts(model: Path, place: int) -> None:
    before = digest(model)
    file = opened(model)
    beside = model.with_suffix(".bin")
    status = os.stat(beside)
    data = bytearray(beside.read_bytes())
    data[place] ^= 1
    with open(beside, "r+b") as stream:
        stream.write(data)
    os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest(model) != before
    weights = SealedWeights(file, DEFAULT)
    with pytest.raises(ReadError, match=r"model\.bin has changed since it was opened"):
        weights.raw(place, 1)
    other = (place + 2 * BLOCK) % SIZE
    assert weights.raw(other, 1)[0] == data[other], "other blocks are unchanged"
    file.close()


def test_swapped_blocks_change_the_digest(model: Path) -> None:
    before = digest(model)
    data = model.with_suffix(".bin").read_bytes()
    model.with_suffix(".bin").write_bytes(data[BLOCK : 2 * BLOCK] + data[:BLOCK] + data[2 * BLOCK :])
    assert digest(model) != before


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: b""])
def test_another_length(model: Path, change) -> None:
    before = digest(model)
    file = opened(model)
    data = change(model.with_suffix(".bin").read_bytes())
    model.with_suffix(".bin").write_bytes(data)
    later = open_model(model, DEFAULT, lambda xml: SIZE + 1)
    assert later is not None
    assert later.weights is not None
    assert later.weights.seal.digest != before
    later.close()
    if len(data) < SIZE:
        with pytest.raises(ReadError):
            SealedWeights(file, DEFAULT).raw(SIZE - 1, 1)
    file.close()


def test_the_open_file_outlives_its_name(model: Path) -> None:
    file = opened(model)
    weights = SealedWeights(file, DEFAULT)
    wanted = model.with_suffix(".bin").read_bytes()
    model.with_suffix(".new").write_bytes(bytes(SIZE))
    os.replace(model.with_suffix(".new"), model.with_suffix(".bin"))
    assert weights.raw(0, 10).tobytes() == wanted[:10]
    file.close()
    with pytest.raises(ReadError, match="has changed"):
        weights.raw(10, 10)


def test_the_secret_seeds_the_hash(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = opened(model)
    monkeypatch.setattr(fingerprints, "kept_secret", lambda: bytes(32))
    after = opened(model)
    assert before.seal.blocks != after.seal.blocks
    before.close()
    after.close()


def test_models_that_are_not_opened(model: Path, tmp_path: Path) -> None:
    assert open_model(model, DEFAULT, lambda xml: SIZE - 1) is None
    assert open_model(model, Limits(xml_bytes=5), lambda xml: SIZE) is None
    assert open_model(tmp_path / "missing.xml", DEFAULT, lambda xml: SIZE) is None
    assert open_model(Path("a\0b.xml"), DEFAULT, lambda xml: SIZE) is None
    model.with_suffix(".bin").unlink()
    files = open_model(model, DEFAULT, lambda xml: SIZE)
    assert isinstance(files, ModelFiles)
    assert files.weights is None
    model.with_suffix(".bin").mkdir()
    assert open_model(model, DEFAULT, lambda xml: SIZE) is None


def test_a_file_that_grows_while_it_is_hashed(model: Path) -> None:
    descriptor = os.open(model.with_suffix(".bin"), os.O_RDONLY)
    assert fingerprints.fingerprint(descriptor, SIZE - 1) is None
    os.close(descriptor)
