"""Tests each branch for Windows or macOS on any system."""

from __future__ import annotations

import ctypes
import errno
import json
import ntpath
import os
import sys
import threading
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import numpy as np
import pytest

from irload import ReadError, read_model
from irload.batch import durable
from irload.checks import sarif
from irload.plan.backends.numpy import tuning
from irload.safety import files
from irload.safety.limits import machine_memory
from irload.system import portable
from irload.system.portable import file_name, physical_memory, read_at, replace
from irrun.app import PIPE_CLOSED
from irrun.main import UNREADABLE, main
from tests.cli.conftest import MODELS, irrun_process

# -- Windows -----------------------------------------------------------------------------------------------------------


def test_files_are_opened_as_binary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("O_NONBLOCK", "O_CLOEXEC"):
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(os, "O_BINARY", 0x8000, raising=False)
    monkeypatch.setattr(os, "O_NOINHERIT", 0x80, raising=False)
    assert portable._read_flags() == os.O_RDONLY | 0x8080


def test_special_files_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without O_NONBLOCK the open of a FIFO would block forever."""
    os.mkfifo(tmp_path / "model.xml")
    monkeypatch.setattr(files.os, "open", lambda *_: pytest.fail("was opened"))
    with pytest.raises(ReadError, match="a FIFO, expected a regular file"):
        read_model(tmp_path / "model.xml")


def test_reading_needs_no_name_that_windows_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pread", "preadv"):
        monkeypatch.delattr(os, name)
    file = tmp_path / "x"
    file.write_bytes(b"ab\r\ncd\x1aef")  # bytes that text mode would convert, and its end-of-file character
    descriptor = os.open(file, portable.READ_FLAGS)
    target = bytearray(8)
    assert read_at(descriptor, memoryview(target), 2) == 7
    assert read_at(descriptor, memoryview(target), 2) == 7  # the position does not matter
    assert bytes(target) == b"\r\ncd\x1aef\0"
    os.close(descriptor)


def test_replacing_waits_until_the_file_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refusals = os.replace, [1, 2]

    def busy(source: str, target: str) -> None:
        if refusals:
            refusals.pop()
            raise PermissionError(errno.EACCES, "Access is denied")
        real(source, target)

    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "replace", busy)
    monkeypatch.setattr(portable.time, "sleep", lambda _: None)
    replace(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "new"
    refusals.extend(range(9))
    with pytest.raises(PermissionError):
        replace(tmp_path / "b", tmp_path / "a")


def test_the_memory_of_a_windows_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def status(pointer: object) -> int:
        _obj = pointer._obj  # type: ignore[attr-defined]
        assert _obj.length == 64  # the size of MEMORYSTATUSEX
        _obj.total_physical = 3 << 30
        return 1

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=status)), False)
    assert physical_memory() == 3 << 30
    monkeypatch.delattr(ctypes, "windll")
    assert physical_memory() is None
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delattr(os, "sysconf")
    assert physical_memory() is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nul", "_nul"),
        ("CON.txt", "_CON.txt"),
        ("com1", "_com1"),
        ("lpt9.a.b", "_lpt9.a.b"),
        ("conv", "conv"),
        ("C:\\Windows\\x", "C_Windows_x"),
        ("a:b", "a_b"),
        ("..", "output_0"),
        ("x. . .", "x._._"),
        ("tail...", "tail"),
    ],
)
def test_names_that_windows_accepts(name: str, shown: str) -> None:
    file = file_name(name, "output_0")
    assert file == shown
    assert PureWindowsPath("C:/out", file).parent == PureWindowsPath("C:/out")
    reserved = getattr(ntpath, "isreserved", None) or (lambda path: PureWindowsPath(path).is_reserved())  # from 3.13 on
    assert not reserved(file)


def test_locations_in_sarif_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "Path", PureWindowsPath)
    assert sarif._uri("models\\a b.xml") == "models/a%20b.xml"
    assert sarif._uri("C:\\models\\a#b.xml") == "file:///C:/models/a%23b.xml"


def test_json_through_a_pipe_of_windows() -> None:
    """Pipes use the code page there; JSON does not."""
    outcome = irrun_process("inspect", MODELS / "digits/model.xml", "--json", PYTHONIOENCODING="cp1252")
    assert outcome.stdout.isascii()
    assert json.loads(outcome.stdout)["name"] == "digits"


def test_the_reader_of_a_pipe_leaves_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def left() -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    class Closed:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            return len(text)

        def flush(self) -> None:
            left()

        def fileno(self) -> int:
            raise OSError(errno.EBADF, "Bad file descriptor")

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["--version"]) == UNREADABLE
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["--version"]) == PIPE_CLOSED


def test_the_cache_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IRLOAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "/Users/me/AppData/Local")
    assert tuning.cache_folder() == Path("/Users/me/AppData/Local/irload")


def test_no_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    portable.after_fork_in_child(lambda: None)


# -- macOS -------------------------------------------------------------------------------------------------------------


def test_the_cache_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IRLOAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert tuning.cache_folder() == Path.home() / "Library/Caches/irload"


def test_reads_of_more_than_the_system_takes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MacOS fails on reads of 2 GB and more; Python splits them, and irload continues after a short read."""

    class Short(portable.FileIO):
        def readinto(self, target: memoryview, /) -> int:
            return super().readinto(target[:3])

    monkeypatch.setattr(portable, "FileIO", Short)
    file = tmp_path / "x"
    file.write_bytes(np.arange(20, dtype=np.uint8).tobytes())
    with file.open("rb") as stream:
        target = bytearray(10)
        assert read_at(stream.fileno(), memoryview(target), 5) == 10
    assert bytes(target) == bytes(range(5, 15))


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_without_syncfs_each_file_is_synced(platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert durable._syncfs() is None
    synced: list[int] = []
    monkeypatch.setattr(durable, "_SYNCFS", None)
    monkeypatch.setattr(os, "fsync", synced.append)
    files = [(tmp_path / "out" / str(k), b"x") for k in range(durable.SYNCFS_FROM + 1)]
    durable.write_files(tmp_path, files)
    assert len(synced) == len(files)
    assert all(path.read_bytes() == b"x" for path, _ in files)


def test_memory_without_a_reported_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the system nor a container reports it: there is no bound, and the run continues."""
    monkeypatch.setattr("irload.safety.limits.physical_memory", lambda: None)
    monkeypatch.setattr("builtins.open", _absent)
    machine_memory.cache_clear()
    try:
        assert machine_memory() is None
    finally:
        monkeypatch.undo()
        machine_memory.cache_clear()


def _absent(*_: object, **__: object) -> None:
    raise FileNotFoundError


def test_processors_without_an_affinity_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert portable.other_processors() == frozenset()
    portable.keep_to(threading.get_native_id(), frozenset({0}))
