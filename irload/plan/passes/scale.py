"""Fold a constant factor per channel into the weights of a convolution, as for BatchNorm: Conv(x,w)·c → Conv(x,w·c)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.plan.ir.derivations import Scaled
from irload.plan.ir.expression import MULTIPLY
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ConvStep, ElementwiseStep


def fold_scale(program: Program) -> None:
    """Fold the factor of each convolution. If an addition precedes the factor, both become an epilogue instead."""
    pending: list[Step] = list(program.steps)
    for step in pending:
        if not isinstance(step, ConvStep) or step.epilogue.instructions or step.integers is not None:
            continue
        consumer = program.sole_consumer(step.output)
        if not isinstance(consumer, ElementwiseStep) or consumer.expression != MULTIPLY:
            continue
        factor = consumer.inputs[1 - consumer.inputs.index(step.output)]
        weights = step.inputs[1]
        channels = step.output.shape[1]
        scale = _per_channel(factor, channels, len(step.output.shape))
        if (
            scale is None
            or not _harmless(scale)
            or weights.source is None
            or consumer.output.shape != step.output.shape
        ):
            continue
        wide = scale.reshape(*weights.shape[:2], *(1,) * (len(weights.shape) - 2))
        inputs = [step.inputs[0], weights.by(Scaled.by(wide))]
        fused = replace(step, inputs=inputs, outputs=consumer.outputs, origin=(*step.origin, *consumer.origin))
        program.replace([step, consumer], [fused])
        pending.append(fused)


def _harmless(scale: np.ndarray[tuple[int], np.dtype[np.float32]]) -> bool:
    """True if no scale is so large or so small that its product with a usual weight overflows or underflows."""
    size = np.abs(scale)
    return bool(np.all((size == 0) | ((size > 2.0**-60) & (size < 2.0**60))))


def _per_channel(value: Value, channels: int, rank: int) -> np.ndarray[tuple[int], np.dtype[np.float32]] | None:
    """Return the constant as one number per channel, or None if its shape differs."""
    if value.size not in (1, channels) or value.constant is None:
        return None
    shape = (1,) * (rank - len(value.shape)) + value.shape
    if value.size == 1:
        return np.full(channels, value.constant.reshape(-1)[0], np.float32)
    return value.constant.reshape(channels) if shape[1] == channels else None
