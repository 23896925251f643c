"""Non-maximum suppression that returns the boxes themselves: MulticlassNms and MatrixNms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ExecutionError
from irload.ops.detection.boxes import PAIRS, TOGETHER, Iou, Suppressing, iou
from irload.ops.detection.candidates import Candidates, by_score, candidates_of
from irload.ops.detection.ports import dim_of, require_floats, require_shape
from irload.ops.ports import require_element

I32_MAX = 2**31 - 1

ClassSelection = tuple[Array, Array, Array, Array]
"""n selected boxes: class [n], score [n], box [n, 4], and index among all boxes of the input [n]."""


class ClassNms(Op):
    """Base of both operations: attributes, the shapes of the outputs, and the order of the rows.

    Outputs: rows (class, score, x1, y1, x2, y2), the index of each box in the flattened input [n, 1], and the number of
    rows of each image. Boxes are corners; with `normalized` false they count whole pixels, so that width and height are
    the difference of the corners plus 1.
    """

    sort_result_type = attr.choice("none", "score", "classid", default="none")
    sort_result_across_batch = attr.boolean(default=False)
    output_type = attr.element_type(default=i64, among=INDEX)
    score_threshold = attr.number(default=0.0)
    nms_top_k = attr.integer(default=-1, rule=attr.within(-1, I32_MAX))
    keep_top_k = attr.integer(default=-1, rule=attr.within(-1, I32_MAX))
    background_class = attr.integer(default=-1, rule=attr.within(-1, I32_MAX))
    normalized = attr.boolean(default=True)

    def outputs(self, boxes: TensorType, rows: Dim, images: Dim) -> tuple[TensorType, ...]:
        """The types of the three outputs."""
        return (
            TensorType(boxes.element, Shape(rows, 6)),
            TensorType(self.output_type, Shape(rows, 1)),
            TensorType(self.output_type, Shape(images)),
        )

    def most_rows(self, boxes: Dim, classes: Dim, images: Dim) -> Dim:
        """The range of the number of rows, from the limits and the numbers of boxes, classes and images."""
        if boxes.hi is None:
            return ANY
        each = (boxes if self.nms_top_k < 0 else Dim.of(min(boxes.hi, self.nms_top_k))) * classes
        if self.keep_top_k >= 0 and each.hi is not None:
            each = Dim.of(min(each.hi, self.keep_top_k))
        return Dim(0, (each * images).hi)

    def compute(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        count = boxes.shape[1]
        return self.rows(
            boxes,
            (self.classes(boxes[k : k + 1], scores[k], k * count, 1, 0) for k in range(len(boxes))),
        )

    def classes(self, boxes: Array, scores: Array, first: int, stride: int, step: int) -> ClassSelection:
        """The best boxes of one image, by class, then by score, limited to `keep_top_k`.

        `boxes` are [1 or classes, n, 4] and `scores` [classes, n]. Box b of class c has the index first + b · stride +
        c · step.
        """
        mask = self.above_threshold(scores)
        if self.background_class >= 0:
            mask[self.background_class : self.background_class + 1] = False
        ranked = candidates_of(scores, mask).first(self.nms_top_k)
        candidates = boxes[ranked.group % len(boxes), ranked.box]
        chosen, scored = self.select(ranked, candidates)
        klass, box = ranked.group[chosen], ranked.box[chosen]
        selected = klass, scored, candidates[chosen], first + box * stride + klass * step
        selected = _ordered(selected, by_score(selected[1]))
        if self.keep_top_k >= 0:
            selected = _ordered(selected, np.arange(min(self.keep_top_k, len(selected[1]))))
        if self.sort_result_type == "classid":
            selected = _ordered(selected, np.argsort(selected[0], kind="stable"))
        return selected

    def above_threshold(self, scores: Array) -> Array:
        """A mask of the candidates, of the shape of `scores`."""
        return scores > self.score_threshold

    def select(self, ranked: Candidates, boxes: Array) -> tuple[Array, Array]:
        """The selected candidates of all classes and their scores. `boxes`: the boxes of the candidates [n, 4]."""
        raise NotImplementedError

    def rows(self, boxes: Array, images: Iterator[ClassSelection]) -> tuple[Array, ...]:
        """The three outputs, from the selected boxes of each image."""
        parts = list(images)
        counts = np.array([len(part[0]) for part in parts], self.output_type.dtype)
        klass, score, box, index = _joined([_nothing(boxes), *parts])
        if self.sort_result_across_batch and self.sort_result_type != "none":
            # The rows of each image are sorted already, so a stable sort by the remaining key suffices.
            order = by_score(score) if self.sort_result_type == "score" else np.argsort(klass, kind="stable")
            klass, score, box, index = _ordered((klass, score, box, index), order)
        rows = np.concatenate([klass[:, None].astype(box.dtype), score[:, None], box], -1)
        return rows, index[:, None].astype(self.output_type.dtype), counts


def _nothing(boxes: Array) -> ClassSelection:
    none = np.zeros(0, np.int64)
    return none, none.astype(boxes.dtype), np.zeros((0, 4), boxes.dtype), none


def _joined(parts: list[ClassSelection]) -> ClassSelection:
    klass, score, box, index = (np.concatenate(column) for column in zip(*parts, strict=True))
    return klass, score, box, index


def _ordered(selected: ClassSelection, order: Array) -> ClassSelection:
    klass, score, box, index = selected
    return klass[order], score[order], box[order], index[order]


class MulticlassNms(Suppressing, ClassNms, since=8):
    """Greedy suppression per class, then the best `keep_top_k` boxes of each image.

    Specification: MulticlassNonMaxSuppression-8. Candidates are the `nms_top_k` boxes of highest score, from
    `score_threshold` up. With `nms_eta` below 1 the threshold is multiplied by it after each selected box while it is
    above 0.5. `boxes` are [images, n, 4], `scores` [images, classes, n].
    """

    iou_threshold = attr.number(default=0.0)
    nms_eta = attr.number(default=1.0, rule=lambda v: None if 0 <= v <= 1 else "must be from 0 to 1")

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        return self._shared(boxes, scores)

    def _shared(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        require_floats(boxes=boxes, scores=scores)
        require_shape("boxes", boxes, None, None, 4)
        require_shape("scores", scores, dim_of(boxes, 0), None, dim_of(boxes, 1))
        if boxes.rank is None or scores.rank is None:
            return self.outputs(boxes, ANY, ANY)
        return self.outputs(boxes, self.most_rows(boxes.shape[1], scores.shape[1], scores.shape[0]), boxes.shape[0])

    def above_threshold(self, scores: Array) -> Array:
        return scores >= self.score_threshold

    def select(self, ranked: Candidates, boxes: Array) -> tuple[Array, Array]:
        overlap = Iou(0 if self.normalized else 1, bridge=True)
        chosen = self.suppress(boxes, self.iou_threshold, counts=ranked.counts, eta=self.nms_eta, overlap=overlap)
        return chosen, ranked.score[chosen]


class MulticlassNms9(MulticlassNms, type="MulticlassNms", since=9):
    """MulticlassNms with an alternative input: separate boxes per class, for all images concatenated.

    Specification: MulticlassNonMaxSuppression-9. With `roisnum` (the number of boxes of each image) `boxes` are
    [classes, n, 4] and `scores` [classes, n]; box b of class c then has the index b · classes + c.
    """

    def infer(self, boxes: TensorType, scores: TensorType, roisnum: TensorType | None = None) -> tuple[TensorType, ...]:
        if roisnum is None:
            return self._shared(boxes, scores)
        require_floats(boxes=boxes, scores=scores)
        require_element("roisnum", roisnum, *INDEX)
        require_shape("boxes", boxes, None, None, 4)
        require_shape("scores", scores, dim_of(boxes, 0), dim_of(boxes, 1))
        require_shape("roisnum", roisnum, None)
        if boxes.rank is None or scores.rank is None or roisnum.rank is None:
            return self.outputs(boxes, ANY, ANY)
        images = roisnum.shape[0]
        return self.outputs(boxes, self.most_rows(boxes.shape[1], boxes.shape[0], images), images)

    def compute(self, boxes: Array, scores: Array, roisnum: Array | None = None) -> tuple[Array, ...]:
        if roisnum is None:
            return super().compute(boxes, scores)
        counts = np.maximum(roisnum, 0).tolist()
        if sum(counts) > boxes.shape[1]:
            raise ExecutionError(f"roisnum has a sum of {sum(counts)}, but there are only {boxes.shape[1]} boxes")
        return self.rows(boxes, self._by_roisnum(boxes, scores, counts))

    def _by_roisnum(self, boxes: Array, scores: Array, counts: list[int]) -> Iterator[ClassSelection]:
        start, classes = 0, len(boxes)
        for count in counts:
            part = slice(start, start + count)
            yield self.classes(boxes[:, part], scores[:, part], start * classes, classes, 1)
            start += count


class MatrixNms(ClassNms, since=8):
    """Parallel suppression: scores decay by the overlap with better boxes of their class.

    Specification: MatrixNonMaxSuppression-8. Candidates are the `nms_top_k` boxes of highest score above
    `score_threshold`. A score is multiplied by the minimum, over all better boxes b, of (1 − iou) / (1 − worst(b))
    (linear) or exp(σ (worst(b)² − iou²)) (gaussian), where worst(b) is the greatest overlap of b with a better box.
    Boxes whose decayed score exceeds `post_threshold` are selected, then the best `keep_top_k` of each image.
    """

    decay_function = attr.choice("linear", "gaussian", default="linear")
    gaussian_sigma = attr.number(default=2.0)
    post_threshold = attr.number(default=0.0)

    def validate(self) -> None:
        if self.gaussian_sigma != self.gaussian_sigma:
            raise AttributeInvalid("attribute gaussian_sigma must be a number, found nan")

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        require_floats(boxes=boxes, scores=scores)
        require_shape("boxes", boxes, None, None, 4)
        require_shape("scores", scores, dim_of(boxes, 0), None, dim_of(boxes, 1))
        if boxes.rank is None:
            return self.outputs(boxes, ANY, ANY)
        if scores.rank is None:
            return self.outputs(boxes, ANY, boxes.shape[0])
        return self.outputs(boxes, self.most_rows(boxes.shape[1], scores.shape[1], scores.shape[0]), boxes.shape[0])

    def select(self, ranked: Candidates, boxes: Array) -> tuple[Array, Array]:
        decay, most = np.ones_like(ranked.score), int(ranked.counts.max(initial=1))
        together = max(1, PAIRS // (TOGETHER * most))
        starts = np.cumsum(ranked.counts) - ranked.counts
        for first in range(0, len(starts), together):
            counts = ranked.counts[first : first + together]
            rank = np.arange(counts.max(initial=0))
            candidate = starts[first : first + together, None] + rank
            exists = rank < counts[:, None]
            decay[candidate[exists]] = self._decay(boxes.take(candidate, 0, mode="clip"))[exists]
        decayed = ranked.score * decay
        chosen = np.flatnonzero(decayed > self.post_threshold)
        return chosen, decayed[chosen]

    def _decay(self, boxes: Array) -> Array:
        """The factor of each score, for boxes [classes, n, 4] by descending score. Only better boxes affect it."""
        worst, decay = np.empty_like(boxes[..., 0]), np.empty_like(boxes[..., 0])
        total = boxes.shape[1]
        for start in range(0, total, TOGETHER):
            block, end = slice(start, start + TOGETHER), min(start + TOGETHER, total)
            better = np.tri(end - start, end, start - 1, dtype=bool)  # [box of the block, box up to the block's end]
            others = boxes[:, None, :end]
            overlap = np.where(better, iou(boxes[:, block, None], others, 0 if self.normalized else 1), 0)
            worst[:, block] = overlap.max(-1)
            least = worst[:, None, :end]
            if self.decay_function == "gaussian":
                each = np.exp((least**2 - overlap**2) * boxes.dtype.type(self.gaussian_sigma))
            else:
                each = (1 - overlap) / (1 - least + boxes.dtype.type(1e-10))
            decay[:, block] = np.where(better, each, 1).min(-1)
        return decay
