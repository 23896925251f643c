"""Rendering: consoles that respect pipes, NO_COLOR and widths; text from models made harmless; JSON."""

from __future__ import annotations

import errno
import os
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

from irload.errors import printable

WARNINGS = 20
"""Kinds of warnings shown; files of a future opset could have many for each of their layers."""

PATIENCE = 1.0
"""Seconds of silence before progress is shown."""


class _Console(Console):
    """A console that leaves a closed pipe to its caller."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the reader of the output has gone")


def stdout() -> Console:
    """The console of results."""
    return _console(sys.stdout)


def stderr() -> Console:
    """The console of progress and errors."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    # A pipe has no width: its reader expects one line per row, whatever the length.
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100_000
    return _Console(file=stream, width=width, highlight=False, emoji=False)


def safe(text: object) -> str:
    """Text from a model as markup that shows it literally: markup escaped, control and bidi characters spelled out."""
    return escape(plain(text))


def plain(text: object) -> str:
    """Text from a model in which what is not printable is spelled out."""
    return printable(str(text))


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """An empty table in the one style of all commands; `right` names the columns of numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def show_json(document: dict[str, Any]) -> None:
    """A report for machines. What JSON cannot say of numbers (NaN, infinities) must be gone already."""
    click.echo(json_text(document))


def json_text(document: object, *, ascii_only: bool | None = None) -> str:
    """The text of a report; by default ASCII where stdout is not in UTF-8, which JSON has to be (pipes on Windows)."""
    import json

    if ascii_only is None:
        ascii_only = (getattr(sys.stdout, "encoding", None) or "utf-8").lower() not in ("utf-8", "utf8")
    text = json.dumps(document, indent=2, ensure_ascii=ascii_only, allow_nan=False)
    # JSON escapes some control characters; a terminal or a log obeys others, too.
    return text if text.isascii() else "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def show_warnings(warnings: Sequence[str]) -> None:
    """The first warning of each kind and how many more there are, of the first few kinds."""
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
    """What a warning says, without the place: layers of a model often share one."""
    return warning.partition(" (id ")[2].partition("): ")[2] or warning


def size_text(count: int) -> str:
    """Bytes for people: `24.5 KB`."""
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{count} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


@contextmanager
def progress(what: str) -> Generator[None, None, None]:
    """Show on stderr that something is under way, if it takes long and stderr is a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield
        return
    status = console.status(what)
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
