"""Random attention, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Value
from irload.plan.ir.steps import AttentionStep
from tests.plan.programs import value


def random_attention(rng: np.random.Generator, sizes: Sequence[int], kind: int) -> tuple[AttentionStep, list[Array]]:
    """A step and its inputs. Some masks drop (`kind` 0), some are boolean (1), others are finite."""
    batch, heads = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    queries, keys, width, depth = (int(rng.choice(sizes)) for _ in range(4))
    causal = bool(rng.integers(2))
    shared = bool(rng.integers(2))
    q, k = value(batch, heads, queries, width), value(batch, 1 if shared else heads, keys, width)
    v = value(batch, 1 if shared else heads, keys, depth)
    shapes = [(), (queries, keys), (1, 1, 1, keys), (batch, 1, queries, keys), (1, heads, queries, 1)]
    shape = () if causal else shapes[int(rng.integers(len(shapes)))]
    mask = [value(*shape)] if shape else []
    options = {"causal": causal, "averages": bool(rng.integers(2))}
    step = AttentionStep([q, k, v, *mask], [value(batch, heads, queries, depth)], scale=0.3, **options)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    if mask and kind == 0:
        arrays[3][rng.random(shape) < 0.3] = -np.inf
    if mask and kind == 1:
        step.inputs[3] = Value(shape, np.dtype(bool))
        arrays[3] = rng.random(shape) < 0.7
    return step, arrays


def add_sink(rng: np.random.Generator, step: AttentionStep, arrays: list[Array]) -> None:
    """Add a sink to the step: a further score, shared by all rows, per head, or per row."""
    batch, heads, queries, _ = step.output.shape
    shape = [(1, heads, 1, 1), (1, 1, 1, 1), (batch, heads, queries, 1)][int(rng.integers(3))]
    step.inputs.append(value(*shape))
    step.has_sink = True
    arrays.append(3 * rng.standard_normal(shape).astype(np.float32))


def heads_first(value: Value, plain: Array) -> Array:
    """The memory layout [batch, length, heads, width] of [batch, heads, length, width], as projections write it."""
    if len(value.shape) != 4:
        return plain
    b, h, n, d = value.shape
    return plain.reshape(b, n, h, d).swapaxes(1, 2)
