"""Environments of the clients, by uv, and processes in them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

from tests.clients.table import Client

__all__ = ["Failed", "prepared", "run"]

ROOT = Path(__file__).parents[2]
NEVER = "; sys_platform == 'never'"
WITHOUT = ("openvino", "openvino-tokenizers", "openvino-telemetry", "nncf")
SECONDS = 1200


class Failed(Exception):
    """A process of a client failed: its last lines."""


def prepared(client: Client, *, with_runtime: bool) -> Path:
    """The Python of an environment with the client and either OpenVINO or irload."""
    folder = ROOT / ".venv-clients" / f"{client.name}-{'runtime' if with_runtime else 'irload'}"
    python = folder / "bin" / "python"
    uv = which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        raise Failed("uv is missing; run `make test-clients`, which installs it")
    if not python.exists():
        _checked([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
    overrides = [client.runtime] if with_runtime else [name + NEVER for name in WITHOUT]
    extra = [client.runtime] if with_runtime else ["--editable", f"{ROOT}[jit]"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(overrides))
        listed.flush()
        install = [uv, "pip", "install", "--quiet", "--python", str(python), "--overrides", listed.name]
        _checked([*install, *client.requires, *extra])
    return python


def run(python: Path, script: Path, *arguments: Path | str, folder: Path) -> None:
    """Run a script in an environment. Raises Failed with the last lines of its output."""
    _checked([str(python), "-P", str(script), *map(str, arguments)], folder)


def _checked(command: list[str], folder: Path = ROOT) -> None:
    offline = {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | offline | {"YOLO_CONFIG_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode:
        last = "\n    ".join(done.stdout.splitlines()[-12:])
        raise Failed(f"{' '.join(command[:5])} … exits with {done.returncode}:\n    {last}")
