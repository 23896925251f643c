"""The wheel installs the packages irload and irrun, the command, nothing else."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_only_irload_and_irrun_are_installed(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"irload", "irrun"}


def test_the_wheel_is_complete(wheel):
    names = set(wheel.namelist())
    for source, target in (("irload", "irload"), ("cli/irrun", "irrun")):
        for file in (ROOT / source).rglob("*"):
            if file.suffix in (".py", ".typed", ".toml", ".js", ".css", ".j2", ".txt"):
                assert f"{target}/{file.relative_to(ROOT / source).as_posix()}" in names


def test_command_licence_and_pythons(wheel):
    entry, metadata = (
        next(wheel.read(n).decode() for n in wheel.namelist() if n.endswith(suffix))
        for suffix in ("entry_points.txt", "/METADATA")
    )
    assert "irrun = irrun.start:main" in entry
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert any(n.endswith("licenses/LICENSE") for n in wheel.namelist())
    assert any("licenses" in n and n.endswith("vendor/LICENSES.txt") for n in wheel.namelist())
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_readme_names_every_dependency() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert all(d.partition(">")[0] in readme.replace("NumPy", "numpy") for d in needed)
    assert "nothing but NumPy" not in readme
    assert "changing its import" not in readme
