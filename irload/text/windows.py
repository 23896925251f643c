"""Generates the text of audio of any length: parts of 30 seconds in sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from irload.text.sequence import Finish, Generation, Running
from irload.text.sources import Start


class TextWindows:
    """Generates the texts of several starts in sequence, and joins them. `running` creates the generation of a start.

    A start is created when its text begins, so only one part has outputs of an encoder in memory.
    """

    def __init__(self, starts: Sequence[Callable[[], Start]], running: Callable[[Start], Running]) -> None:
        self._waiting = list(starts)[::-1]
        self._begin = running
        self._running = running(self._waiting.pop()())
        self._done: list[Generation] = []

    @property
    def count(self) -> int:
        """The number of tokens so far."""
        return sum(len(part.tokens) for part in self._done) + self._running.count

    @property
    def finish(self) -> Finish | None:
        """The reason why the last part ended, None before its end."""
        return None if self._waiting else self._running.finish

    def step(self) -> str:
        """Generate at least one token, and return the text that has become final."""
        if self._running.finish is not None:
            self._done.append(self._running.result())
            self._running = self._begin(self._waiting.pop()())
        return self._running.step()

    def result(self) -> Generation:
        """The joined text, after its end."""
        parts = [*self._done, self._running.result()]
        logprobs = None if parts[0].logprobs is None else tuple(p for part in parts for p in part.logprobs or ())
        tokens = tuple(token for part in parts for token in part.tokens)
        return replace(parts[-1], text="".join(part.text for part in parts), tokens=tokens, logprobs=logprobs)
