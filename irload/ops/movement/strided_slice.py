"""StridedSlice: slices with masks that ignore ends, insert axes, drop axes, or expand to all remaining axes."""

from __future__ import annotations

from collections.abc import Sequence

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import UNBOUNDED_HI, Array, Bounds, TensorType, length_of
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.movement.slicing import Interval, intervals, python_slice, sliced_dim
from irload.ops.ports import require_integer, require_rank


class StridedSlice(Op, since=1):
    """Elements `begin` to `end` (exclusive) by `strides` of each axis, modified by masks.

    Specification: StridedSlice-1. If a mask is 1: `begin_mask` and `end_mask` ignore that end, so that the slice
    extends to the end of the axis; `new_axis_mask` inserts an axis of one element; `shrink_axis_mask` selects the
    element at begin and drops the axis; `ellipsis_mask` (at most one) expands to all axes that are not described
    otherwise. The ellipsis takes precedence over a new axis, and a new axis over shrinking. Masks may be shorter than
    begin; missing values are 0.
    """

    begin_mask = attr.integers()
    end_mask = attr.integers(default=(), spec_required=True)
    new_axis_mask = attr.integers(default=())
    shrink_axis_mask = attr.integers(default=())
    ellipsis_mask = attr.integers(default=())

    widens = False

    def validate(self) -> None:
        masks = {
            "end_mask": self.end_mask,
            "new_axis_mask": self.new_axis_mask,
            "shrink_axis_mask": self.shrink_axis_mask,
            "ellipsis_mask": self.ellipsis_mask,
        }
        for name, mask in {"begin_mask": self.begin_mask, **masks}.items():
            if any(bit not in (0, 1) for bit in mask):
                raise AttributeInvalid(f"attribute {name} must hold zeros and ones, found {list(mask)}")
        for name, mask in masks.items():
            if mask and len(mask) != len(self.begin_mask):
                expected = f"empty or as long as begin_mask ({len(self.begin_mask)})"
                raise AttributeInvalid(f"attribute {name} must be {expected}, found {list(mask)}")
        if sum(self.ellipsis_mask) > 1:
            raise AttributeInvalid(f"attribute ellipsis_mask may hold one 1, found {list(self.ellipsis_mask)}")

    def infer(
        self, data: TensorType, begin: TensorType, end: TensorType, strides: TensorType | None = None
    ) -> TensorType:
        ports = {"begin": begin, "end": end} | ({} if strides is None else {"strides": strides})
        require_integer(**ports)
        count = ANY
        for name, tensor in ports.items():
            require_rank(name, tensor, 1)
            # As in OpenVINO, the length of unknown strides is not used.
            length = ANY if name == "strides" and tensor.value is None else length_of(tensor)
            met = count.meet(length)
            if met is None:
                raise ShapeMismatch(f"{', '.join(ports)} must have equal lengths, found {length} for {name}")
            count = met
        if data.rank is None or not count.is_static:
            return TensorType(data.element, Shape.unranked())
        starts, stops = intervals(begin), intervals(end)
        steps = (1,) * count.size if strides is None else strides.ints
        dims: list[Dim] = []
        sliced: list[tuple[int, Dim]] = []  # positions in dims, and the dims that are known without begin and end
        plan = self.plan(data.rank, count.size)
        for k, axis in plan:
            if axis is None:
                dims.append(Dim(1, 1))
            elif k is None:
                dims.append(data.shape[axis])
            elif self._bit(self.shrink_axis_mask, k):
                self._check_shrink(data.shape[axis], axis, None if starts is None else starts[k])
            else:
                dim, step = data.shape[axis], None if steps is None else steps[k]
                if step == 0:
                    raise ShapeMismatch("strides must not be zero")
                sliced.append((len(dims), Dim(0, dim.ceil_div(abs(step or 1)).hi)))
                start = None if starts is None else starts[k]
                stop = None if stops is None else stops[k]
                dims.append(sliced[-1][1] if step is None else self._dim(k, dim, start, stop, step))
        rest = 0 if 1 in self.ellipsis_mask else data.rank - sum(k is not None and a is not None for k, a in plan)
        if sliced and (starts is None or stops is None) and Shape(*dims[: len(dims) - rest]).is_static:
            # Even if masks cover all unknown values, irload does not infer a static shape, as OpenVINO does not.
            dims[sliced[-1][0]] = sliced[-1][1]
        return TensorType(data.element, Shape(*dims))

    def _dim(self, k: int, dim: Dim, start: Interval | None, stop: Interval | None, step: int) -> Dim:
        begin, end = self._masked(k, UNBOUNDED_HI if dim.hi is None else dim.hi, step)
        start = start if begin is None else (begin, begin)
        stop = stop if end is None else (end, end)
        return (
            Dim(0, dim.ceil_div(abs(step)).hi) if start is None or stop is None else sliced_dim(dim, start, stop, step)
        )

    def _masked(self, k: int, size: int, step: int) -> tuple[int | None, int | None]:
        """The ends of the axis if masks ignore the given ones, else None."""
        begin = (size if step < 0 else 0) if self._bit(self.begin_mask, k) else None
        end = (-1 - size if step < 0 else size) if self._bit(self.end_mask, k) else None
        return begin, end

    def _check_shrink(self, dim: Dim, axis: int, start: tuple[int, int] | None) -> None:
        if dim.hi is not None and start is not None and start[0] == start[1] and not -dim.hi <= start[0] < dim.hi:
            raise ShapeMismatch(
                f"begin {start[0]} is out of range for axis {axis} of dimension {dim}, which it shrinks"
            )

    def plan(self, rank: int, count: int) -> list[tuple[int | None, int | None]]:
        """Pairs (position in begin, axis of the data) in output order, including shrunk axes.

        A new axis has no axis of the data, a whole axis no position in begin.
        """
        ellipsis = self.ellipsis_mask.index(1) if 1 in self.ellipsis_mask[:count] else None
        new = [k != ellipsis and self._bit(self.new_axis_mask, k) for k in range(count)]
        described = count - sum(new) - (ellipsis is not None)
        if described > rank:
            raise ShapeMismatch(f"begin describes {described} axes of data of rank {rank}")
        result: list[tuple[int | None, int | None]] = []
        axis = 0
        for k in range(count):
            if k == ellipsis:
                result += [(None, axis + j) for j in range(rank - described)]
                axis += rank - described
            elif new[k]:
                result.append((k, None))
            else:
                result.append((k, axis))
                axis += 1
        return result + [(None, j) for j in range(axis, rank)]

    @staticmethod
    def _bit(mask: Sequence[int], k: int) -> bool:
        return k < len(mask) and mask[k] == 1

    def compute(self, data: Array, begin: Array, end: Array, strides: Array | None = None) -> Array:
        starts, stops = begin.tolist(), end.tolist()
        steps = [1] * len(starts) if strides is None else strides.tolist()
        index: list[slice | int | None] = []
        for k, axis in self.plan(data.ndim, len(starts)):
            if axis is None:
                index.append(None)
            elif k is None:
                index.append(slice(None))
            elif self._bit(self.shrink_axis_mask, k):
                index.append(0 if self._bit(self.begin_mask, k) else starts[k])
            else:
                first, last = self._masked(k, data.shape[axis], steps[k])
                start, stop = starts[k] if first is None else first, stops[k] if last is None else last
                index.append(python_slice(data.shape[axis], start, stop, steps[k]))
        return data[tuple(index)]

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)
