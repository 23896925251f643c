"""Steps along rows and over windows: reductions, normalizations, poolings, interpolation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis, window_axes
from irload.plan.ir.program import PlanInvalid, Step, Value
from irload.plan.ir.steps import rules
from irload.plan.ir.steps.elementwise import WithEpilogue
from irload.record import record

if TYPE_CHECKING:
    from irload.ops.image.taps import Taps


REDUCED = {
    "sum": ("int32", "int64"),
    "mean": (),
    "max": ("int32", "int64", "bool"),
    "min": ("int32", "int64", "bool"),
}
"""The types other than f32 of each kind of reduction."""


@record(frozen=False, eq=False, kw_only=True)
class ReduceStep(Step):
    """Sum, mean, maximum or minimum over axes; the output keeps each reduced axis with length 1, or drops it.

    The values are f32, or of one of the types in `REDUCED`. Sums of integers wrap.
    """

    kind: str
    axes: tuple[int, ...]

    def check(self) -> None:
        rules.counts(self, 1)
        rules.equal("the dtype", self.output.dtype, self.inputs[0].dtype)
        if self.output.dtype.name not in ("float32", *REDUCED[self.kind]):
            raise PlanInvalid(f"the {self.kind} is of {self.output.dtype}")
        shape, axes = self.inputs[0].shape, self.axes
        if not axes or not all(a < b for a, b in pairwise(axes)) or not 0 <= axes[0] <= axes[-1] < len(shape):
            raise PlanInvalid(f"axes {axes} are not sorted, or out of range")
        kept = tuple(1 if k in axes else n for k, n in enumerate(shape))
        dropped = tuple(n for k, n in enumerate(shape) if k not in axes)
        if self.output.shape not in (kept, dropped):
            raise PlanInvalid(f"the shape is {self.output.shape}, expected {kept} or {dropped}")


@record(frozen=False, eq=False, kw_only=True)
class SoftmaxStep(Step):
    """Softmax along one axis."""

    axis: int

    def check(self) -> None:
        rules.counts(self, 1)
        rules.f32(self.output)
        rules.like(self.output, self.inputs[0])
        if not 0 <= self.axis < len(self.output.shape):
            raise PlanInvalid(f"axis {self.axis} is out of range")


@record(frozen=False, eq=False, kw_only=True)
class CumulativeSumStep(Step):
    """CumSum: each element is the sum of the elements up to it along an axis, in this order.

    `exclusive` excludes the element itself, `reverse` sums from the end.
    """

    axis: int
    exclusive: bool
    reverse: bool

    def check(self) -> None:
        rules.counts(self, 1)
        rules.like(self.output, self.inputs[0])
        if not 0 <= self.axis < len(self.output.shape):
            raise PlanInvalid(f"axis {self.axis} is out of range")


@record(frozen=False, eq=False, kw_only=True)
class NormalizeStep(WithEpilogue):
    """(x − mean) / sqrt(variance + eps) over the trailing axes; x / sqrt(mean(x²) + eps) without `center`.

    With `outside`, eps is added to the square root instead. Inputs: x, then the epilogue's inputs.
    """

    MAIN_INPUTS = 1

    axes: tuple[int, ...]
    eps: float
    center: bool = True
    outside: bool = False

    def check(self) -> None:
        rules.f32(self.output)
        rules.like(self.output, self.inputs[0])
        rank = len(self.output.shape)
        rules.equal("the axes", self.axes, tuple(range(rank - len(self.axes), rank)))
        rules.expression(self.epilogue, [self.output], self.operands, self.outputs)

    @property
    def layout_sources(self) -> Sequence[Value]:
        return () if 1 in self.axes else self.inputs[:1]


@record(frozen=False, eq=False, kw_only=True)
class GroupNormalizeStep(Step):
    """Group normalization with scale and shift. Inputs: x [N,C,X…], scale [C], bias [C]."""

    keeps_layout = True

    groups: int
    eps: float

    def check(self) -> None:
        rules.counts(self, 3)
        rules.f32(*self.inputs, self.output)
        rules.like(self.output, self.inputs[0])
        channels = self.output.shape[1]
        rules.equal("the number of channels modulo groups", channels % self.groups, 0)
        for value in self.inputs[1:]:
            rules.equal("scale and bias", value.shape, (channels,))


@record(frozen=False, eq=False)
class RotaryEmbeddingStep(Step):
    """Rotary embedding: x·cos + (−x₂, x₁)·sin, where x₁ and x₂ are the halves of x along the last axis.

    Inputs: x, cos, sin; cos and sin broadcast to x.
    """

    def check(self) -> None:
        rules.counts(self, 3)
        rules.f32(*self.inputs, self.output)
        rules.like(self.output, self.inputs[0])
        rules.equal("the length of the last axis modulo 2", self.output.shape[-1] % 2, 0)
        for value in self.inputs[1:]:
            rules.broadcasts(value, self.output.shape)


@record(frozen=False, eq=False, kw_only=True)
class PoolStep(Step):
    """Maximum or mean over windows. The `divisor` of a mean excludes padding if "real", and includes it if "full".

    The maximum of quantized data is u8, the mean f32. The padding at the end follows from the output's shape.
    """

    prefers_channels_last = True

    kind: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    divisor: str = "real"

    @property
    def windows(self) -> tuple[WindowAxis, ...]:
        """The windows along each spatial axis."""
        sizes, counts = self.inputs[0].shape[2:], self.output.shape[2:]
        return window_axes(sizes, counts, self.kernel, self.strides, self.dilations, self.pads_begin)

    def check(self) -> None:
        rules.counts(self, 1)
        (x,) = self.inputs
        if x.dtype == np.uint8:  # quantized data
            rules.equal("the dtype", self.output.dtype, x.dtype if self.kind == "max" else np.dtype(np.float32))
        else:
            rules.f32(x, self.output)
        rules.equal("batch and channels", self.output.shape[:2], x.shape[:2])
        rules.lengths(self, ("kernel", "strides", "dilations", "pads_begin"), len(x.shape) - 2)
        rules.equal("the rank", len(self.output.shape), len(x.shape))


@record()
class SizedTaps:
    """The taps that resample an axis from `size` to `out` elements, both of which may be symbolic.

    `of(size, out)` computes the taps.
    """

    size: int
    out: int
    of: Callable[[int, int], Taps]

    @property
    def index(self) -> Array:
        """The positions of the taps."""
        return self.of(self.size, self.out).index

    @property
    def weight(self) -> Array:
        """The weights of the taps."""
        return self.of(self.size, self.out).weight


@record(frozen=False, eq=False, kw_only=True)
class ResampleStep(Step):
    """Interpolation along one axis: each position is a weighted sum of elements (taps) of the data.

    `index` and `weight` have the shape [new size, taps]; a weight may be 0.
    """

    keeps_layout = True

    axis: int
    taps: Taps | SizedTaps

    @property
    def index(self) -> Array:
        """The positions of the taps in the data."""
        return self.taps.index

    @property
    def weight(self) -> Array:
        """The weights of the taps."""
        return self.taps.weight

    def check(self) -> None:
        rules.counts(self, 1)
        (x,), axis = self.inputs, self.axis
        rules.f32(x, self.output)
        rules.equal("the weights", self.weight.shape, self.index.shape)
        rules.equal("the shape", self.output.shape, (*x.shape[:axis], len(self.index), *x.shape[axis + 1 :]))
        if self.index.min() < 0 or self.index.max() >= x.shape[axis]:
            raise PlanInvalid(f"taps are out of range for the {x.shape[axis]} elements of axis {axis}")


@record(frozen=False, eq=False, kw_only=True)
class SampleStep(Step):
    """GridSample-9: data at the points (x, y) of a grid. Inputs: data [N,C,H,W], grid [N,H',W',2].

    `mode` is bilinear, bicubic or nearest, `padding` zeros, border or reflection.
    """

    mode: str
    padding: str
    align_corners: bool

    def check(self) -> None:
        rules.counts(self, 2)
        data, grid = self.inputs
        rules.f32(data, grid, self.output)
        rules.equal("the coordinates of a point", grid.shape[3:], (2,))
        rules.equal("the batch of the grid", grid.shape[0], data.shape[0])
        rules.equal("the shape", self.output.shape, (*data.shape[:2], *grid.shape[1:3]))

    @property
    def layout_sources(self) -> Sequence[Value]:
        return self.inputs[:1]


@record(frozen=False, eq=False, kw_only=True)
class SampleSumStep(Step):
    """Weighted sums of bilinear samples: y[l,c,p] = Σ_s factors[l,p,s] · data[images[l],c] at points[l,p,s].

    Inputs: data [N,C,H,W]; points [L,P,S,2], the (y, x) of samples in pixels; factors, which broadcast to [L,P,S];
    images [L] in i64. Pixels outside the image are 0 (`padding` zeros) or the nearest pixel inside (border). Samples
    are 0 unless each coordinate is within `bounds`: 0 ≤ y < size (image), −1 < y < size (border), −1 ≤ y ≤ size
    (margin).

    Only compiled kernels run this step. Without them, the operation is not lowered, because its `compute` is faster.
    """

    prefers_channels_last = True

    padding: str
    bounds: str

    def check(self) -> None:
        rules.counts(self, 4)
        data, points, factors, images = self.inputs
        rules.f32(data, points, factors, self.output)
        rules.equal("the coordinates of a point", points.shape[3:], (2,))
        rules.broadcasts(factors, points.shape[:3])
        rules.equal("the dtype of the images", images.dtype, np.dtype(np.int64))
        rules.equal("the shape of the images", images.shape, points.shape[:1])
        rules.equal("the shape", self.output.shape, (points.shape[0], data.shape[1], points.shape[1]))
