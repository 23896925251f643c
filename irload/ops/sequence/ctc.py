"""Connectionist temporal classification: greedy decoding of class scores, and the loss of a labelling."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, dynamic, i32
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.sequence.recurrent import merged, of_rank


def _require_float(name: str, tensor: TensorType) -> None:
    if not (tensor.element.is_float or tensor.element is dynamic):
        raise TypeMismatch(f"{name} must be of a floating-point type, found {tensor.element}")


def _require_index(*tensors: tuple[str, TensorType]) -> None:
    for name, tensor in tensors:
        if tensor.element not in (*INDEX, dynamic):
            raise TypeMismatch(f"{name} must be i32 or i64, found {tensor.element}")


def decoded(best: Array, alive: Array, blank: int, *, merge_repeated: bool) -> tuple[Array, Array]:
    """The best classes [batch, time] without blanks (and repetitions), padded with −1; and their number."""
    before = np.pad(best[:, :-1], ((0, 0), (1, 0)), constant_values=-1) if best.shape[1] else best
    labels = alive & (best != blank)
    if merge_repeated:
        labels &= best != before
    classes = np.full(best.shape, -1, np.int64)
    row, time = np.nonzero(labels)
    classes[row, (np.cumsum(labels, 1) - 1)[row, time]] = best[row, time]
    return classes, labels.sum(1)


class CTCGreedyDecoder(Op, since=1):
    """The best class of each step, repetitions merged and blanks dropped.

    Specification: CTCGreedyDecoder-1. data [T, N, C], sequence_mask [T, N] → [N, T, 1, 1] of the type of data, padded
    with −1. A sequence ends at the first zero of its mask; the blank is class C − 1.
    """

    ctc_merge_repeated = attr.boolean(default=True)

    def infer(self, data: TensorType, sequence_mask: TensorType) -> TensorType:
        _require_float("data", data)
        if not sequence_mask.element.is_numeric:
            raise TypeMismatch(f"sequence_mask must be of a numeric type, found {sequence_mask.element}")
        scores, mask = of_rank("data", data, 3), of_rank("sequence_mask", sequence_mask, 2)
        time, batch = merged("time", scores[0], mask[0]), merged("batch", scores[1], mask[1])
        return TensorType(data.element, Shape(batch, time, 1, 1))

    def compute(self, data: Array, sequence_mask: Array) -> Array:
        best = data.argmax(-1).T
        alive = np.logical_and.accumulate(sequence_mask.T != 0, axis=1)
        classes, _ = decoded(best, alive, data.shape[-1] - 1, merge_repeated=self.ctc_merge_repeated)
        return classes[..., None, None].astype(data.dtype)


class CTCGreedyDecoderSeqLen(Op, since=6):
    """The best class of each step, repetitions merged and blanks dropped, for sequences of given lengths.

    Specification: CTCGreedyDecoderSeqLen-6. data [N, T, C], sequence_length [N], blank_index (default C − 1) → classes
    [N, T], padded with −1, and their number [N].
    """

    merge_repeated = attr.boolean(default=True)
    classes_index_type = attr.element_type(default=i32, among=INDEX)
    sequence_length_type = attr.element_type(default=i32, among=INDEX)

    def infer(
        self, data: TensorType, sequence_length: TensorType, blank_index: TensorType | None = None
    ) -> tuple[TensorType, TensorType]:
        _require_float("data", data)
        _require_index(("sequence_length", sequence_length))
        if blank_index is not None:
            _require_index(("blank_index", blank_index))
            if blank_index.rank != 0 and blank_index.shape.meet(Shape(1)) is None:
                raise ShapeMismatch(f"blank_index must be a scalar or have one element, found {blank_index.shape}")
        scores, lengths = of_rank("data", data, 3), of_rank("sequence_length", sequence_length, 1)
        batch = merged("batch", scores[0], lengths[0])
        return (
            TensorType(self.classes_index_type, Shape(batch, scores[1])),
            TensorType(self.sequence_length_type, Shape(batch)),
        )

    def compute(self, data: Array, sequence_length: Array, blank_index: Array | None = None) -> tuple[Array, Array]:
        time = data.shape[1]
        _check_lengths("sequence_length", sequence_length, time)
        blank = data.shape[-1] - 1 if blank_index is None else int(blank_index.reshape(()))
        alive = np.arange(time) < sequence_length[:, None]
        classes, counts = decoded(data.argmax(-1), alive, blank, merge_repeated=self.merge_repeated)
        return classes.astype(self.classes_index_type.dtype), counts.astype(self.sequence_length_type.dtype)


class CTCLoss(Op, since=4):
    """Minus the logarithm of the probability of a labelling: the sum over all paths that decode to it.

    Specification: CTCLoss-4. logits [N, T, C], logit_length [N], labels [N, T], label_length [N], blank_index (default
    C − 1) → [N]. `preprocess_collapse_repeated` merges equal neighbours of the labels, `unique` keeps the first
    occurrence of each. With `ctc_merge_repeated` a label may last several steps, so equal neighbours need a blank
    between; without it, each label is exactly one step. The loss of an impossible labelling is infinity.
    """

    preprocess_collapse_repeated = attr.boolean(default=False)
    ctc_merge_repeated = attr.boolean(default=True)
    unique = attr.boolean(default=False)

    def infer(
        self,
        logits: TensorType,
        logit_length: TensorType,
        labels: TensorType,
        label_length: TensorType,
        blank_index: TensorType | None = None,
    ) -> TensorType:
        _require_float("logits", logits)
        _require_index(("logit_length", logit_length), ("label_length", label_length), ("labels", labels))
        if blank_index is not None:
            _require_index(("blank_index", blank_index))
            if blank_index.rank not in (None, 0):
                raise ShapeMismatch(f"blank_index must be a scalar, found {blank_index.shape}")
        scores, targets = of_rank("logits", logits, 3), of_rank("labels", labels, 2)
        lengths = of_rank("logit_length", logit_length, 1), of_rank("label_length", label_length, 1)
        merged("time", scores[1], targets[1])
        batch = merged("batch", scores[0], lengths[0][0], targets[0], lengths[1][0])
        return TensorType(logits.element, Shape(batch))

    def compute(
        self,
        logits: Array,
        logit_length: Array,
        labels: Array,
        label_length: Array,
        blank_index: Array | None = None,
    ) -> Array:
        classes = logits.shape[-1]
        blank = classes - 1 if blank_index is None else int(blank_index)
        _check_lengths("logit_length", logit_length, logits.shape[1])
        if np.any(label_length > logit_length) or np.any(label_length < 0):
            raise ExecutionError(
                f"label_length must be in 0..logit_length, found {label_length.tolist()[:8]} "
                f"for {logit_length.tolist()[:8]}"
            )
        wide = logits.astype(np.float64)
        top = wide.max(-1, keepdims=True)
        scores = wide - top - np.log(np.exp(wide - top).sum(-1, keepdims=True))
        losses = np.empty(len(scores), logits.dtype)
        for n, (steps, count) in enumerate(zip(logit_length.tolist(), label_length.tolist(), strict=True)):
            target = self._target(labels[n, :count])
            if np.any(target < 0) or np.any(target >= classes) or not 0 <= blank < classes:
                raise ExecutionError(f"labels and blank_index must be in 0..{classes - 1}")
            paths = _merging_paths if self.ctc_merge_repeated else _single_paths
            losses[n] = -paths(scores[n, :steps], target, blank)
        return losses

    def _target(self, labels: Array) -> Array:
        if self.unique:
            return labels[np.sort(np.unique(labels, return_index=True)[1])]
        if self.preprocess_collapse_repeated and labels.size:
            return labels[np.append(True, labels[1:] != labels[:-1])]
        return labels


def _single_paths(scores: Array, target: Array, blank: int) -> float:
    """Log-probability of all paths with one step per label. State s: the first s labels are complete."""
    total = np.full(len(target) + 1, -np.inf)
    total[0] = 0
    for step in scores:
        stayed = total + step[blank]
        total[1:] = np.logaddexp(stayed[1:], total[:-1] + step[target])
        total[0] = stayed[0]
    return float(total[-1])


def _merging_paths(scores: Array, target: Array, blank: int) -> float:
    """Log-probability of all paths with any number of steps per label. States: blank, label, blank, label, …, blank."""
    states = np.full(2 * len(target) + 1, blank)
    states[1::2] = target
    # A label may follow another one directly only if they differ.
    skips = np.append([False, False], (states[2:] != blank) & (states[2:] != states[:-2]))[: len(states)]
    # Two impossible states before the first one, so that each state has two predecessors.
    total = np.full(len(states) + 2, -np.inf)
    total[2] = 0  # as if the first step followed a blank
    for step in scores:
        skipped = np.where(skips, total[:-2], -np.inf)
        total[2:] = np.logaddexp(np.logaddexp(total[2:], total[1:-1]), skipped) + step[states]
    return float(np.logaddexp.reduce(total[-2:]))


def _check_lengths(name: str, lengths: Array, longest: int) -> None:
    if np.any(lengths < 0) or np.any(lengths > longest):
        raise ExecutionError(f"{name} must be in 0..{longest}, found {lengths.tolist()[:8]}")
