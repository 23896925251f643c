"""The command line as a whole: help, exit codes, error style, completion, pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import irload
from irrun import app, main
from tests.cli.conftest import MODELS, irrun_process

DIGITS = MODELS / "digits" / "model.xml"


def test_help_names_every_command_and_code(irrun):
    shown = irrun("--help")
    assert shown.code == 0
    assert all(name in shown.out for name in (*app.COMMANDS, "Exit codes", "130"))


def test_help_imports_little():
    """It imports about 90 modules in 0.05 s, which `make bench` measures."""
    imported = _imported(["--help"])
    assert not {"numpy", "lxml", "rich", "irload.core"} & imported
    assert 0 < len(imported) < 150


def test_help_of_commands_imports_neither_numpy_nor_models():
    assert not {"numpy", "lxml", "rich", "irload.core"} & _imported(*([name, "--help"] for name in app.COMMANDS))


def _imported(*command_lines: list[str]) -> set[str]:
    """The modules that a new process imports to run these command lines."""
    probe = "import sys; before = set(sys.modules); from irrun.main import main; "
    probe += f"[main(line) for line in {command_lines!r}]; print(*set(sys.modules) - before, file=sys.stderr)"
    shown = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(shown.stderr.split())


def test_version(irrun):
    assert irrun("--version").out == f"irrun {irload.__version__}\n"


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_has_help(irrun, command):
    shown = irrun(command, "--help")
    assert shown.code == 0
    assert "MODEL" in shown.out or command in ("cache", "generate")


XML = '<net name="m" version="11"><layers>{}</layers><edges>{}</edges></net>'
PARAMETER = (
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>'
    '<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>'
)
RESULT = '<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>'
EDGES = (
    '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
)


def layer(type: str, data: str = "") -> str:
    return (
        f'<layer id="1" name="[red]odd" type="{type}" version="opset1">{data}<input><port id="0"/></input>'
        '<output><port id="1" precision="FP32"/></output></layer>'
    )


@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        ("<foo/>", (), main.UNREADABLE, "expected <net>"),
        ("", (), main.UNREADABLE, ""),
        (XML.replace('"11"', '"9"').format("", ""), (), main.UNREADABLE, "version 9"),
        (XML.format(PARAMETER + layer("FooBar") + RESULT, EDGES), ("--random", "1"), main.UNSUPPORTED, "FooBar"),
        (XML.format(PARAMETER + layer("Add") + RESULT, EDGES), ("--random", "1"), main.FINDINGS, "'[red]odd'"),
        (XML.format(PARAMETER + layer("ReLU") + RESULT, EDGES), (), main.USAGE, "--random SEED"),
        (XML.format(PARAMETER + layer("ReLU") + RESULT, EDGES), ("y=none.npy",), main.USAGE, "no input 'y'"),
        (XML.format(PARAMETER + layer("ReLU") + RESULT, EDGES), ("none.npy",), main.UNREADABLE, "none.npy"),
        (XML.format(PARAMETER + layer("ReLU") + RESULT, EDGES), ("--random", "x"), main.USAGE, "--random"),
        (XML.format(PARAMETER + layer("ReLU") + RESULT, EDGES), ("--random", "1"), main.OK, ""),
    ],
)
def test_exit_codes(irrun, tmp_path, text, words, code, said):
    file = tmp_path / "model.xml"
    file.write_text(text)
    outcome = irrun("run", file, *words)
    assert outcome.code == code
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert (outcome.out != "") == (code == main.OK)


def test_errors_are_one_line_on_stderr(irrun, tmp_path):
    outcome = irrun("run", tmp_path / "missing.xml", "--random", "1")
    assert outcome.err.startswith("irrun: error: ")
    assert outcome.err.count("\n") == 1


def test_a_misspelt_command_is_not_treated_as_a_model(irrun):
    outcome = irrun("inspct", DIGITS)
    assert outcome.code == main.USAGE
    assert "Did you mean 'inspect'?" in outcome.err


@pytest.mark.parametrize("kind", [RuntimeError, EOFError])
def test_an_internal_error_shows_no_traceback(irrun, monkeypatch, kind):
    """An EOFError, for example of a truncated .pyc file, is not the end of a prompt."""

    def broken(*_: object, **__: object) -> None:
        raise kind("boom")

    monkeypatch.setattr("irload.loading.read_model", broken)
    monkeypatch.delenv("IRRUN_TRACEBACK", raising=False)
    outcome = irrun("run", DIGITS)
    assert outcome.code == main.INTERNAL
    assert f"internal error: {kind.__name__}: boom" in outcome.err
    assert "Traceback" not in outcome.err


def test_an_interrupt_exits_130(irrun, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("irload.loading.read_model", interrupted)
    outcome = irrun("run", DIGITS)
    assert outcome.code == main.INTERRUPTED
    assert "interrupted" in outcome.err


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX pipes")
def test_a_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    left = subprocess.run(
        [sys.executable, "-m", "irrun", "inspect", str(DIGITS), "--layers"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert left.returncode in (app.PIPE_CLOSED, -signal.SIGPIPE)
    assert left.stderr == b""


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(closed):
    command = f'"{sys.executable}" -m irrun infer "{DIGITS}" {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert ("23 layers" in done.stdout) == (">&-" not in closed.split())
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    assert "irrun" in irrun_process(_IRRUN_COMPLETE=f"{shell}_source").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [("irrun in", {"plain,inspect", "plain,infer"}), ("irrun model.xml --ra", {"plain,--random"})],
)
def test_completion_covers_commands_and_options(words, expected):
    count = str(len(words.split()) - 1)
    outcome = irrun_process(_IRRUN_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert expected <= set(outcome.stdout.split("\n"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("inspect", MODELS / "digits/model.xml", "--layer", "ima"), "image"),
        (("inspect", MODELS / "loop/model.xml", "--layer", "dou"), "doubled"),
        (("inspect", "none.xml", "--layer", "x"), None),
        (("inspect", "--layer", "x"), None),
        (("check", "--select", "IR40"), "IR401"),
        (("check", "--ignore", "IR7,ir50"), "IR7,IR501"),
        (("check", "--explain", "IR80"), "IR802"),
    ],
)
def test_names_of_layers_and_codes_of_rules_are_completed(words, expected):
    line = " ".join(["irrun", *map(str, words)])
    shown = irrun_process(_IRRUN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words)))
    assert shown.stderr == ""
    values = [entry.partition(",")[2] for entry in shown.stdout.split()]
    assert expected in values if expected else values == []


@pytest.mark.parametrize("command", app.COMMANDS)
def test_help_names_values_and_the_default_number_of_threads(irrun, command):
    shown = " ".join(irrun(command, "--help").out.split())
    assert " RANGE" not in shown
    assert ("--threads" in shown) == ("default: IRLOAD_NUM_THREADS, else all available processors." in shown)
