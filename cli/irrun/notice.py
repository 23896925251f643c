"""One line on stderr if declared ports differ from the inferred ones, regardless of their number."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from irload import DeclaredDiffers
from irrun.render import safe, stderr


class Notice:
    """Prints the notice on the first call with differences.

    That is before the run if reading detects them, else after it.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._said = False

    def __call__(self, differences: Sequence[DeclaredDiffers]) -> None:
        if differences and not self._said:
            self._said = True
            console = stderr() if self._console is None else self._console
            console.print(f"irrun: [bold yellow]warning:[/] {safe(notice(differences))}", soft_wrap=True)


def notice(differences: Sequence[DeclaredDiffers]) -> str:
    """Return the number of ports that differ and the first of them."""
    count = len(differences)
    ports = "1 port declares" if count == 1 else f"{count} ports declare"
    first = "" if count == 1 else ", the first"
    summary = f"{ports} other types or shapes than inferred{first}: {differences[0]}"
    return f"{summary}; 'irrun check' explains all, --strict refuses it"
