"""Records of parameters: a command receives few of them, each built from the options named like its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import click
import pytest
from click.testing import CliRunner

from irrun.app import app
from irrun.records import records

MAX_PARAMETERS = 9
"""The maximum number of parameters of a command."""


@dataclass(frozen=True)
class Point:
    """Two required fields and an optional one."""

    x: int
    y: int
    z: int = 5


class Style(TypedDict, total=False):
    """Keys without parameters are left out."""

    x: int
    colour: str
    width: int


def said(*words: str) -> str:
    @click.command()
    @click.option("--x", type=int, default=1)
    @click.option("--y", type=int, default=2)
    @click.option("--colour", default="red")
    @click.option("--other", default="rest")
    @records(point=Point, style=Style)
    def command(point: Point, style: Style, other: str) -> None:
        """Show the records."""
        click.echo(f"{point} {style} {other}")

    done = CliRunner().invoke(command, words, catch_exceptions=False)
    return done.output


def test_parameters_are_grouped_by_name():
    assert said("--x", "7") == "Point(x=7, y=2, z=5) {'x': 7, 'colour': 'red'} rest\n"


def test_help_is_unchanged():
    text = said("--help")
    assert "Show the records." in text
    assert text.index("--x") < text.index("--y") < text.index("--colour") < text.index("--other")


def test_a_missing_parameter_is_an_error():
    @click.command()
    @click.option("--x", type=int, default=1)
    @records(point=Point)
    def command(point: Point) -> None: ...

    with pytest.raises(KeyError, match="y"):
        CliRunner().invoke(command, [], catch_exceptions=False)


@pytest.mark.parametrize("name", ["run", "batch", "bench", "report", "inspect", "infer", "save", "check", "compare"])
def test_commands_have_few_parameters(name):
    command = app.get_command(click.Context(app), name)
    assert command is not None
    function = command.callback.__wrapped__
    assert function.__code__.co_argcount <= MAX_PARAMETERS
