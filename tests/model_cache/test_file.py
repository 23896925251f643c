"""The file of a plan: a damaged or foreign file is not run."""

from __future__ import annotations

import os

import numpy as np
import pytest

import irload
from irload.model_cache import file as files
from irload.model_cache import models_folder
from irload.model_cache.cached import CachedModel
from irload.safety import private_folder
from tests.model_cache.conftest import image, write


def only():
    (path,) = models_folder().folder.iterdir()
    return path


def test_every_byte_counts(model):
    wanted = irload.compile_model(model)(image())[0]
    data = only().read_bytes()
    head = 24 + 32 + int.from_bytes(data[16:24], "little")
    places = {0, 16, 23, 30, 60, head - 1, len(data) - 1, len(data) - 9}
    for place in sorted(places | set(range(head, len(data), 97))):
        only().write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        compiled = irload.compile_model(model)
        assert type(compiled) is irload.CompiledModel, place
        assert only().read_bytes() == data, "a damaged file is written again"
        assert np.array_equal(compiled(image())[0], wanted)
    assert isinstance(irload.compile_model(model), CachedModel)


@pytest.mark.parametrize("change", [lambda d: b"", lambda d: d[:100], lambda d: d[:-1], lambda d: d + b"\0"])
def test_files_of_another_length(model, change):
    irload.compile_model(model)
    data = only().read_bytes()
    only().write_bytes(change(data))
    assert type(irload.compile_model(model)) is irload.CompiledModel
    assert only().read_bytes() == data


def test_the_file_of_another_model(model, tmp_path):
    irload.compile_model(model)
    first = only()
    irload.compile_model(write(tmp_path / "other", scale=3))
    (second,) = set(models_folder().folder.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert type(irload.compile_model(tmp_path / "other" / "model.xml")) is irload.CompiledModel


def test_files_that_others_may_write_to(model):
    irload.compile_model(model)
    only().chmod(0o666)
    assert type(irload.compile_model(model)) is irload.CompiledModel
    assert only().stat().st_mode & 0o777 == 0o600
    assert isinstance(irload.compile_model(model), CachedModel)


def test_a_folder_that_cannot_be_written(model, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(private_folder, "_warned", [])
    with pytest.warns(UserWarning, match="is not used: it cannot be written"):
        assert type(irload.compile_model(model)) is irload.CompiledModel
    assert type(irload.compile_model(model)) is irload.CompiledModel


def test_a_file_may_be_removed_during_use(model):
    irload.compile_model(model)
    compiled = irload.compile_model(model)
    wanted = compiled(image())[0]
    only().unlink()
    assert np.array_equal(compiled(image())[0], wanted)


@pytest.mark.parametrize(
    "sizes", [[], [0], [5], [8, 3], [files._CHUNK], [files._CHUNK - 1, 2], [3 * files._CHUNK + 5, 7]]
)
def test_chunks_are_all_bytes_in_order(sizes):
    rng = np.random.default_rng(1)
    parts = [rng.bytes(n) for n in sizes]
    chunks = list(files._chunks(parts))
    whole = b"".join(parts)
    assert b"".join(chunks)[: len(whole)] == whole
    assert all(len(c) == files._CHUNK for c in chunks[:-1])
    assert len(chunks[-1]) % 8 == 0
    assert 0 < len(chunks[-1]) <= files._CHUNK


def test_swapped_blocks_are_detected(tmp_path):
    """The constants of a plan are hashed in their order, so that blocks swapped within a megabyte count as damage."""
    path = write(tmp_path / "wide", channels=3)
    irload.compile_model(path)
    data = bytearray(only().read_bytes())
    start = len(data) - 32 - 128
    data[start : start + 64], data[start + 64 : start + 128] = data[start + 64 : start + 128], data[start : start + 64]
    only().write_bytes(data)
    assert type(irload.compile_model(path)) is irload.CompiledModel


def test_a_file_of_another_user_with_true_hashes(model, monkeypatch, tmp_path):
    """A file of the right format, key and code, but with the secret of another user."""
    irload.compile_model(model)
    wanted = only().read_bytes()
    ours = os.environ["IRLOAD_CACHE_DIR"]
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "theirs"))
    irload.compile_model(model)
    forged = only().read_bytes()
    monkeypatch.setenv("IRLOAD_CACHE_DIR", ours)
    assert forged != wanted
    only().write_bytes(forged)
    assert type(irload.compile_model(model)) is irload.CompiledModel


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_a_fifo_in_the_cache_does_not_block(model):
    irload.compile_model(model)
    path = only()
    path.unlink()
    os.mkfifo(path, 0o600)
    assert type(irload.compile_model(model)) is irload.CompiledModel
    assert isinstance(irload.compile_model(model), CachedModel), "it is replaced"
