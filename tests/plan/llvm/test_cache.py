"""The cache of objects: a damaged object, or one that other users could have written, is compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from irload.plan.backends.llvm import cache as caches
from irload.plan.backends.llvm import library as libraries
from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.target import AVX2
from irload.safety import private_folder, trusted
from tests.plan.llvm.tiny import Fill

pytest.importorskip("llvmlite")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectCache:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    return ObjectCache(tmp_path / "kernels")


def compiles(kept: ObjectCache, kernel: Fill | None = None) -> int:
    """How many kernels a process with this cache compiles for one kernel."""
    library = libraries.Library(kept)
    assert library.code(kernel or Fill(1), AVX2).address
    return library.compiled


def only(kept: ObjectCache) -> Path:
    (file,) = kept.folder.iterdir()
    return file


def test_a_kernel_is_compiled_once(kept: ObjectCache) -> None:
    assert compiles(kept) == 1
    assert compiles(kept) == 0
    assert compiles(kept, Fill(2)) == 1
    library = libraries.Library(kept)
    assert library.code(Fill(1), AVX2) is library.code(Fill(1), AVX2)


def test_files_are_private(kept: ObjectCache) -> None:
    compiles(kept)
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    assert only(kept).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: bytes([data[0] ^ 1]) + data[1:],
    ],
    ids=["empty", "no digest", "truncated", "longer", "object changed", "digest changed"],
)
def test_a_damaged_object_is_compiled_again(kept: ObjectCache, damage) -> None:
    compiles(kept)
    good = only(kept).read_bytes()
    only(kept).write_bytes(damage(good))
    assert compiles(kept) == 1
    assert only(kept).read_bytes() == good
    assert compiles(kept) == 0


def test_an_object_of_another_key_is_compiled_again(kept: ObjectCache) -> None:
    compiles(kept, Fill(1))
    first = only(kept)
    compiles(kept, Fill(2))
    (second,) = set(kept.folder.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert compiles(kept, Fill(2)) == 1


def test_an_object_that_cannot_be_loaded_is_compiled_again(kept: ObjectCache) -> None:
    library = libraries.Library(kept)
    library.code(Fill(1), AVX2)
    key = f"{libraries._generator()} {AVX2!r} {Fill(1)!r}"
    assert kept.find(key) is not None
    kept.store(key, b"\x7fELF of another kind, with a digest that is right")
    assert compiles(kept) == 1


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reasons why the cache is not used. The first entry suppresses the warning, which another test covers."""
    reasons = ["of another test"]
    monkeypatch.setattr(private_folder, "_warned", reasons)
    return reasons


@pytest.mark.usefixtures("warned")
def test_objects_writable_by_others_are_not_read(kept: ObjectCache) -> None:
    compiles(kept)
    for path in (kept.folder.parent, kept.folder, only(kept)):
        mode = path.stat().st_mode & 0o777
        for writable in (0o020, 0o002):
            path.chmod(mode | writable)
            assert compiles(kept) == 1
            path = only(kept) if path.is_file() else path
            path.chmod(mode)
            assert compiles(kept) == 0


@pytest.mark.usefixtures("warned")
def test_objects_of_other_users_are_not_read(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(kept)
    monkeypatch.setattr(trusted, "_ROOT", -1)
    monkeypatch.setattr(trusted.os, "geteuid", lambda: os.getuid() + 1)
    before = only(kept).stat().st_mtime_ns
    assert compiles(kept) == 1
    assert only(kept).stat().st_mtime_ns == before, "a folder of another user stays empty"


def test_an_object_with_a_digest_of_another_user(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(kept)
    path = only(kept)
    good = path.read_bytes()
    with monkeypatch.context() as other:
        other.setenv("IRLOAD_CACHE_DIR", str(kept.folder.parent / "theirs"))
        key = f"{libraries._generator()} {AVX2!r} {Fill(1)!r}"
        path.write_bytes(caches._digest(key, good[32:]) + good[32:])
    assert compiles(kept) == 1
    assert path.read_bytes() == good


def test_a_process_with_replaced_sources_caches_nothing(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "unchanged", lambda *_: False)
    assert [compiles(kept), compiles(kept)] == [1, 1]


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    kept = ObjectCache(tmp_path / "file" / "kernels")
    assert compiles(kept) == 1
    assert compiles(kept) == 1
    assert kept.contents().count == 0


def test_a_disk_that_is_full(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_folder, "replace", full)
    assert compiles(kept) == 1
    assert list(kept.folder.iterdir()) == []


def test_the_oldest_objects_are_evicted_first(kept: ObjectCache) -> None:
    for k in range(5):
        kept.store(str(k), bytes(1000))
        os.utime(kept.folder / f"{caches._name(str(k))}.o", (k + 1000, k + 1000))
    os.utime(kept.folder / f"{caches._name('0')}.o", (9000, 9000))
    kept.trim(3 * 1032)
    assert [kept.find(str(k)) is not None for k in range(5)] == [True, False, False, True, True]
    assert kept.contents().nbytes == 3 * 1032


def test_reading_makes_an_object_young(kept: ObjectCache) -> None:
    kept.store("a", b"1")
    path = only(kept)
    os.utime(path, (1000, 1000))
    kept.find("a")
    assert path.stat().st_mtime > 1000


def test_the_size_is_watched_while_kernels_are_written(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_largest", 10 * 1032)
    for k in range(100):
        kept.store(str(k), bytes(1000))
        assert kept.contents().nbytes <= 10 * 1032
    assert kept.contents().count >= 8


def test_writers_of_single_objects_respect_the_size(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most processes compile only a few kernels each, so every one of them enforces the size limit."""
    monkeypatch.setattr(caches, "LARGEST", 10 * 1032)
    for k in range(30):
        ObjectCache(kept.folder).store(str(k), bytes(1000))
        assert kept.contents().nbytes <= 10 * 1032


def test_the_folder_is_listed_now_and_then(kept: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []
    monkeypatch.setattr(kept, "trim", lambda *_, trim=kept.trim: (listed.append(1), trim(*_)))
    for k in range(200):
        kept.store(str(k), bytes(100_000))
    assert len(listed) == 5, "at first, and for each 4 MB"


def test_two_processes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have the right code and leave complete files."""
    program = (
        "from tests.plan.llvm.tiny import Fill, filled\n"
        "for k in range(1, 15):\n"
        "    assert filled(Fill(k)).tolist() == [k] * 8\n"
    )
    environment = {**os.environ, "IRLOAD_CACHE_DIR": str(tmp_path)}
    processes = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(2)]
    assert [process.wait(1800) for process in processes] == [0, 0]
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    kept = ObjectCache()
    assert {path.suffix for path in kept.folder.iterdir()} == {".o"}
    assert kept.contents().count == 15  # including the interpreter of kernel tables
    assert [compiles(kept, Fill(k)) for k in range(1, 15)] == [0] * 14
