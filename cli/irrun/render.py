"""Rendering: consoles that respect pipes, NO_COLOR and widths; escaped text from models; JSON."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from irload.wording import counted, printable, size_text

__all__ = [
    "counted",
    "json_text",
    "plain",
    "progress",
    "safe",
    "show_json",
    "show_warnings",
    "size_text",
    "stderr",
    "stdout",
    "table",
]

WARNINGS = 20
"""Upper bound of the kinds of warnings shown; a file of a future opset may cause many per layer."""

_NUMBER = re.compile(r"\b\d+\b")
"""Offsets, sizes and dims, but not the digits of types such as f16."""

PATIENCE = 1.0
"""Seconds before progress is shown."""


class _Console(Console):
    """A console that raises BrokenPipeError for a closed pipe, which the caller handles."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the reader closed the pipe")


def stdout() -> Console:
    """Return the console for results."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Return the console for progress and errors."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    # A pipe has no width: its reader expects one line per row of any length.
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100_000
    return _Console(file=stream, width=width, highlight=False, emoji=False)


def safe(text: object) -> str:
    """Return text from a model as literal markup: markup escaped, control and bidi characters spelled out."""
    return escape(plain(text))


def plain(text: object) -> str:
    """Return text from a model with unprintable characters spelled out."""
    return printable(str(text))


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """Return an empty table in the style of all commands; `right` names the numeric columns."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return result


def show_json(document: dict[str, Any]) -> None:
    """Print a report as JSON. Raises ValueError for NaN and infinities, which JSON cannot represent."""
    click.echo(json_text(document))


def json_text(document: object, *, ascii_only: bool | None = None) -> str:
    """Return the JSON text; by default ASCII unless stdout is UTF-8, the only encoding that JSON allows."""
    import json

    if ascii_only is None:
        ascii_only = (getattr(sys.stdout, "encoding", None) or "utf-8").lower() not in ("utf-8", "utf8")
    text = json.dumps(document, indent=2, ensure_ascii=ascii_only, allow_nan=False)
    # JSON escapes only some control characters; terminals and logs interpret more.
    return text if text.isascii() else "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def show_warnings(warnings: Sequence[str]) -> None:
    """Show the first warning of each kind and the number of further ones, up to `WARNINGS` kinds."""
    alike = Counter(_kind(warning) for warning in warnings)
    firsts = {_kind(warning): warning for warning in reversed(warnings)}
    shown = list(alike)[:WARNINGS]
    for kind in shown:
        more = f" ({alike[kind] - 1} more of this kind)" if alike[kind] > 1 else ""
        stdout().print(f"[yellow]warning:[/] {safe(firsts[kind])}{more}", soft_wrap=True)
    rest = sum(alike.values()) - sum(alike[kind] for kind in shown)
    if rest:
        stdout().print(f"[yellow]and {rest} more warnings[/] (--json lists them all)")


def _kind(warning: str) -> str:
    """Return the message without the layer and without numbers: several layers often cause the same warning."""
    message = warning.partition(" (id ")[2].partition("): ")[2]
    return _NUMBER.sub("#", message) if message else warning


@contextmanager
def progress(activity: str) -> Generator[None, None, None]:
    """Show `activity` on stderr if the block takes longer than `PATIENCE` and stderr is a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield
        return
    status = console.status(activity)
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
