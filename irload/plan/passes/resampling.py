"""Move 1×1 convolutions before resampling: Conv(Concat(Resample(x), y), [V W]) → Resample(Conv(x, V)) + Conv(y, W).

Resampling and 1×1 convolution commute, so the convolution runs on the smaller map, and the Concat is removed.
Segmentation heads that combine maps of several sizes have this pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from irload.plan.ir.derivations import KeptChannels
from irload.plan.ir.expression import ADD
from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.steps import ConcatStep, ConvStep, ElementwiseStep, ResampleStep

GAIN = 2
"""Minimum enlargement of the map, and maximum growth of the channel count, for which the rewrite is faster."""


def convolve_before_resampling(program: Program) -> None:
    """Move every 1×1 convolution before the resampling of its input, or of a part of its input."""
    producers = program.producers()
    for window in program.steps:
        if not isinstance(window, ConvStep) or not _is_pointwise(window):
            continue
        source = window.inputs[0]
        join = producers.get(source)
        joined = isinstance(join, ConcatStep) and join.axis == 1 and program.sole_consumer(source) is window
        parts = join.inputs if joined and join is not None else [source]
        chains = [_chain(program, producers, part, window.output.shape[1]) for part in parts]
        if any(chains):
            old = [window, *([join] if joined and join is not None else []), *(s for chain in chains for s in chain)]
            program.replace(old, _moved(window, parts, chains))


def _is_pointwise(window: ConvStep) -> bool:
    """True for constant weights in floats with one group, one tap, stride 1, no pads, and no epilogue."""
    groups, _, _, *kernel = window.inputs[1].shape
    if window.integers is not None or not window.inputs[1].is_constant:
        return False
    plain = groups == 1 and prod(kernel) == 1 and not window.epilogue.instructions
    return plain and window.output.shape[2:] == window.inputs[0].shape[2:] and set(window.strides) == {1}


def _chain(program: Program, producers: Producers, value: Value, channels: int) -> list[ResampleStep]:
    """Return the resamplings that produce a value, first to last; empty if the rewrite would not be faster.

    Only resamplings whose result no other step reads are included.
    """
    chain: list[ResampleStep] = []
    at = value
    while (
        isinstance(step := producers.get(at), ResampleStep) and step.axis > 1 and program.sole_consumer(at) is not None
    ):
        chain.insert(0, step)
        at = step.inputs[0]
    pays = value.size >= GAIN * at.size and channels <= GAIN * value.shape[1]
    return chain if pays else []


def _moved(window: ConvStep, parts: Sequence[Value], chains: Sequence[list[ResampleStep]]) -> list[Step]:
    """Return the steps that replace the convolution, the Concat and the resamplings."""
    edges = [0, *accumulate(p.shape[1] for p in parts)]
    steps: list[Step] = []
    terms: list[Value] = []
    rest: list[int] = []
    for k, chain in enumerate(chains):
        if not chain:
            rest.append(k)
            continue
        value = _convolved(window, chain[0].inputs[0], [(edges[k], edges[k + 1])], steps)
        for step in chain:
            n, c = value.shape[:2]
            larger = Value((n, c, *step.output.shape[2:]), value.dtype, name=step.output.name)
            steps.append(replace(step, inputs=[value], outputs=[larger]))
            value = larger
        terms.append(value)
    if rest:
        data = parts[rest[0]]
        if len(rest) > 1:
            shape = (data.shape[0], sum(parts[k].shape[1] for k in rest), *data.shape[2:])
            data = data.like(shape)
            steps.append(ConcatStep([parts[k] for k in rest], [data], axis=1))
        terms.insert(0, _convolved(window, data, [(edges[k], edges[k + 1]) for k in rest], steps))
    total = terms[0]
    for term in terms[1:]:
        both = window.output.like()
        steps.append(ElementwiseStep([total, term], [both], expression=ADD))
        total = both
    last = next(s for s in reversed(steps) if total in s.outputs)
    last.outputs = window.outputs
    return steps


def _convolved(window: ConvStep, data: Value, ranges: Sequence[tuple[int, int]], steps: list[Step]) -> Value:
    """Return the 1×1 convolution of `data` with the weights of these ranges of input channels."""
    out = Value((data.shape[0], window.output.shape[1], *data.shape[2:]), data.dtype, name=window.output.name)
    weights = window.inputs[1].by(KeptChannels(tuple(ranges)))
    steps.append(replace(window, inputs=[data, weights], outputs=[out]))
    return out
