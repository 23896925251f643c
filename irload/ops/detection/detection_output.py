"""DetectionOutput, the last layer of SSD: decodes boxes, suppresses overlapping ones and lists the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from irload.core import attribute as attr
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.detection.boxes import Suppressing
from irload.ops.detection.candidates import by_score, candidates_of
from irload.ops.detection.ports import dim_of, follow_floats, require_floats, require_shape

Decoded = Callable[[Array, "int | Array"], Array]
"""Takes the numbers of prior boxes and one class, or a class for each; returns the boxes [n, 4]."""

CORNER, CENTER = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"


class DetectionOutputBase(Suppressing):
    """Base of both versions.

    Inputs: box_logits [images, 4 · boxes (· classes)], class_preds [images, boxes · classes], proposals [1 or images, 1
    or 2, 4 or 5 · boxes] (prior boxes, then their variances), and optionally the class and box predictions of a first
    stage, which refine the priors; priors with objectness below `objectness_score` are dropped. Output: [1, 1, n, 7]
    rows (image, class, score, x1, y1, x2, y2), followed by a row that begins with −1 if fewer than n boxes are
    detected. Inputs of different types are a remark; the output has the type of box_logits, as in OpenVINO.
    """

    background_label_id = attr.integer(default=0)
    top_k = attr.integer(default=-1, rule=attr.at_least(-1))
    variance_encoded_in_target = attr.boolean(default=False)
    keep_top_k = attr.integers(rule=lambda v: attr.within(-(2**31), 2**31 - 1)(v) if v else "must not be empty")
    code_type = attr.choice(CORNER, CENTER, default=CORNER)
    share_location = attr.boolean(default=True)
    nms_threshold = attr.number(default=0.0, spec_required=True)
    confidence_threshold = attr.number(default=0.0)
    clip_after_nms = attr.boolean(default=False)
    clip_before_nms = attr.boolean(default=False)
    decrease_label_id = attr.boolean(default=False)
    normalized = attr.boolean(default=False)
    input_height = attr.integer(default=1, rule=attr.positive)
    input_width = attr.integer(default=1, rule=attr.positive)
    objectness_score = attr.number(default=0.0)

    @property
    def prior_size(self) -> int:
        """Values per prior box: 4 coordinates, preceded by a batch element if they are not normalized."""
        return 4 if self.normalized else 5

    def infer(
        self,
        box_logits: TensorType,
        class_preds: TensorType,
        proposals: TensorType,
        aux_class_preds: TensorType | None = None,
        aux_box_preds: TensorType | None = None,
    ) -> TensorType:
        ports = {"box_logits": box_logits, "class_preds": class_preds, "proposals": proposals}
        if aux_class_preds is not None and aux_box_preds is None:
            raise ShapeMismatch("aux_class_preds requires aux_box_preds")
        if aux_class_preds is not None and aux_box_preds is not None:
            ports |= {"aux_class_preds": aux_class_preds, "aux_box_preds": aux_box_preds}
        require_floats(**{name: tensor for name, tensor in ports.items() if name != "proposals"})
        element = follow_floats(**ports)
        for name, tensor in ports.items():
            require_shape(name, tensor, *(None,) * (3 if name == "proposals" else 2))
        priors, classes = self.counts(*ports.values())
        images = dim_of(box_logits, 0)
        if not images.is_static and dim_of(class_preds, 0).is_static:
            images = dim_of(class_preds, 0)
        self._check(ports, images, priors, classes)
        return TensorType(element, Shape(1, 1, self._most(images, priors, classes), 7))

    def counts(self, *inputs: TensorType) -> tuple[int | None, int | None]:
        """The number of prior boxes and of classes, None if the shapes do not determine it."""
        raise NotImplementedError

    def _check(self, ports: dict[str, TensorType], images: Dim, priors: int | None, classes: int | None) -> None:
        def times(*factors: int | None) -> Dim | None:
            known = [factor for factor in factors if factor is not None]
            return Dim.of(prod(known)) if len(known) == len(factors) else None

        if priors == 0:
            raise ShapeMismatch(f"proposals must hold at least one prior box, found {ports['proposals'].shape}")
        located = times(priors, 4, 1 if self.share_location else classes)
        require_shape("box_logits", ports["box_logits"], images, located)
        require_shape("class_preds", ports["class_preds"], images, times(priors, classes))
        batch = dim_of(ports["proposals"], 0)
        rows = 1 if self.variance_encoded_in_target else 2
        require_shape("proposals", ports["proposals"], None, rows, times(priors, self.prior_size))
        if not batch.contains(1) and batch.meet(images) is None:
            raise ShapeMismatch(f"proposals must be of one image or of {images}, found {ports['proposals'].shape}")
        if "aux_class_preds" in ports:
            require_shape("aux_class_preds", ports["aux_class_preds"], images, times(priors, 2))
            require_shape("aux_box_preds", ports["aux_box_preds"], images, located)

    def _most(self, images: Dim, priors: int | None, classes: int | None) -> Dim:
        labels = ANY if classes is None else Dim.of(classes)
        if self.keep_top_k[0] > 0:
            return images * Dim.of(self.keep_top_k[0])
        if self.keep_top_k[0] == -1 and self.top_k > 0:
            return images * Dim.of(self.top_k) * labels
        return images * (ANY if priors is None else Dim.of(priors)) * labels

    def compute(
        self,
        box_logits: Array,
        class_preds: Array,
        proposals: Array,
        aux_class_preds: Array | None = None,
        aux_box_preds: Array | None = None,
    ) -> Array:
        images, priors = len(box_logits), proposals.shape[2] // self.prior_size
        scores = class_preds.reshape(images, priors, -1)
        classes = scores.shape[2]
        shape = (images, priors, 1 if self.share_location else classes, 4)
        boxes, variances = (np.broadcast_to(a, (images, priors, 4)) for a in self._priors(proposals))
        deltas = [box_logits.reshape(shape)]
        if aux_class_preds is not None and aux_box_preds is not None:
            deltas.insert(0, aux_box_preds.reshape(shape))
            background = (np.arange(classes) == self.background_label_id).astype(scores.dtype)
            absent = aux_class_preds.reshape(images, priors, 2)[:, :, 1:] < self.objectness_score
            scores = np.where(absent, background, scores)
        decoded = [partial(self._boxes, boxes[k], variances[k], [d[k] for d in deltas]) for k in range(images)]
        rows = [row for k in range(images) for row in self._image(k, decoded[k], scores[k])]
        result = np.zeros((self._most(Dim.of(images), priors, classes).size, 7), box_logits.dtype)
        detected = np.concatenate([np.zeros((0, 7), result.dtype), *rows])[: len(result)]
        result[: len(detected)] = detected
        result[len(detected) : len(detected) + 1, 0] = -1
        return result[None, None]

    def _priors(self, proposals: Array) -> tuple[Array, Array]:
        """Prior boxes as fractions of the image [1 or images, boxes, 4], and their variances."""
        boxes = proposals[:, 0].reshape(len(proposals), -1, self.prior_size)[..., -4:]
        if not self.normalized:
            boxes = boxes / np.array([self.input_width, self.input_height] * 2, boxes.dtype)
        if self.variance_encoded_in_target:
            return boxes, np.ones_like(boxes)
        count = boxes.shape[1] * 4
        return boxes, proposals[:, 1, :count].reshape(boxes.shape)

    def _boxes(
        self, priors: Array, variances: Array, deltas: Sequence[Array], prior: Array, label: int | Array
    ) -> Array:
        """The boxes of some priors and classes, decoded when they are needed: most priors have too low a score."""
        boxes, klass = priors[prior], 0 if self.share_location else label
        for stage in deltas:
            boxes = self._decode(boxes, variances[prior], stage[prior, klass])
        return boxes

    def _decode(self, priors: Array, variances: Array, deltas: Array) -> Array:
        scaled = deltas * variances
        if self.code_type == CORNER:
            boxes = priors + scaled
        else:
            size, center = priors[..., 2:] - priors[..., :2], (priors[..., :2] + priors[..., 2:]) / 2
            center, half = scaled[..., :2] * size + center, np.exp(scaled[..., 2:]) * size / 2
            boxes = np.concatenate([center - half, center + half], -1)
        return boxes.clip(0, 1) if self.clip_before_nms else boxes

    def _image(self, image: int, boxes: Decoded, scores: Array) -> list[Array]:
        """The rows of one image, with scores [priors, classes]."""
        select = self._by_best_class if self.decrease_label_id else self._by_class
        label, prior = select(boxes, scores)
        if -1 < self.keep_top_k[0] < len(prior):
            value = scores[prior, label]
            best = np.lexsort((prior, -value))[: self.keep_top_k[0]]
            best = best[np.argsort(label[best], kind="stable")]
            label, prior = label[best], prior[best]
        decoded = boxes(prior, label)
        decoded = decoded.clip(0, 1) if self.clip_after_nms else decoded
        shown = label - 1 if self.decrease_label_id else label
        head = np.stack([np.full(len(prior), image), shown, scores[prior, label]], -1)
        return [np.concatenate([head, decoded], -1).astype(decoded.dtype)]

    def _by_class(self, boxes: Decoded, scores: Array) -> tuple[Array, Array]:
        """The class and prior of selected boxes, by class; classes are independent (Caffe)."""
        by_class = scores.T
        mask = by_class > self.confidence_threshold
        if self.background_label_id >= 0:
            mask[self.background_label_id : self.background_label_id + 1] = False
        ranked = candidates_of(by_class, mask).first(self.top_k)
        stay = self.suppress(boxes(ranked.box, ranked.group), self.nms_threshold, counts=ranked.counts)
        return ranked.group[stay], ranked.box[stay]

    def _by_best_class(self, boxes: Decoded, scores: Array) -> tuple[Array, Array]:
        """The class and prior of selected boxes, by class; each prior counts only for its best class (MXNet)."""
        eligible = scores.copy()
        eligible[:, 0] = -1
        if 0 <= self.background_label_id < scores.shape[1]:
            eligible[:, self.background_label_id] = -1
        label, value = eligible.argmax(1), eligible.max(1)
        candidates = np.flatnonzero((value > -1) & (value >= self.confidence_threshold))
        candidates = candidates[by_score(value[candidates])]
        candidates = candidates if self.top_k < 0 else candidates[: self.top_k]
        prior = candidates[np.argsort(label[candidates], kind="stable")]
        counts = np.bincount(label[prior], minlength=1)
        stay = self.suppress(boxes(prior, label[prior]), self.nms_threshold, counts=counts)
        return label[prior[stay]], prior[stay]


def _static(dim: Dim) -> int | None:
    return dim.lo if dim.is_static else None


def _divided(name: str, dim: Dim, divisor: int | None) -> int | None:
    """A static dim divided by a known count. Raises ShapeMismatch if there is a remainder."""
    size = _static(dim)
    if size is None or not divisor:
        return None
    if size % divisor:
        raise ShapeMismatch(f"{name} must have a multiple of {divisor} values per image, found {size}")
    return size // divisor


class DetectionOutput(DetectionOutputBase, since=1):
    """Decodes the boxes of a single-shot detector and selects the best of each class by non-maximum suppression.

    Specification: DetectionOutput-1. `code_type` CORNER adds the predictions, times the variances, to the corners of
    the priors; CENTER_SIZE moves the center in units of the size and scales the size by exp. Per class, at most `top_k`
    boxes enter suppression; per image, at most `keep_top_k` are returned.
    """

    num_classes = attr.integer(rule=attr.positive)

    def counts(self, *inputs: TensorType) -> tuple[int | None, int | None]:
        logits, preds, proposals, *aux = inputs
        located = 4 * (1 if self.share_location else self.num_classes)
        per_input = [
            _divided("box_logits", dim_of(logits, 1), located),
            _divided("class_preds", dim_of(preds, 1), self.num_classes),
            _divided("proposals", dim_of(proposals, 2), self.prior_size),
            _divided("aux_class_preds", dim_of(aux[0], 1), 2) if aux else None,
        ]
        return next((count for count in per_input if count is not None), None), self.num_classes


class DetectionOutput8(DetectionOutputBase, type="DetectionOutput", since=8):
    """DetectionOutput that takes the number of classes from the shapes. Specification: DetectionOutput-8."""

    def counts(self, *inputs: TensorType) -> tuple[int | None, int | None]:
        logits, preds, proposals, *aux = inputs
        priors = _divided("proposals", dim_of(proposals, 2), self.prior_size)
        if priors is None and aux:
            priors = _divided("aux_class_preds", dim_of(aux[0], 1), 2)
        classes = _divided("class_preds", dim_of(preds, 1), priors)
        if classes is None and not self.share_location:
            each = None if priors is None else 4 * priors
            classes = _divided("box_logits", dim_of(logits, 1), each)
            if classes is None and aux:
                classes = _divided("aux_box_preds", dim_of(aux[1], 1), each)
        if priors is None and (self.share_location or classes):
            priors = _divided("box_logits", dim_of(logits, 1), 4 * (1 if self.share_location else classes or 1))
        return priors, classes

    def validate(self) -> None:
        if self.background_label_id < -1:
            raise AttributeInvalid(
                f"attribute background_label_id must be at least -1, found {self.background_label_id}"
            )
