"""A conversation in the terminal: turns from stdin, answers as they are generated."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from irrun.interrupts import interrupts
from irrun.render import stderr
from irrun.texts import Clock, write

if TYPE_CHECKING:
    from irload import TextGeneration
    from irload.text.settings import GenerationOptions

_PROMPT = "> "


def converse(model: TextGeneration, first: list[str], system: str | None, options: GenerationOptions) -> int:
    """Answer the turns of `first`, then the lines of stdin until its end. Returns the exit code.

    Ctrl-C during an answer ends the answer; at the prompt it ends the conversation.
    """
    messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    waiting = list(first)
    while True:
        turn = waiting.pop(0) if waiting else _turn()
        if turn is None:
            return 0
        if not turn.strip():
            continue
        messages.append({"role": "user", "content": turn})
        messages.append({"role": "assistant", "content": _answer(model, messages, options)})


def _turn() -> str | None:
    """The next line, None at the end of stdin."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    with suppress(ImportError):
        import_module("readline")  # input() edits lines with it
    try:
        return input(_PROMPT)
    except EOFError:
        click.echo()
        return None


def _answer(model: TextGeneration, messages: list[dict[str, Any]], options: GenerationOptions) -> str:
    clock = Clock()
    parts: list[str] = []
    try:
        for part in model.run([messages], **options):
            clock.note(part)
            parts.append(part.text)
            write(part.text)
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise
        interrupts.noted = False
    click.echo()
    stderr().print(f"[dim]{clock.words()}[/]")
    return "".join(parts)
