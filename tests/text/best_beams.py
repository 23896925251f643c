"""A readable beam search, which runs every sequence from its start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def best_beams(
    logits: Callable[[list[int]], np.ndarray], prompt: list[int], end: int, beams: int, count: int
) -> list[int]:
    """At most `count` tokens after a prompt, with all continuations considered in each step.

    `logits`: the logits of the next token after a sequence; `end`: the token that ends a text.
    """
    running: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for step in range(1, count + 1):
        every: list[tuple[float, list[int]]] = []
        for total, tokens in running:
            scores = logits([*prompt, *tokens]).astype(np.float64)
            scores -= scores.max()
            scores -= np.log(np.exp(scores).sum())
            every += [(total + float(s), [*tokens, k]) for k, s in enumerate(scores)]
        every.sort(key=lambda entry: -entry[0])
        ended += [(s / step, t) for s, t in every[:beams] if t[-1] == end]
        ended = sorted(ended, key=lambda entry: -entry[0])[:beams]
        running = [entry for entry in every if entry[1][-1] != end][:beams]
        if len(ended) == beams and ended[-1][0] >= running[0][0] / step:
            return ended[0][1]
    return max([*ended, *((s / count, t) for s, t in running)], key=lambda entry: entry[0])[1]
