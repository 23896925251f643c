"""Renders docs/terminal.svg, the picture in the README, from real runs of irrun.

python docs/make_picture.py
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH = 104
COMMANDS = (
    "irrun models/digits/model.xml models/digits/digit_7_0.npy --top 3 --labels models/digits/labels.txt",
    "irrun infer models/loop/model.xml",
)


def output_of(command: str) -> str:
    """The output of a command on a terminal of WIDTH columns, with colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    words = [sys.executable, "-m", *command.split()]
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def recorded(commands: Sequence[str], output: Callable[[str], str], width: int, title: str) -> str:
    """An SVG of a terminal of `width` columns with commands and their outputs."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for command in commands:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(output(command)))
        console.print()
    return console.export_svg(title=title, theme=MONOKAI, unique_id=title.replace(" ", "-"))


def main() -> None:
    """Run the commands and render their output."""
    svg = recorded(COMMANDS, output_of, WIDTH, "irrun")
    (ROOT / "docs" / "terminal.svg").write_text(svg, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
