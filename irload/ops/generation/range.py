"""Range, in two versions: an arithmetic progression."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np

from irload.core import attribute as attr
from irload.core.element import ElementType, dynamic, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.size import is_size
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch


def length(start: float, stop: float, step: float) -> int:
    """The number of values from `start` in steps of `step` before `stop`: max(ceil((stop − start) / step), 0).

    0 for a step of 0: in an integer type, a step below 1 is truncated to 0.
    """
    if step == 0:
        return 0
    if _is_whole(start) and _is_whole(stop) and _is_whole(step):
        return max(-((start - stop) // step), 0)
    return max(math.ceil((stop - start) / step), 0)


def _is_whole(number: float) -> TypeGuard[int]:
    return isinstance(number, int) or is_size(number)


class Progression(Op):
    """Three scalars to a list."""

    def element(self, *inputs: TensorType) -> ElementType:
        """The element type of the output."""
        raise NotImplementedError

    def infer(self, start: TensorType, stop: TensorType, step: TensorType) -> TensorType:
        element = self.element(start, stop, step)
        numbers: list[float] = []
        for name, tensor in (("start", start), ("stop", stop), ("step", step)):
            if tensor.rank not in (None, 0):
                raise ShapeMismatch(f"{name} must be a scalar, found {tensor.shape}")
            if tensor.value is not None and tensor.value.size == 1:
                number = tensor.value.item()
                if is_size(number):
                    numbers += [number] if element.is_integer else []
                    continue
                if not math.isfinite(number):
                    raise ShapeMismatch(f"{name} must be finite, found {number}")
                numbers.append(math.trunc(number) if element.is_integer else float(number))
        if step.value is not None and not step.value.any():
            raise ShapeMismatch(f"step must not be 0, found {step.value}")
        return TensorType(element, Shape(Dim.of(length(*numbers)) if len(numbers) == 3 else ANY))

    @staticmethod
    def progression(start: Array, stop: Array, step: Array) -> Array:
        """The values, from three scalars of one dtype, in that dtype."""
        positions: Array = np.arange(length(start.item(), stop.item(), step.item()))
        return start + positions.astype(start.dtype) * step


class Range(Progression, since=1):
    """The values start, start + step, … before `stop`.

    Specification: Range-1. All three are scalars of one numeric type, also the type of the output; step must not be 0.
    """

    def element(self, *inputs: TensorType) -> ElementType:
        element = merge(*(t.element for t in inputs))
        if not element.is_numeric:
            raise TypeMismatch(f"start, stop and step must be of a numeric type, found {element}")
        return element

    def compute(self, start: Array, stop: Array, step: Array) -> Array:
        return self.progression(start, stop, step)


class Range4(Progression, type="Range", since=4):
    """Range with inputs of different types, which are first converted to `output_type`.

    Specification: Range-4. Conversion to an integer type truncates; a step that is truncated to 0 gives an empty list.
    """

    output_type = attr.element_type(default=dynamic, spec_required=True)

    def validate(self) -> None:
        if not self.output_type.is_numeric or self.output_type is dynamic:
            raise AttributeInvalid(f"attribute output_type must be a numeric type, found {self.output_type}")

    def element(self, *inputs: TensorType) -> ElementType:
        for name, tensor in zip(("start", "stop", "step"), inputs, strict=True):
            if not tensor.element.is_numeric:
                raise TypeMismatch(f"{name} must be of a numeric type, found {tensor.element}")
        return self.output_type

    def compute(self, start: Array, stop: Array, step: Array) -> Array:
        target = self.output_type
        numbers = [n.astype(target.dtype) for n in (start, stop, step)]
        if target.is_low_precision:
            numbers = [n.astype(np.float32) for n in numbers]
        return self.progression(*numbers)
