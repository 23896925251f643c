"""The generation of one text, step by step: its cache, its tokens, and the conditions that end it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from irload.core.tensor import Array
from irload.text.beams import beam_search
from irload.text.decoder import Decoder
from irload.text.lookup import Lookup
from irload.text.sampling import TokenSampler, allowed, log_softmax, require_numbers
from irload.text.settings import Settings
from irload.text.sources import Start
from irload.text.streaming import TextStream

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log probability of a token before penalties and temperature, and of the most probable tokens."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """A generated text.

    `tokens`: its ids, including the one that ended it; `finish`: "stop" for an end token or a stop string, "length" for
    the maximum; `logprobs`: one per token, if requested; `prompt_tokens`: the number of tokens of the prompt.
    """

    text: str
    tokens: tuple[int, ...]
    finish: Finish
    prompt_tokens: int
    logprobs: tuple[TokenLogprob, ...] | None = None


class Running:
    """The generation of one text. `index` selects its stream of random numbers."""

    def __init__(
        self, decoder: Decoder, start: Start, settings: Settings, index: int, text: TextStream, ends: Set[int]
    ) -> None:
        self._decoder = decoder
        self._start = start
        self._prompt = list(start.tokens)
        if start.limit is not None:
            settings = replace(settings, max_tokens=min(settings.max_tokens, start.limit))
        self._settings = settings
        self._text = text
        self._ends = ends
        self._cache = None if settings.beams > 1 else decoder.cache(start.context)
        self._sampler = TokenSampler(settings, index)
        self._used = dict.fromkeys(self._prompt) if settings.repetition_penalty != 1.0 else {}
        self._lookup = Lookup(self._prompt) if settings.lookup else None
        self._tokens: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self.finish: Finish | None = None

    @property
    def count(self) -> int:
        """The number of tokens so far."""
        return len(self._tokens)

    def step(self) -> str:
        """Generate at least one token, and return the text that has become final."""
        if self._cache is None:
            return self._all_beams()
        guesses = self._guesses()
        new = [*(self._tokens[-1:] or self._prompt), *guesses]
        logits = self._cache.extend(np.array([new], np.int64))[0, -1 - len(guesses) :]
        text = ""
        for k, row in enumerate(logits):
            token = self._chosen(row)
            text += self._accept(token)
            if self.finish is not None or k == len(guesses) or token != guesses[k]:
                self._cache.shorten(len(guesses) - k)
                break
        return text + (self._text.finish() if self.finish is not None else "")

    def result(self) -> Generation:
        """The text, after its end."""
        logprobs = None if self._settings.logprobs is None else tuple(self._logprobs)
        return Generation(self._text.text, tuple(self._tokens), self.finish or "length", self._start.size, logprobs)

    def _guesses(self) -> list[int]:
        left = self._settings.max_tokens - len(self._tokens) - 1
        if self._lookup is None or not self._tokens or left < 1:
            return []
        return self._lookup.candidates(min(self._settings.lookup, left))

    def _chosen(self, logits: Array) -> int:
        require_numbers(logits, len(self._tokens) + 1)
        token = self._sampler.choose(allowed(logits, self._settings, first=not self._tokens), self._used)
        if self._settings.logprobs is not None:
            self._logprobs.append(_logprob(logits, token, self._settings.logprobs))
        return token

    def _accept(self, token: int) -> str:
        """Append a token, and set `finish` if it ends the text. Returns the text that has become final."""
        self._tokens.append(token)
        if self._used:
            self._used[token] = None
        if self._lookup is not None:
            self._lookup.add(token)
        if token in self._ends:
            self.finish = "stop"
            return ""
        text = self._text.add(token)
        if self._text.stopped:
            self.finish = "stop"
        elif len(self._tokens) >= self._settings.max_tokens:
            self.finish = "length"
        return text

    def _all_beams(self) -> str:
        best = beam_search(self._decoder, self._start, self._settings, self._ends)
        text = ""
        for token in best.tokens:
            text += self._accept(token)
            if self.finish is not None:
                break
        return text + self._text.finish()


def _logprob(logits: Array, token: int, count: int) -> TokenLogprob:
    scores = log_softmax(logits)
    top = np.argsort(-scores, kind="stable")[:count].tolist()
    return TokenLogprob(token, float(scores[token]), tuple((k, float(scores[k])) for k in top))
