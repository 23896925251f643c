"""JSON in the user's cache is read or ignored, without hanging or raising."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irload.plan.backends.llvm import peaks
from irload.plan.backends.numpy import tuning
from irload.safety import private_folder, private_json
from irload.safety.private_json import read_json, write_json

HOSTILE = {
    "deep": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000,
    "long number": b'{"a": [' + b"9" * 100_000 + b", 1, 1]}",
    "large number": b'{"a": [' + b"9" * 4000 + b", 1, 1]}",
    "infinite": b'{"a": [1e999, 1, 1]}',
    "no UTF-8": b'{"a": "\xff"}',
    "half a pair": b'{"a": {"b": "\\ud800"}}',
    "an array": b"[1, 2]",
    "values": b'{"a": {"b": [1]}, "c": -5}',
    "zeros": bytes(1000),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    return tmp_path / "peaks.json"


def test_written_json_is_read(file: Path) -> None:
    assert read_json(file) == {}
    assert write_json(file, {"a": [1.5]})
    assert read_json(file) == {"a": [1.5]}
    if hasattr(os, "geteuid"):
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content(file: Path, name: str) -> None:
    file.write_bytes(HOSTILE[name])
    (file.parent / "tuned.json").write_bytes(HOSTILE[name])
    assert isinstance(read_json(file), dict)
    assert peaks._read(peaks.peaks_file()) == {}
    entries = tuning._read(tuning.tuning_file())
    assert all(isinstance(kernel, str) for steps in entries.values() for kernel in steps.values())


def test_a_large_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_json, "LARGEST", 10)
    file.write_bytes(b'{"a": "too long"}')
    assert read_json(file) == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "writable"])
def test_untrusted_files_are_not_read(file: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(file, 0o600)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(b'{"a": 1}')
        if kind == "writable":
            file.chmod(0o666)
        else:
            os.rename(file, file.parent / "real")
            file.symlink_to("real")
    assert read_json(file) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes do not apply to other users")
def test_a_folder_that_others_may_write_to(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folder, "_warned", ["before"])
    assert write_json(file, {"a": 1})
    file.parent.chmod(0o777)
    assert read_json(file) == {}
    assert not write_json(file, {"a": 2})


def test_other_files_of_the_folder_stay(file: Path) -> None:
    other = file.parent / "large.json"
    other.write_bytes(bytes(1 << 21))
    assert write_json(file, {"a": 1})
    assert other.exists()
