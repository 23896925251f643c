"""Which folders other users cannot change: every component of the path counts."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest

from irload.safety import private_folder, trusted
from irload.safety.private_folder import PrivateFolder
from irload.safety.trusted import distrust

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes do not apply to other users")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "cache" / "kernels"
    path.mkdir(parents=True)
    for each in (path, *path.parents[:2]):
        each.chmod(0o700)
    return path


def owned_by_others(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """As if another user were the owner, which only root could arrange."""
    foreign = {(s.st_dev, s.st_ino) for s in map(os.lstat, paths)}
    monkeypatch.setattr(trusted, "is_ours", lambda s: (s.st_dev, s.st_ino) not in foreign)


def test_a_private_path_is_trusted(folder: Path) -> None:
    assert distrust(folder) is None


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_component_that_others_may_write_to(folder: Path, mode: int, above: int) -> None:
    part = [folder, *folder.parents][above]
    part.chmod(mode)
    assert distrust(folder) == f"other users may write to {part} (chmod go-w {part} prevents it)"


@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_component_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch, above: int) -> None:
    part = [folder, *folder.parents][above]
    owned_by_others(monkeypatch, part)
    assert distrust(folder) == f"{part} belongs to another user"


def test_root_is_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = os.lstat("/")
    assert status.st_uid == 0
    monkeypatch.setattr(trusted.os, "geteuid", lambda: 4242)
    assert trusted.is_ours(status)


def test_sticky_folders_above(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in /tmp, others may add entries but cannot replace entries of this user."""
    above = folder.parent.parent
    above.chmod(0o1777)
    assert distrust(folder) is None
    owned_by_others(monkeypatch, folder.parent)
    assert distrust(folder) == f"{folder.parent} belongs to another user"


def test_a_sticky_folder_is_only_trusted_as_shared(folder: Path) -> None:
    folder.chmod(0o1777)
    assert distrust(folder) == f"other users may write to {folder} (chmod go-w {folder} prevents it)"
    assert distrust(folder, shared=True) is None


def test_links_are_checked_with_their_targets(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link"
    for target in (folder.parent, Path("home") / "cache", Path("home") / "cache" / "kernels" / ".."):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert distrust(link / "kernels") is None
        folder.parent.chmod(0o777)
        reason = f"other users may write to {folder.parent} (chmod go-w {folder.parent} prevents it)"
        assert distrust(link / "kernels") == reason
        folder.parent.chmod(0o700)
    owned_by_others(monkeypatch, link)
    assert distrust(link / "kernels") == f"{link} belongs to another user"


def test_a_folder_that_is_a_link(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert distrust(link) is None
    assert distrust(link, link=False) == f"{link} is a symbolic link"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "too many symbolic links" in (distrust(tmp_path / "a" / "kernels") or "")


@pytest.mark.parametrize("name", ["missing", "file", "file/below"])
def test_paths_other_than_folders_are_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=name.split("/")[0]):
        distrust(tmp_path / name)


def test_one_warning_with_the_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folder, "_warned", [])
    folder.parent.chmod(0o777)
    kept = PrivateFolder("kernels", ".o", 100, folder)
    with pytest.warns(
        UserWarning, match="the cache .*/kernels is not used: other users may write to .*/home/cache .*IRLOAD_CACHE_DIR"
    ):
        assert kept.open("a") is None
    assert not kept.write("a", [b"1"])
    assert kept.contents().count == 0, "and no further warning"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("chosen", [True, False])
def test_a_chosen_cache_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: bool
) -> None:
    monkeypatch.setattr(private_folder, "_warned", [])
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.delenv("IRLOAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("IRLOAD_CACHE_DIR" if chosen else "XDG_CACHE_HOME", str(file))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not PrivateFolder("kernels", ".o", 100).write("a", [b"1"])
        assert not PrivateFolder("models", ".plan", 100).write("a", [b"1"])
    said = [str(w.message) for w in caught]
    if chosen:
        assert len(said) == 1
        assert re.fullmatch(rf"the cache {file} is not used: it cannot be written \(.+\); IRLOAD_CACHE_DIR .*", said[0])
    else:
        assert said == [], "a user without a writable home cannot change that"


def test_a_missing_folder_is_created_private(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        kept = PrivateFolder("", ".o", 100, tmp_path / "a" / "b")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kept.open("x") is None
            assert kept.write("x", [b"1"])
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


def test_no_folder_is_created_below_an_untrusted_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folder, "_warned", ["before"])
    folder.chmod(0o777)
    assert not PrivateFolder("", ".o", 100, folder / "deep" / "er").write("x", [b"1"])
    assert list(folder.iterdir()) == []


def test_links_inside_the_cache_are_not_followed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_folder, "_warned", ["before"])
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(folder.parent))
    kept = PrivateFolder("kernels", ".o", 100)
    assert kept.write("x", [b"1"])
    os.rename(folder, tmp_path / "real")
    (tmp_path / "real" / "y.o").symlink_to("x.o")
    folder.symlink_to(tmp_path / "real")
    assert kept.open("x") is None
    kept.clear()
    assert (tmp_path / "real" / "x.o").exists(), "the target of a link is not cleared"
    folder.unlink()
    os.rename(tmp_path / "real", folder)
    assert kept.open("y") is None
    file = kept.open("x")
    assert file is not None
    file.close()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_files_that_others_may_write(folder: Path, mode: int) -> None:
    kept = PrivateFolder("", ".o", 100, folder)
    assert kept.write("x", [b"1"])
    (folder / "x.o").chmod(mode)
    assert kept.open("x") is None


def test_files_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = PrivateFolder("", ".o", 100, folder)
    assert kept.write("x", [b"1"])
    inode = (folder / "x.o").stat().st_ino
    monkeypatch.setattr(private_folder, "is_ours", lambda s: s.st_ino != inode)
    assert kept.open("x") is None
