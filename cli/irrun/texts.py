"""Generated texts on stdout as they arrive, and the speed on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from irrun.render import json_text, stderr

if TYPE_CHECKING:
    from irload import Generation, TextGeneration
    from irload.text.generation import Progress
    from irload.text.settings import GenerationOptions

_ORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
"""Marks that change the writing direction."""


class Clock:
    """The time to the first token, and the tokens per second after it."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: float | None = None
        self._tokens: dict[int, int] = {}

    def note(self, progress: Progress) -> None:
        """Record the number of tokens of a text."""
        self._first = self._first or time.perf_counter()
        self._tokens[progress.index] = progress.tokens

    def words(self) -> str:
        """The summary: `64 tokens, the first after 0.12 s, 31.2 tokens/s`."""
        count = sum(self._tokens.values())
        if self._first is None:
            return "0 tokens"
        seconds = time.perf_counter() - self._first
        speed = f", {(count - 1) / seconds:.1f} tokens/s" if count > 1 and seconds > 0 else ""
        return f"{count} token{'' if count == 1 else 's'}, the first after {self._first - self._start:.2f} s{speed}"


def show_texts(model: TextGeneration, prompts: list[str], options: GenerationOptions, *, as_json: bool) -> bool:
    """Generate and print the text of each prompt. Returns True if Ctrl-C ended the generation."""
    clock = Clock()
    try:
        parts = model.run(prompts, **options)
        if as_json:
            _print_json(parts, prompts, clock)
        elif len(prompts) == 1:
            _print_one(parts, clock)
        else:
            _print_several(parts, prompts if model.continues else [f"{p}\n" for p in prompts], clock)
    except KeyboardInterrupt:
        if not as_json:
            click.echo()
        stderr().print(f"interrupted after {clock.words()}")
        return True
    stderr().print(clock.words())
    return False


def _print_one(parts: Iterable[Progress], clock: Clock) -> None:
    for part in parts:
        clock.note(part)
        write(part.text)
    click.echo()


def _print_several(parts: Iterable[Progress], prompts: list[str], clock: Clock) -> None:
    """Print each text after its prompt, in the order of the prompts, when it is finished."""
    finished: dict[int, str] = {}
    shown = 0
    for part in parts:
        clock.note(part)
        if part.result is not None:
            finished[part.index] = part.result.text
        while shown in finished:
            if shown:
                click.echo()
            write(prompts[shown])
            write(finished.pop(shown))
            click.echo()
            shown += 1


def _print_json(parts: Iterable[Progress], prompts: list[str], clock: Clock) -> None:
    """Print a line of JSON for each text, in the order of the prompts, when it is finished."""
    finished: dict[int, Generation] = {}
    shown = 0
    for part in parts:
        clock.note(part)
        if part.result is not None:
            finished[part.index] = part.result
        while shown in finished:
            text = json_text(document(prompts[shown], finished.pop(shown)))
            click.echo(" ".join(map(str.strip, text.split("\n"))))
            sys.stdout.flush()
            shown += 1


def document(prompt: str, result: Generation) -> dict[str, Any]:
    """The line of one text (schemas/generate.schema.json)."""
    line: dict[str, Any] = {
        "prompt": _encodable(prompt),
        "text": result.text,
        "finish": result.finish,
        "prompt_tokens": result.prompt_tokens,
        "tokens": list(result.tokens),
    }
    if result.logprobs is not None:
        line["logprobs"] = [
            {"token": p.token, "logprob": p.logprob, "top": [{"token": t, "logprob": v} for t, v in p.top]}
            for p in result.logprobs
        ]
    return line


def write(text: str) -> None:
    """Print a part of a text and flush stdout. On a terminal, control characters are escaped."""
    if text:
        click.echo(_shown(text) if sys.stdout.isatty() else _encodable(text), nl=False)
        sys.stdout.flush()


def _shown(text: str) -> str:
    return "".join(c if _is_shown(c) else c.encode("unicode_escape").decode("ascii") for c in _encodable(text))


def _is_shown(c: str) -> bool:
    return c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160 or c in _ORDERING)


def _encodable(text: str) -> str:
    """The text with U+FFFD for bytes that were not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
