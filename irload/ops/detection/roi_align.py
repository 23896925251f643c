"""Pooling of regions by bilinear samples: ROIAlign, ROIAlignRotated, ExperimentalDetectronROIFeatureExtractor."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid
from irload.ops.detection.ports import agreed, dim_of, require_floats, require_shape
from irload.ops.detection.sampling import batch_of, sample_bins
from irload.ops.ports import require_integer


class RoiAlignBase(Op):
    """Base of both operations: data [batches, channels, height, width], regions, and the batch index of each region."""

    multiplies = True

    pooled_h = attr.integer(default=0, rule=attr.positive, spec_required=True)
    pooled_w = attr.integer(default=0, rule=attr.positive, spec_required=True)
    sampling_ratio = attr.integer(default=0, rule=attr.advised(attr.non_negative), spec_required=True)
    spatial_scale = attr.number(default=0.0, spec_required=True)

    roi_size = 4

    def infer(self, data: TensorType, rois: TensorType, batch_indices: TensorType) -> TensorType:
        element = require_floats(data=data, rois=rois)
        require_integer(batch_indices=batch_indices)
        require_shape("data", data, None, None, None, None)
        require_shape("rois", rois, None, self.roi_size)
        require_shape("batch_indices", batch_indices, None)
        count = agreed("the numbers of rois and batch_indices", dim_of(rois, 0), dim_of(batch_indices, 0))
        return TensorType(element, Shape(count, dim_of(data, 1), self.pooled_h, self.pooled_w))

    def compute(self, data: Array, rois: Array, batch_indices: Array) -> Array:
        result = np.zeros((len(rois), data.shape[1], self.pooled_h, self.pooled_w), data.dtype)
        if result.size:
            for k, (roi, batch) in enumerate(zip(rois, batch_indices.tolist(), strict=True)):
                result[k] = self.pool(data[batch_of(batch, len(data))], roi)
        return result

    def pool(self, image: Array, roi: Array) -> Array:
        """One region of one image, pooled."""
        raise NotImplementedError


class ROIAlign(RoiAlignBase, since=3):
    """Pools regions (x1, y1, x2, y2) to a fixed size by bilinear samples, without rounding their corners.

    Specification: ROIAlign-3. `spatial_scale` scales regions to cells of `data`. Each of `pooled_h` × `pooled_w` bins
    is the mean or the maximum of `sampling_ratio`² samples (0: about one per cell). The maximum starts from 0, as in
    OpenVINO, so it is never negative. Regions are at least one cell large.
    """

    mode = attr.choice("avg", "max", default="avg", spec_required=True)

    def pool(self, image: Array, roi: Array) -> Array:
        start, end = self.corners(roi)
        return self._pool(image, start, np.maximum(end - start, 1))

    def corners(self, roi: Array) -> tuple[Array, Array]:
        """The corners in cells, (y, x) each."""
        scaled = roi * roi.dtype.type(self.spatial_scale)
        return scaled[[1, 0]], scaled[[3, 2]]

    def _pool(self, image: Array, start: Array, size: Array) -> Array:
        bins = self.pooled_h, self.pooled_w
        return sample_bins(image, start.tolist(), size.tolist(), bins, self.sampling_ratio, self.mode)


class ROIAlign9(ROIAlign, type="ROIAlign", since=9):
    """ROIAlign with a choice of the position of cell centers.

    Specification: ROIAlign-9. `aligned_mode` asymmetric is version 3; half_pixel_for_nn shifts the scaled corners by
    −0.5; half_pixel also adds 0.5 before scaling. The latter two allow regions smaller than one cell.
    """

    aligned_mode = attr.choice("asymmetric", "half_pixel_for_nn", "half_pixel", default="asymmetric")

    def pool(self, image: Array, roi: Array) -> Array:
        if self.aligned_mode == "asymmetric":
            return super().pool(image, roi)
        half = roi.dtype.type(0.5)
        start, end = self.corners(roi + half if self.aligned_mode == "half_pixel" else roi)
        return self._pool(image, start - half, end - start)


class ROIAlignRotated(RoiAlignBase, since=15):
    """ROIAlign of regions (center x, center y, width, height, angle in radians), by the mean of the samples.

    Specification: ROIAlignRotated-15. Cell centers are at half pixels. `clockwise_mode` is the direction of the angle.
    """

    clockwise_mode = attr.boolean(default=False)

    roi_size = 5

    def pool(self, image: Array, roi: Array) -> Array:
        scale, angle = roi.dtype.type(self.spatial_scale), -roi[4] if self.clockwise_mode else roi[4]
        center_x, center_y = roi[:2] * scale - roi.dtype.type(0.5)
        width, height = (roi[2:4] * scale).tolist()
        cos, sin = np.cos(angle), np.sin(angle)

        def turned(y: Array, x: Array) -> tuple[Array, Array]:
            return y * cos - x * sin + center_y, y * sin + x * cos + center_x

        bins = self.pooled_h, self.pooled_w
        return sample_bins(
            image, (-height / 2, -width / 2), (height, width), bins, self.sampling_ratio, transform=turned
        )


class ExperimentalDetectronROIFeatureExtractor(Op, since=6):
    """ROIAlign over a pyramid of feature maps; the size of a region selects its level.

    Specification: ExperimentalDetectronROIFeatureExtractor-6. A region of 224² pixels uses level 2 (counted from 0),
    one of twice its side the next level; levels are clamped to the existing ones, and regions without area give zeros.
    Maps are [1, channels, height, width]; `pyramid_scales` are their strides. Outputs: features [regions, channels,
    output_size, output_size], and the regions.
    """

    multiplies = True

    output_size = attr.integer(default=0, rule=attr.positive, spec_required=True)
    sampling_ratio = attr.integer(default=0, rule=attr.advised(attr.non_negative), spec_required=True)
    pyramid_scales = attr.integers(default=(), rule=attr.positive, spec_required=True)
    aligned = attr.boolean(default=False)

    def infer(self, rois: TensorType, *pyramid: TensorType) -> tuple[TensorType, TensorType]:
        element = require_floats(rois=rois, **{f"pyramid[{k}]": level for k, level in enumerate(pyramid)})
        if not pyramid:
            raise AttributeInvalid("takes at least one level of the pyramid, found none")
        if len(self.pyramid_scales) < len(pyramid):
            raise AttributeInvalid(
                f"pyramid_scales has {len(self.pyramid_scales)} values for {len(pyramid)} levels of the pyramid"
            )
        require_shape("rois", rois, None, 4)
        for k, level in enumerate(pyramid):
            require_shape(f"pyramid[{k}]", level, 1, None, None, None)
        channels = agreed("the channels of the pyramid", *(dim_of(level, 1) for level in pyramid))
        count = dim_of(rois, 0)
        features = Shape(count, channels, self.output_size, self.output_size)
        return TensorType(element, features), TensorType(element, Shape(count if rois.rank else ANY, 4))

    def compute(self, rois: Array, *pyramid: Array) -> tuple[Array, Array]:
        bins = self.output_size, self.output_size
        result = np.zeros((len(rois), pyramid[0].shape[1], *bins), rois.dtype)
        size = rois[:, 2:] - rois[:, :2]
        area = size.prod(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            level = np.floor(2 + np.log2(np.sqrt(area) / 224 + rois.dtype.type(1e-6)))
        offset = 0.5 if self.aligned else 0
        for k in np.flatnonzero((area > 0) & (result.size > 0)):
            at = int(np.clip(level[k], 0, len(pyramid) - 1))
            corners = rois[k] * rois.dtype.type(1 / self.pyramid_scales[at]) - rois.dtype.type(offset)
            start, extent = corners[[1, 0]], np.maximum(corners[[3, 2]] - corners[[1, 0]], 1)
            result[k] = sample_bins(pyramid[at][0], start.tolist(), extent.tolist(), bins, self.sampling_ratio)
        return result, rois
