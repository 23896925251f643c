"""Chooses the next token from logits: penalties, temperature, truncation of the distribution (top-k, top-p, min-p)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from irload.core.tensor import Array
from irload.errors import ExecutionError
from irload.text.settings import Settings


def require_numbers(logits: Array, position: int) -> None:
    """Raise ExecutionError if a logit is NaN, or none is finite."""
    largest = logits.max(initial=-np.inf)
    if not np.isfinite(largest):
        fault = "NaN" if np.isnan(largest) else "not finite"
        raise ExecutionError(
            f"the logits of token {position} are {fault}; irrun run --check-finite names the first layer"
        )


def log_softmax(logits: Array) -> Array:
    """The logarithms of the probabilities, f64 of the shape of the logits, over the last axis."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


def penalized(logits: Array, used: Iterable[int], penalty: float) -> Array:
    """Apply a repetition penalty: logits of used tokens are divided by it if positive, else multiplied by it."""
    if penalty == 1.0:
        return logits
    ids = np.unique(np.fromiter(used, np.int64))
    changed = logits.copy()
    chosen = logits[..., ids]
    changed[..., ids] = np.where(chosen > 0, chosen / penalty, chosen * penalty)
    return changed


def allowed(logits: Array, settings: Settings, *, first: bool) -> Array:
    """The logits [..., vocabulary] with -inf for suppressed tokens. `first`: for the first token of a text."""
    ids = [*settings.suppress, *(settings.begin_suppress if first else ())]
    if not ids:
        return logits
    changed = logits.copy()
    changed[..., [k for k in ids if k < logits.shape[-1]]] = -np.inf
    return changed


class TokenSampler:
    """Chooses tokens for one sequence. `stream`: sequences with the same seed draw different numbers by its value."""

    def __init__(self, settings: Settings, stream: int) -> None:
        self._settings = settings
        self._random = np.random.default_rng([settings.seed, stream]) if settings.samples else None

    def choose(self, logits: Array, used: Iterable[int]) -> int:
        """The next token for logits [vocabulary]; `used`: the tokens so far, which are penalized."""
        scores = penalized(logits, used, self._settings.repetition_penalty)
        if self._random is None:
            return int(scores.argmax())
        tokens, probabilities = distribution(scores, self._settings)
        return int(tokens[np.searchsorted(np.cumsum(probabilities), self._random.random() * probabilities.sum())])


def distribution(scores: Array, settings: Settings) -> tuple[Array, Array]:
    """The tokens that may be drawn, most probable first, and their probabilities."""
    order = np.argsort(-scores, kind="stable")
    if settings.top_k:
        order = order[: settings.top_k]
    scaled = scores[order].astype(np.float64) / settings.temperature
    probabilities = np.exp(scaled - scaled[0])
    probabilities /= probabilities.sum()
    keep = np.cumsum(probabilities) - probabilities < settings.top_p
    keep &= probabilities >= settings.min_p * probabilities[0]
    keep[0] = True
    order, probabilities = order[keep], probabilities[keep]
    return order, probabilities / probabilities.sum()
