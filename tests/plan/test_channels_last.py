"""Which values are stored channels-last."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.channels_last import layouts
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ConcatStep, ConvStep, GroupNormalizeStep, PoolStep, ReshapeStep, TransposeStep
from irload.plan.memory.layout import channels_last
from tests.plan.programs import constant, mapped, random, resampled, value


def test_results_of_a_pooling_keep_its_layout() -> None:
    x, pooled, other = value(2, 3, 4, 5), value(2, 3, 2, 3), value(2, 3, 2, 3)
    pool = PoolStep([x], [pooled], kind="max", kernel=(3, 3), strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0))
    enlarged = resampled(pooled, np.eye(2, dtype=np.float32).repeat(2, 0), 2)
    norm = GroupNormalizeStep(
        [enlarged.output, constant(random(3)), constant(random(3))], [value(2, 3, 4, 3)], groups=1, eps=1.0
    )
    relu, both = mapped("relu", pooled), ConcatStep([pooled, other], [value(2, 6, 2, 3)], axis=1)
    apart, alone = mapped("relu", other), ConcatStep([other, other], [value(2, 6, 2, 3)], axis=1)
    steps: list[Step] = [pool, enlarged, norm, relu, both, apart, alone]
    chosen = layouts(Program(steps, [x, other], [s.output for s in steps]), steps, [x, other])
    expected = {x, pooled, enlarged.output, norm.output, relu.output, both.output}
    assert chosen == dict.fromkeys(expected, channels_last(4))


def test_views_and_their_results_are_planar() -> None:
    x, turned, flat, image = value(2, 3, 4, 5), value(2, 4, 3, 5), value(2, 4, 15), value(2, 4, 3, 5)
    joined = value(2, 8, 3, 5)
    steps: list[Step] = [
        TransposeStep([x], [turned], order=(0, 2, 1, 3)),
        ReshapeStep([turned], [flat]),
        ReshapeStep([flat], [image]),
        ConcatStep([image, image], [joined], axis=1),
    ]
    assert not layouts(Program(steps, [x], [joined]), steps, [x])


def test_the_input_layout_of_a_depthwise_convolution() -> None:
    x, y = value(2, 3, 4, 5), value(2, 6, 4, 5)
    joined = ConcatStep([x, x], [y], axis=1)

    def conv(*weights: int) -> ConvStep:
        w = constant(random(*weights))
        out = value(2, weights[0] * weights[1], 4, 5)
        one = (1, 1)
        return ConvStep([y, w], [out], strides=one, dilations=one, pads_begin=(0, 0), pads_end=(0, 0))

    for step, expected in ((conv(6, 1, 1, 1, 1), True), (conv(2, 3, 3, 1, 1), False), (conv(1, 4, 6, 1, 1), False)):
        steps: list[Step] = [joined, step]
        assert (y in layouts(Program(steps, [x], [step.output]), steps)) == expected
