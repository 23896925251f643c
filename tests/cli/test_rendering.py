"""Rendering is the same for any terminal and any names in the model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from irrun.render import plain, safe, size_text
from tests.cli.conftest import MODELS, irrun_process

DIGITS = MODELS / "digits"
IMAGE = DIGITS / "digit_7_0.npy"
SCHEMAS = Path(__file__).parents[2] / "schemas"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("conv/1", "conv/1"),
        ("[red]x[/red]", r"\[red]x\[/red]"),
        ("a\nb\x9b31m\u202eabc", r"a\nb\x9b31m\u202eabc"),
        ("número/层", "número/层"),
    ],
)
def test_names_are_shown_literally(text, shown):
    assert safe(text) == shown


def test_plain_preserves_printable_text():
    assert plain("[bold]") == "[bold]"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (2 * 10**12, "2.0 TB")]
)
def test_sizes(count, text):
    assert size_text(count) == text


@pytest.mark.one_in(2)
@pytest.mark.parametrize("words", [("run", IMAGE, "--top", 3), ("inspect", "--layers"), ("infer",)])
@pytest.mark.parametrize("width", ["20", "40", "80", "200"])
def test_no_line_is_wider_than_the_terminal(words, width):
    shown = irrun_process(words[0], DIGITS / "model.xml", *words[1:], COLUMNS=width)
    assert shown.returncode == 0
    assert max(len(line.rstrip()) for line in shown.stdout.splitlines()) <= int(width)


def test_pipes_get_whole_rows_without_colour():
    shown = irrun_process("infer", DIGITS / "model.xml")
    assert "\x1b" not in shown.stdout
    assert re.search(r"Convolution +conv0 +f32\[\?,16,8,8\] +f32\[\?,16,8,8\]", shown.stdout)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("forced", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        ("inspect", MODELS / "loop" / "model.xml", "--tree"),
        ("compare", "fast", DIGITS / "model.xml", IMAGE),
        ("run", DIGITS / "model.xml", IMAGE),
    ],
)
def test_stdout_and_stderr_end_with_a_newline(words, forced):
    shown = irrun_process(*words, FORCE_COLOR=forced, COLUMNS="80")
    assert shown.returncode == 0
    assert shown.stdout.endswith("\n")
    assert shown.stderr == "" or shown.stderr.endswith("\n")


def test_no_color_wins_over_forced_colour():
    forced = irrun_process("inspect", DIGITS / "model.xml", FORCE_COLOR="1", COLUMNS="80").stdout
    assert "\x1b[" in forced
    quiet = irrun_process("inspect", DIGITS / "model.xml", FORCE_COLOR="1", NO_COLOR="1", COLUMNS="80").stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", quiet)


def test_results_are_printed_to_stdout_and_messages_to_stderr():
    shown = irrun_process("run", DIGITS / "model.xml", IMAGE)
    assert "probabilities" in shown.stdout
    assert re.search(r"planned in [\d.]+ m?s, ran in [\d.]+ m?s", shown.stderr)
    assert "ran in" not in shown.stdout


def test_an_ascii_terminal_is_supported():
    shown = irrun_process("run", DIGITS / "model.xml", IMAGE, PYTHONIOENCODING="ascii", COLUMNS="200")
    assert shown.returncode == 0
    assert "probabilities" in shown.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", [DIGITS / "model.xml", IMAGE, "--top", 3, "--labels", DIGITS / "labels.txt"]),
        ("run", [MODELS / "pad_openvino" / "model.xml", "--random", 1]),
        ("inspect", [DIGITS / "model.xml", "--layers"]),
        ("inspect", [MODELS / "loop" / "model.xml"]),
        ("infer", [MODELS / "loop" / "model.xml"]),
        ("infer", [DIGITS / "model.xml", "--shape", "[2,1,9,9]"]),
    ],
)
def test_json_follows_its_schema(irrun, command, words):
    schema = json.loads((SCHEMAS / f"{command}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(irrun(command, *words, "--json").json)
