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
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectCache:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    return ObjectCache(tmp_path / "kernels")


def compiles(cache: ObjectCache, kernel: Fill | None = None) -> int:
    """How many kernels a process with this cache compiles for one kernel."""
    library = libraries.Library(cache)
    assert library.code(kernel or Fill(1), AVX2).address
    return library.compiled


def only(cache: ObjectCache) -> Path:
    (file,) = cache.folder.iterdir()
    return file


def test_a_kernel_is_compiled_once(cache: ObjectCache) -> None:
    assert compiles(cache) == 1
    assert compiles(cache) == 0
    assert compiles(cache, Fill(2)) == 1
    library = libraries.Library(cache)
    assert library.code(Fill(1), AVX2) is library.code(Fill(1), AVX2)


def test_files_are_private(cache: ObjectCache) -> None:
    compiles(cache)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert only(cache).stat().st_mode & 0o077 == 0


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
def test_a_damaged_object_is_compiled_again(cache: ObjectCache, damage) -> None:
    compiles(cache)
    good = only(cache).read_bytes()
    only(cache).write_bytes(damage(good))
    assert compiles(cache) == 1
    assert only(cache).read_bytes() == good
    assert compiles(cache) == 0


def test_an_object_of_another_key_is_compiled_again(cache: ObjectCache) -> None:
    compiles(cache, Fill(1))
    first = only(cache)
    compiles(cache, Fill(2))
    (second,) = set(cache.folder.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert compiles(cache, Fill(2)) == 1


def test_an_object_that_cannot_be_loaded_is_compiled_again(cache: ObjectCache) -> None:
    library = libraries.Library(cache)
    library.code(Fill(1), AVX2)
    key = f"{libraries._generator()} {AVX2!r} {Fill(1)!r}"
    assert cache.find(key) is not None
    cache.store(key, b"\x7fELF of another kind, with a digest that is right")
    assert compiles(cache) == 1


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reasons why the cache is not used. The first entry suppresses the warning, which another test covers."""
    reasons = ["of another test"]
    monkeypatch.setattr(private_folder, "_warned", reasons)
    return reasons


@pytest.mark.usefixtures("warned")
def test_objects_writable_by_others_are_not_read(cache: ObjectCache) -> None:
    compiles(cache)
    for path in (cache.folder.parent, cache.folder, only(cache)):
        mode = path.stat().st_mode & 0o777
        for writable in (0o020, 0o002):
            path.chmod(mode | writable)
            assert compiles(cache) == 1
            path = only(cache) if path.is_file() else path
            path.chmod(mode)
            assert compiles(cache) == 0


@pytest.mark.usefixtures("warned")
def test_objects_of_other_users_are_not_read(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(cache)
    monkeypatch.setattr(trusted, "_ROOT", -1)
    monkeypatch.setattr(trusted.os, "geteuid", lambda: os.getuid() + 1)
    before = only(cache).stat().st_mtime_ns
    assert compiles(cache) == 1
    assert only(cache).stat().st_mtime_ns == before, "a folder of another user stays empty"


def test_an_object_with_a_digest_of_another_user(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(cache)
    path = only(cache)
    good = path.read_bytes()
    with monkeypatch.context() as other:
        other.setenv("IRLOAD_CACHE_DIR", str(cache.folder.parent / "theirs"))
        key = f"{libraries._generator()} {AVX2!r} {Fill(1)!r}"
        path.write_bytes(caches._digest(key, good[32:]) + good[32:])
    assert compiles(cache) == 1
    assert path.read_bytes() == good


def test_a_process_with_replaced_sources_caches_nothing(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "unchanged", lambda *_: False)
    assert [compiles(cache), compiles(cache)] == [1, 1]


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = ObjectCache(tmp_path / "file" / "kernels")
    assert compiles(cache) == 1
    assert compiles(cache) == 1
    assert cache.contents().count == 0


def test_a_disk_that_is_full(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_folder, "replace", full)
    assert compiles(cache) == 1
    assert list(cache.folder.iterdir()) == []


def test_the_oldest_objects_are_evicted_first(cache: ObjectCache) -> None:
    for k in range(5):
        cache.store(str(k), bytes(1000))
        os.utime(cache.folder / f"{caches._name(str(k))}.o", (k + 1000, k + 1000))
    os.utime(cache.folder / f"{caches._name('0')}.o", (9000, 9000))
    cache.trim(3 * 1032)
    assert [cache.find(str(k)) is not None for k in range(5)] == [True, False, False, True, True]
    assert cache.contents().nbytes == 3 * 1032


def test_reading_makes_an_object_young(cache: ObjectCache) -> None:
    cache.store("a", b"1")
    path = only(cache)
    os.utime(path, (1000, 1000))
    cache.find("a")
    assert path.stat().st_mtime > 1000


def test_the_size_is_watched_while_kernels_are_written(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_largest", 10 * 1032)
    for k in range(100):
        cache.store(str(k), bytes(1000))
        assert cache.contents().nbytes <= 10 * 1032
    assert cache.contents().count >= 8


def test_writers_of_single_objects_respect_the_size(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most processes compile only a few kernels each, so every one of them enforces the size limit."""
    monkeypatch.setattr(caches, "LARGEST", 10 * 1032)
    for k in range(30):
        ObjectCache(cache.folder).store(str(k), bytes(1000))
        assert cache.contents().nbytes <= 10 * 1032


def test_the_folder_is_listed_now_and_then(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []
    monkeypatch.setattr(cache, "trim", lambda *_, trim=cache.trim: (listed.append(1), trim(*_)))
    for k in range(200):
        cache.store(str(k), bytes(100_000))
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
    cache = ObjectCache()
    assert {path.suffix for path in cache.folder.iterdir()} == {".o"}
    assert cache.contents().count == 15  # including the interpreter of kernel tables
    assert [compiles(cache, Fill(k)) for k in range(1, 15)] == [0] * 14
