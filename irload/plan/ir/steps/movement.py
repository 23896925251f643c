"""Steps that move elements: views, Concat, Gather, Relayout."""

from __future__ import annotations

from irload.core.size import extent
from irload.plan.ir.program import Step
from irload.plan.ir.steps import rules
from irload.plan.ir.strides import Strided, View
from irload.record import record


@record(frozen=False, eq=False)
class ViewStep(Step):
    """Base of steps whose output is a view of the input's buffer if memory planning permits, otherwise a copy."""

    keeps_elements = True

    @property
    def view(self) -> View:
        """The `View` that computes the output from the input."""
        raise NotImplementedError

    def check(self) -> None:
        rules.counts(self, 1)
        (source,) = self.inputs
        rules.equal("the dtype", self.output.dtype, source.dtype)
        seen = self.view.of(Strided.dense(source.shape))
        rules.equal("the shape", self.output.shape, None if seen is None else seen.shape)


@record(frozen=False, eq=False)
class ReshapeStep(ViewStep):
    """The same elements in another shape: Reshape, Squeeze, Unsqueeze."""

    @property
    def view(self) -> View:
        return View("reshape", self.output.shape)

    def check(self) -> None:
        rules.equal("the number of elements", self.output.size, self.inputs[0].size)
        ViewStep.check(self)


@record(frozen=False, eq=False, kw_only=True)
class TransposeStep(ViewStep):
    """The same elements with permuted axes."""

    order: tuple[int, ...]

    @property
    def view(self) -> View:
        return View("transpose", self.order)

    def check(self) -> None:
        rules.equal("the sorted order", sorted(self.order), list(range(len(self.inputs[0].shape))))
        ViewStep.check(self)


@record(frozen=False, eq=False, kw_only=True)
class SliceStep(ViewStep):
    """A range of elements along each axis: Split, Slice."""

    index: tuple[slice, ...]

    @property
    def view(self) -> View:
        shape = self.inputs[0].shape
        index = (*self.index, *(slice(None),) * (len(shape) - len(self.index)))
        return View("slice", ranges=tuple(extent(s, n) for s, n in zip(index, shape, strict=True)))


@record(frozen=False, eq=False)
class BroadcastStep(ViewStep):
    """The elements repeated along axes of length 1: Broadcast."""

    @property
    def view(self) -> View:
        return View("broadcast", self.output.shape)

    def check(self) -> None:
        rules.broadcasts(self.inputs[0], self.output.shape)
        ViewStep.check(self)


@record(frozen=False, eq=False, kw_only=True)
class ConcatStep(Step):
    """Concatenation along an axis."""

    adapts_layout = True
    keeps_elements = True
    keeps_layout = True

    axis: int

    def check(self) -> None:
        shapes = [v.shape for v in self.inputs]
        total = sum(s[self.axis] for s in shapes)
        for shape in shapes:
            expected = (*shape[: self.axis], total, *shape[self.axis + 1 :])
            rules.equal("the shape", self.output.shape, expected)
        for value in self.inputs:
            rules.equal(f"the dtype of {value}", value.dtype, self.output.dtype)


INDICES = ("int32", "int64")
"""The index types of a Gather."""


@record(frozen=False, eq=False, kw_only=True)
class GatherStep(Step):
    """Slices of the data, selected along an axis by i32 or i64 indices. Inputs: data, indices.

    Negative indices count from the end. Indices out of range give zeros. The output may be f32 for f16 data. The first
    `shared` axes are batch axes of data and indices: each batch element of the data has separate indices.
    """

    axis: int
    shared: int = 0

    @property
    def widens(self) -> bool:
        """True if the data is f16 and the result f32."""
        return (self.inputs[0].dtype.name, self.output.dtype.name) == ("float16", "float32")

    def check(self) -> None:
        rules.counts(self, 2)
        data, indices = self.inputs
        if not self.widens:
            rules.equal("the dtype", self.output.dtype, data.dtype)
        rules.equal("whether the indices are i32 or i64", indices.dtype.name in INDICES, True)
        rules.equal("the shared dims", indices.shape[: self.shared], data.shape[: self.shared])
        shape = (*data.shape[: self.axis], *indices.shape[self.shared :], *data.shape[self.axis + 1 :])
        rules.equal("the shape", self.output.shape, shape)


@record(frozen=False, eq=False)
class RelayoutStep(Step):
    """A copy of a tensor into another layout, for example between back ends that store it differently."""

    def check(self) -> None:
        rules.counts(self, 1)
        rules.like(self.output, self.inputs[0])
