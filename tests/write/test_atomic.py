"""Files are replaced as a whole; devices and pipes are written to."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from irload.write.atomic import write_atomically

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names on Windows")


def test_a_failed_write_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError):
        write_atomically(path, lambda stream: stream.write(b"after") / 0)
    assert [f.name for f in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"before"
    write_atomically(path, lambda stream: stream.write(b"after"))
    assert path.read_bytes() == b"after"


@POSIX
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to(tmp_path: Path, linked: bool) -> None:
    pipe, path = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    path.symlink_to(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(path if linked else pipe, lambda stream: stream.write(b"contents"))
    reader.join()
    assert read == [b"contents"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert path.is_symlink()


@POSIX
def test_a_full_device_is_named(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    path = tmp_path / "full"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="full"):
        write_atomically(path, lambda stream: stream.write(b"contents"))
    assert path.is_symlink()
