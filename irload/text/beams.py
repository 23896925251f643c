"""Beam search: follows several continuations and returns the most probable one."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from irload.text.decoder import Decoder
from irload.text.sampling import allowed, log_softmax, penalized, require_numbers
from irload.text.settings import Settings
from irload.text.sources import Start


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished continuation. `score`: the sum of log probabilities, divided by length ** length_penalty."""

    tokens: tuple[int, ...]
    score: float
    ended: bool


def beam_search(decoder: Decoder, start: Start, settings: Settings, ends: Set[int]) -> Hypothesis:
    """The best continuation of at most `max_tokens` tokens.

    Each step keeps the `beams` running continuations with the highest sums of log probabilities. The search ends when
    `beams` continuations have finished, and the score of the best running continuation, at its current length, does not
    exceed the lowest of their scores.
    """
    beams = settings.beams
    prompt = start.tokens
    cache = decoder.cache(start.context)
    logits = cache.extend(np.array([prompt], np.int64))[:, -1]
    sequences: list[tuple[int, ...]] = [()]
    sums = np.zeros(1)
    finished: list[Hypothesis] = []
    for step in range(1, settings.max_tokens + 1):
        require_numbers(logits, step)
        scores = log_softmax(_penalized(logits, prompt, sequences, settings))
        scores = allowed(scores, settings, first=step == 1) + sums[:, None]
        size = scores.shape[1]
        order = _largest(scores.ravel(), 2 * beams)
        running: list[tuple[int, int, float]] = []
        for rank, k in enumerate(order.tolist()):
            parent, token = divmod(k, size)
            total = float(scores[parent, token])
            if token in ends:
                if rank < beams:
                    finished.append(_hypothesis((*sequences[parent], token), total, settings, ended=True))
            elif len(running) < beams:
                running.append((parent, token, total))
        finished = sorted(finished, key=lambda h: -h.score)[:beams]
        if not running or (
            len(finished) == beams and finished[-1].score >= running[0][2] / step**settings.length_penalty
        ):
            break
        parents = [parent for parent, _, _ in running]
        sequences = [(*sequences[parent], token) for parent, token, _ in running]
        sums = np.array([total for _, _, total in running])
        if step == settings.max_tokens:
            finished += [_hypothesis(s, float(t), settings, ended=False) for s, t in zip(sequences, sums, strict=True)]
            break
        logits = cache.extend(np.array([[s[-1]] for s in sequences], np.int64), parents)[:, -1]
    return max(finished, key=lambda h: h.score)


def _penalized(
    logits: np.ndarray, prompt: Sequence[int], sequences: Sequence[tuple[int, ...]], settings: Settings
) -> np.ndarray:
    if settings.repetition_penalty == 1.0:
        return logits
    rows = [
        penalized(row, (*prompt, *s), settings.repetition_penalty) for row, s in zip(logits, sequences, strict=True)
    ]
    return np.stack(rows)


def _largest(scores: np.ndarray, count: int) -> np.ndarray:
    """The indices of the largest scores, in descending order. Of equal scores, the first are chosen."""
    count = min(count, scores.size)
    chosen = np.flatnonzero(scores >= np.partition(scores, scores.size - count)[scores.size - count])
    return chosen[np.argsort(-scores[chosen], kind="stable")][:count]


def _hypothesis(tokens: tuple[int, ...], total: float, settings: Settings, *, ended: bool) -> Hypothesis:
    return Hypothesis(tokens, total / len(tokens) ** settings.length_penalty, ended)
