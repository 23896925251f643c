"""The user's secret: created once, private, and part of every digest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from irload.safety import private_folder, secret
from irload.safety.secret import kept_secret, keyed_digest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(secret, "_known", {})
    return tmp_path / "cache"


def in_a_new_process() -> bytes | None:
    secret._known.clear()
    return kept_secret()


def test_it_is_created_once(folder: Path) -> None:
    contents = in_a_new_process()
    assert contents is not None
    assert len(contents) == 32
    assert in_a_new_process() == contents
    assert [p.name for p in folder.iterdir()] == ["secret.key"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes do not apply to other users")
def test_other_users_cannot_read_it(folder: Path) -> None:
    first = in_a_new_process()
    assert (folder / "secret.key").stat().st_mode & 0o777 == 0o600
    (folder / "secret.key").chmod(0o640)
    assert in_a_new_process() not in (None, first), "others may have read the old one"
    assert (folder / "secret.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_a_damaged_secret_is_replaced(folder: Path, content: bytes) -> None:
    in_a_new_process()
    (folder / "secret.key").write_bytes(content)
    first = in_a_new_process()
    assert first is not None
    assert first == in_a_new_process()


def test_file_systems_without_links(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refused)
    first = in_a_new_process()
    assert first is not None
    assert first == in_a_new_process()
    assert [p.name for p in folder.iterdir()] == ["secret.key"]


def test_processes_that_start_together_have_one(folder: Path) -> None:
    program = "from irload.safety.secret import kept_secret; print(kept_secret().hex())"
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(6)]
    assert len({process.communicate()[0] for process in started}) == 1


def test_digests_depend_on_it_and_on_where_parts_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = keyed_digest(b"ab", b"c")
    assert first == keyed_digest(b"ab", b"c")
    assert first != keyed_digest(b"a", b"bc")
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(folder / "other"))
    assert first != keyed_digest(b"ab", b"c")


def test_without_a_folder_digests_are_valid_for_one_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folder, "_warned", ["before"])
    folder.write_bytes(b"no folder")
    assert kept_secret() is None
    assert keyed_digest(b"a") == keyed_digest(b"a")
    monkeypatch.setattr(secret, "_of_this_process", bytes(32))
    assert keyed_digest(b"a") != keyed_digest(b"b")
