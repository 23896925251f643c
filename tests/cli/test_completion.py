"""Names in a model that contain shell code: completion inserts them literally, or omits them."""

from __future__ import annotations

import html
import os
import select
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from tests.cli.conftest import MODELS, irrun_process

CODE = "$(touch TOUCHED)"
NAMES = (
    f"conv{CODE}",
    "conv`touch TOUCHED`",
    "conv;touch TOUCHED",
    f"conv'{CODE}'",
    f'conv"{CODE}"',
    f"conv\\{CODE}",
    f"conv:{CODE}",
    f"conv={CODE}",
    "conv|touch TOUCHED",
    "conv b",
    "conv*",
)

POWERSHELL = [("powershell", "conv", None)] if get_completion_class("powershell") else []
"""PowerShell, if click is recent enough to support its completion."""


def named(folder: Path, *names: str) -> Path:
    """A model with a layer for each of the names."""
    text = (MODELS / "conv_openvino" / "model.xml").read_text(encoding="utf-8")
    relu = '<layer id="9{}" name="{}" type="ReLU" version="opset1"/>'
    others = "".join(relu.format(k, html.escape(name)) for k, name in enumerate(names[1:]))
    text = text.replace('name="conv"', f'name="{html.escape(names[0])}"', 1).replace(
        "</layers>", f"{others}</layers>", 1
    )
    (folder / "m.xml").write_text(text, encoding="utf-8")
    return folder / "m.xml"


def offered(model: Path, typed: str, shell: str, current: str | None = None) -> list[str]:
    """The answer of `irrun` to the script of a shell; with `current` to our script of bash."""
    line = f"irrun inspect {model} --layer {typed}"
    variables = {
        "COMP_WORDS": line,
        "_IRRUN_COMPLETE": f"{shell}_complete",
        "COMP_CWORD": "4" if shell != "fish" else typed,
    }
    variables |= {} if current is None else {"IRRUN_COMP_CURRENT": current}
    shown = irrun_process(**variables)
    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    return lines[1::3] if shell in ("zsh", "powershell") else [entry.split(",", 1)[1].split("\t")[0] for entry in lines]


def test_bash_gets_words_that_mean_the_name(tmp_path):
    for completion, name in zip(offered(named(tmp_path, *NAMES), "conv", "bash", "conv"), NAMES, strict=True):
        assert shlex.split(completion) == [name]
        assert all(completion[k - 1] == "\\" for k, c in enumerate(completion) if c in "$`;'\"*|:= ")


@pytest.mark.parametrize(
    ("shell", "typed", "current"),
    [("bash", "conv", None), ("bash", "'conv", "conv"), ("bash", '"conv', "conv"), *POWERSHELL],
)
def test_names_that_cannot_be_quoted_are_not_offered(tmp_path, shell, typed, current):
    """The script of click, which may be saved in a file, and open quotes do not support backslashes."""
    assert offered(named(tmp_path, *NAMES, "conv1:0"), typed, shell, current) == ["conv1:0"]


def test_bash_completes_the_part_after_a_colon(tmp_path):
    model = named(tmp_path, "conv:0/a", "conv:0/b c", "conv1")
    assert offered(model, "conv:0", "bash", "0") == ["0/a", "0/b\\ c"]


def test_types_of_layers_cannot_add_entries(tmp_path):
    model = named(tmp_path, "conv")
    text = model.read_text(encoding="utf-8").replace('type="Convolution"', f'type="A&#10;plain&#10;{CODE}&#10;_"')
    model.write_text(text, encoding="utf-8")
    assert offered(model, "con", "zsh") == ["conv"]


SHELLS = {
    "bash": (["--norc", "-i"], ['eval "$(_IRRUN_COMPLETE=bash_source irrun)"']),
    "zsh": (["-f", "-i"], ["autoload -U compinit; compinit -u", 'eval "$(_IRRUN_COMPLETE=zsh_source irrun)"']),
    "fish": (["--no-config", "-i"], ["_IRRUN_COMPLETE=fish_source irrun | source"]),
}


class Terminal:
    """A shell on a separate terminal, in a folder."""

    def __init__(self, shell: str, folder: Path) -> None:
        import pty

        command = folder / "bin" / "irrun"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m irrun "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        options, setup = SHELLS[shell]
        child, self.file = pty.fork()
        if not child:  # pragma: no cover - another process
            variables = {**os.environ, "HOME": str(folder), "PS1": "$ ", "TERM": "dumb"}
            variables["PATH"] = f"{command.parent}:{os.environ['PATH']}"
            os.chdir(folder)
            os.execvpe(shell, [shell, *options], variables)
        self.child = child
        for line in setup:
            self.type(f"{line}; echo REA''DY\n", "READY")

    def type(self, text: str, awaited: str, seconds: float = 900) -> str:
        """Type a text, and read until something appears."""
        os.write(self.file, text.encode())
        shown, until = "", time.monotonic() + seconds
        while awaited not in shown and time.monotonic() < until:
            if select.select([self.file], [], [], 0.1)[0]:
                shown += os.read(self.file, 65536).decode(errors="replace")
        return shown

    def close(self) -> None:
        os.close(self.file)
        os.waitpid(self.child, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX terminals")
@pytest.mark.parametrize(
    "shell", [s if shutil.which(s) else pytest.param(s, marks=pytest.mark.skip(f"no {s}")) for s in SHELLS]
)
def test_a_completed_name_runs_no_code(tmp_path, shell):
    named(tmp_path, f"conv{CODE}")
    terminal = Terminal(shell, tmp_path)
    try:
        shown = terminal.type("irrun inspect m.xml --layer conv\t", "TOUCHED")
        assert "TOUCHED" in shown  # the name was completed
        shown = terminal.type("\n", "Convolution opset1")
        assert "Convolution opset1" in shown  # and irrun resolves it
    finally:
        terminal.close()
    assert not (tmp_path / "TOUCHED").exists()
