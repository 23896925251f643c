"""Decodes tokens to text as they are generated, and detects stop strings."""

from __future__ import annotations

from collections.abc import Sequence

from irload.text.tokenizer import Tokenizer

_REPLACEMENT = "\ufffd"
_WINDOW = 6
"""Tokens that are decoded again with new ones, since the text of a token depends on the tokens before it."""


class TextStream:
    """The text of a growing sequence of tokens, in parts that later tokens do not change.

    `stop`: strings that end the text. The end of the text is withheld while it may be the beginning of a stop string.
    `live`: False decodes all tokens at the end, unless there are stop strings.
    """

    def __init__(self, tokenizer: Tokenizer | None, stop: Sequence[str] = (), *, live: bool = True) -> None:
        self._tokenizer = tokenizer
        self._waits = not live and not stop
        self._stop = stop
        self._longest = max(map(len, stop), default=0)
        self._tokens: list[int] = []
        self._base = 0
        """The index of the first token that is decoded again with new tokens."""
        self._before = ""
        """The text of the tokens from `_base` that is already in `text`."""
        self.text = ""
        """The text so far, up to the stop string."""
        self.stopped = False
        """True after a stop string."""
        self._returned = 0

    def add(self, token: int) -> str:
        """Append a token and return the text that has become final."""
        self._tokens.append(token)
        if self._tokenizer is None or self._waits:
            return ""
        after = self._tokenizer.decode(self._tokens[self._base :])
        if len(after) <= len(self._before) or after.endswith(_REPLACEMENT):
            return ""  # a character of several tokens is not complete
        self._append(after[len(self._before) :])
        self._before = after
        if len(self._tokens) - self._base > 3 * _WINDOW:
            self._base = len(self._tokens) - _WINDOW
            self._before = self._tokenizer.decode(self._tokens[self._base :])
        return self._new(held=self._longest - 1)

    def finish(self) -> str:
        """Return the remaining text, with U+FFFD for an incomplete character."""
        if self._tokenizer is not None and len(self._tokens) > self._base and not self.stopped:
            self._append(self._tokenizer.decode(self._tokens[self._base :])[len(self._before) :])
            self._base, self._before = len(self._tokens), ""
        return self._new(held=0)

    def _append(self, part: str) -> None:
        searched = max(len(self.text) - self._longest + 1, 0)
        self.text += part
        positions = [at for s in self._stop if (at := self.text.find(s, searched)) >= 0]
        if positions:
            self.text = self.text[: min(positions)]
            self.stopped = True

    def _new(self, held: int) -> str:
        """The text that was not returned before, except for `held` characters that may begin a stop string."""
        end = len(self.text)
        if held > 0 and not self.stopped:
            tail = self.text[-held:]
            holds = (k for k in range(len(tail)) if any(s.startswith(tail[k:]) for s in self._stop))
            end -= len(tail) - next(holds, len(tail))
        part = self.text[self._returned : end]
        self._returned = max(end, self._returned)
        return part
