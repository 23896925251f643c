"""CTC: hand-worked decoding, the loss against a sum over all paths, and the errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.sequence.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss


def scores(best: list[int], classes: int = 4) -> Any:
    """Class scores [time, classes] with the given best class per time step."""
    return np.eye(classes, dtype=np.float32)[best]


BEST = [0, 0, 3, 0, 1, 1, 3]  # class 3 is the blank


@pytest.mark.parametrize(
    ("merge", "length", "expected"),
    [
        (True, 7, [0, 0, 1, -1, -1, -1, -1]),
        (False, 7, [0, 0, 0, 1, 1, -1, -1]),
        (True, 2, [0, -1, -1, -1, -1, -1, -1]),
        (True, 0, [-1] * 7),
    ],
)
def test_decoding(merge: bool, length: int, expected: list[int]) -> None:
    mask = (np.arange(7) < length).astype(np.float32)[:, None]
    first = CTCGreedyDecoder(ctc_merge_repeated=merge).compute(scores(BEST)[:, None], mask)
    assert (first.shape, first.dtype, first.ravel().tolist()) == ((1, 7, 1, 1), np.float32, expected)
    classes, count = CTCGreedyDecoderSeqLen(merge_repeated=merge).compute(scores(BEST)[None], np.array([length]))
    assert (classes.tolist(), count.tolist()) == ([expected], [sum(c >= 0 for c in expected)])


def test_a_hole_in_the_mask_ends_the_sequence() -> None:
    mask = np.array([1, 1, 0, 1, 1, 1, 1], np.float32)[:, None]
    assert CTCGreedyDecoder().compute(scores(BEST)[:, None], mask).ravel().tolist() == [0] + [-1] * 6


def test_another_class_may_be_the_blank() -> None:
    classes, count = CTCGreedyDecoderSeqLen().compute(scores(BEST)[None], np.array([7]), np.array([0]))
    assert (classes.tolist(), count.tolist()) == ([[3, 1, 3, -1, -1, -1, -1]], [3])


def test_types_of_the_indices() -> None:
    op = CTCGreedyDecoderSeqLen(classes_index_type=et.i64, sequence_length_type=et.i32)
    assert [a.dtype.name for a in op.compute(scores(BEST)[None], np.array([7]))] == ["int64", "int32"]


# -- the loss ---------------------------------------------------------------------------------------------------------


def by_paths(logits: Any, target: list[int], blank: int, *, merge: bool) -> float:
    """Minus the log of the sum over every path that decodes to the target."""
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        kept = [c for k, c in enumerate(path) if c != blank and not (merge and k and path[k - 1] == c)]
        if kept == target:
            total += math.prod(chances[k, c] for k, c in enumerate(path))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("target", [[], [0], [0, 1], [1, 1], [0, 1, 1], [0, 1, 0, 1], [1, 1, 1]])
def test_loss_is_the_sum_over_paths(target: list[int], merge: bool) -> None:
    logits = np.random.default_rng(len(target)).normal(size=(4, 3)).astype(np.float32)
    labels = np.array([target + [0] * (4 - len(target))])
    op = CTCLoss(ctc_merge_repeated=merge)
    output = op.compute(logits[None], np.array([4]), labels, np.array([len(target)]))
    np.testing.assert_allclose(output, [by_paths(logits, target, 2, merge=merge)], rtol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "same_as"),
    [({"preprocess_collapse_repeated": True}, [0, 1, 0]), ({"unique": True}, [0, 1])],
)
def test_labels_are_prepared(attributes: dict[str, bool], same_as: list[int]) -> None:
    logits = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    labels = np.array([[0, 0, 1, 1, 0, 0]])
    output = CTCLoss(**attributes).compute(logits[None], np.array([6]), labels, np.array([5]))
    np.testing.assert_allclose(output, [by_paths(logits, same_as, 2, merge=True)], rtol=1e-5)


@pytest.mark.parametrize(
    ("logit", "label", "blank", "message"),
    [
        ([5], [1], 2, r"logit_length must be in 0\.\.4"),
        ([2], [3], 2, r"label_length must be in 0\.\.logit_length"),
        ([4], [4], 2, r"must be in 0\.\.2"),
        ([4], [1], 7, r"must be in 0\.\.2"),
    ],
)
def test_values_that_cannot_be(logit: list[int], label: list[int], blank: int, message: str) -> None:
    labels = np.array([[0, 1, 0, 9]])
    with pytest.raises(ExecutionError, match=message):
        CTCLoss().compute(np.zeros((1, 4, 3)), np.array(logit), labels, np.array(label), np.array(blank))


def test_shapes_and_types_that_disagree() -> None:
    f32 = TensorType(et.f32, Shape(4, 2, 5))
    with pytest.raises(ShapeMismatch, match="batch differs between the inputs: 2 and 3"):
        CTCGreedyDecoder().infer(f32, TensorType(et.f32, Shape(4, 3)))
    with pytest.raises(ShapeMismatch, match="data must have 3 axes"):
        CTCGreedyDecoder().infer(TensorType(et.f32, Shape(4, 2)), TensorType(et.f32, Shape(4, 2)))
    with pytest.raises(TypeMismatch, match="sequence_length must be i32 or i64, found f32"):
        CTCGreedyDecoderSeqLen().infer(f32, TensorType(et.f32, Shape(4)))
    lengths = TensorType(et.i32, Shape(4))
    with pytest.raises(ShapeMismatch, match="time differs between the inputs: 2 and 3"):
        CTCLoss().infer(f32, lengths, TensorType(et.i32, Shape(4, 3)), lengths)
