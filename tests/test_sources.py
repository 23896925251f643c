"""The stamp of irload's sources is computed at load time, and a process with replaced sources caches nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import irload
from irload import sources
from tests.model_cache.conftest import write

FOLDER = Path(irload.__file__).parent
PROGRAM = """
import sys, numpy as np, irload
irload.compile_model(irload.read_model(sys.argv[1]), 1, jit=False)
print("loaded", flush=True)
sys.stdin.readline()
compiled = irload.compile_model(sys.argv[1], 1)
print(type(compiled).__name__, float(compiled(np.ones((2, 3, 9, 9), np.float32))[0].ravel()[40]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "package"
    (path / "below").mkdir(parents=True)
    for name in ("a.py", "below/b.py", "below/c.txt"):
        (path / name).write_text("number = 1\n", encoding="utf-8")
    return path


def test_unchanged_sources_have_one_stamp() -> None:
    assert sources.unchanged()
    assert sources.unchanged("plan", "backends", "llvm")
    assert sources.stamp() == sources.stamp()
    assert sources.stamp("plan", "backends", "llvm") != sources.stamp()


def test_files_are_compared_again_after_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sources.unchanged()
    monkeypatch.setattr(sources, "_scan", lambda _: {})
    assert sources.unchanged(), "nothing in memory has changed"
    monkeypatch.setitem(sys.modules, "irload.imported_later", sources)
    assert not sources.unchanged()
    assert not sources.unchanged()


def test_sources_alone_count(folder: Path) -> None:
    assert sorted(os.path.basename(path) for path in sources._scan(str(folder))) == ["a.py", "b.py"]


@pytest.mark.parametrize("how", ["written", "written with its times", "replaced", "added", "removed"])
def test_each_change_is_reported(folder: Path, how: str) -> None:
    before = sources._scan(str(folder))
    file = folder / "below" / "b.py"
    status = file.stat()
    if how == "removed":
        file.unlink()
    elif how == "added":
        (folder / "d.py").write_bytes(b"")
    elif how == "replaced":
        shutil.copy2(file, folder / "new")
        os.replace(folder / "new", file)
    else:
        file.write_text("number = 2\n", encoding="utf-8")
        if how == "written with its times":
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sources._scan(str(folder)) != before


def test_a_stamp_is_of_times_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.stamp()
    name, state = next(iter(sources._loaded.items()))
    for k, counts in ((0, True), (1, True), (2, False), (3, False)):
        other = tuple(n + (i == k) for i, n in enumerate(state))
        monkeypatch.setattr(sources, "_loaded", {**sources._loaded, name: other})
        assert (sources.stamp() != before) == counts
        monkeypatch.undo()
    monkeypatch.setattr(sources, "_installed", b"what pip wrote down")
    assert sources.stamp() != before


def test_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "irload.zip"
    archive.write_bytes(b"1")
    before = sources._scan(str(archive / "irload" / "plan"))
    assert list(before) == [str(archive)]
    archive.write_bytes(b"22")
    assert sources._scan(str(archive / "irload" / "plan")) != before
    assert sources._scan(str(tmp_path / "missing" / "irload")) == {}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", ["in place", "replaced"])
def test_a_process_started_before_an_upgrade_caches_nothing(tmp_path: Path, way: str) -> None:
    """The new version doubles all weights."""
    pytest.importorskip("llvmlite")
    shutil.copytree(FOLDER, tmp_path / "lib" / "irload", ignore=shutil.ignore_patterns("__pycache__"))
    model = str(write(tmp_path / "model"))
    environment = {
        **{k: v for k, v in os.environ.items() if k not in ("IRLOAD_JIT", "IRLOAD_MODEL_CACHE")},
        "PYTHONPATH": str(tmp_path / "lib"),
        "IRLOAD_CACHE_DIR": str(tmp_path / "cache"),
    }

    def begin() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, model]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        begun = subprocess.Popen(command, env=environment, text=True, cwd=tmp_path, **pipes)
        assert begun.stdout is not None
        assert begun.stdout.readline() == "loaded\n"
        return begun

    old = begin()
    file = tmp_path / "lib" / "irload" / "read" / "weights.py"
    text = file.read_text(encoding="utf-8")
    line = "        raw = self.raw(offset, size)\n"
    assert text.count(line) == 1
    new = text.replace(line, line + "        raw = (raw.view(np.float32) * np.float32(2)).view(np.uint8)\n")
    if way == "replaced":
        file.unlink()
    file.write_text(new, encoding="utf-8")
    kind, before = old.communicate("\n")[0].split()
    assert kind == "CompiledModel"
    assert not list((tmp_path / "cache" / "models").glob("*"))
    for expected in ("CompiledModel", "CachedModel"):
        kind, after = begin().communicate("\n")[0].split()
        assert kind == expected
        assert float(after) == pytest.approx(2 * float(before), rel=1e-5)
