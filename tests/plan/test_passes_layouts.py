"""Layouts seen through views: what is transposed to [N,C,X…] lies with its channels innermost already."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.numpy.layouts import layouts
from irload.plan.ir.program import Program
from irload.plan.ir.steps import Concat, Reshape, Transpose
from tests.plan.programs import random, resampled, run, value


def test_a_join_of_transposed_tokens_lies_channels_last():
    tokens, turned, image = value(2, 12, 5), value(2, 5, 12), value(2, 5, 3, 4)
    other, joined = value(2, 3, 3, 4), value(2, 8, 3, 4)
    steps = [
        Transpose([tokens], [turned], order=(0, 2, 1)),
        Reshape([turned], [image]),
        Concat([image, other], [joined], axis=1),
    ]
    a, b = random(2, 12, 5), random(2, 3, 3, 4, seed=1)
    (result,) = run(steps, {tokens: a, other: b}, [joined])
    assert joined in layouts(Program(steps, [tokens, other], [joined]), steps)
    np.testing.assert_array_equal(result, np.concatenate([a.swapaxes(1, 2).reshape(2, 5, 3, 4), b], 1))


def test_resampling_keeps_the_layout_of_a_view():
    tokens, image = value(2, 3, 4, 5), value(2, 5, 3, 4)
    matrix = np.eye(3, dtype=np.float32).repeat(2, 0)
    resample = resampled(image, matrix, 2)
    steps, out = [Transpose([tokens], [image], order=(0, 3, 1, 2)), resample], resample.output
    a = random(2, 3, 4, 5)
    (result,) = run(steps, {tokens: a}, [out])
    assert out in layouts(Program(steps, [tokens], [out]), steps)
    np.testing.assert_array_equal(result, a.transpose(0, 3, 1, 2).repeat(2, 2))


def test_what_is_copied_or_transposed_otherwise_stays_as_it_is():
    x, turned, flat, image = value(2, 3, 4, 5), value(2, 4, 3, 5), value(2, 4, 15), value(2, 4, 3, 5)
    joined, plain = value(2, 8, 3, 5), value(2, 8, 3, 5)
    steps = [
        Transpose([x], [turned], order=(0, 2, 1, 3)),
        Reshape([turned], [flat]),  # a copy
        Reshape([flat], [image]),
        Concat([image, image], [joined], axis=1),
        Concat([turned, turned], [plain], axis=1),
    ]
    assert not layouts(Program(list(steps), [x], [joined, plain]), steps)
