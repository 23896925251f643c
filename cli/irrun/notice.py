"""One line on stderr where the ports of a model declare what is not inferred, however many they are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from irload import DeclaredDiffers
from irrun.render import safe, stderr


class Notice:
    """Called with the differences that are known, says so the first time there are any.

    That is before a run where reading finds them, else after it.
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
    """How many ports differ and which is the first."""
    count = len(differences)
    ports = "1 port declares" if count == 1 else f"{count} ports declare"
    first = "" if count == 1 else ", the first"
    return f"{ports} what is not inferred{first}: {differences[0]}; 'irrun check' explains all, --strict refuses it"
