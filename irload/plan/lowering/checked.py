"""Checks of integers that kernels use as sizes or indices, since kernels cannot raise errors.

These operations exist only in plans. They import the checks on demand, because stored plans import this module.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irload.core.element import i64
from irload.core.op import Op, Signature
from irload.core.tensor import Array, TensorType
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ComputeStep


class Checked(Op):
    """Base: integers in i64, after a check against data."""

    namespace = "opset"
    folds = False

    def infer(self, integers: TensorType, data: TensorType) -> TensorType:
        return TensorType(i64, integers.shape)

    def compute(self, integers: Array, data: Array) -> Array:
        self.require(integers, data)
        return integers.astype(np.int64)

    def require(self, integers: Array, data: Array) -> None:
        """Raise ExecutionError if an integer is out of range."""
        raise NotImplementedError


Checked.signature = Signature.of(Checked)


class RegionImages(Checked):
    """The batch elements of regions, all of which exist."""

    type = "RegionImages"

    def require(self, integers: Array, data: Array) -> None:
        from irload.ops.detection.sampling import batch_of

        for image in integers[(integers < 0) | (integers >= len(data))].tolist():
            batch_of(image, len(data))


class SequenceLengths(Checked):
    """The lengths of sequences, none of which is longer than the data."""

    type = "SequenceLengths"

    def require(self, integers: Array, data: Array) -> None:
        from irload.ops.sequence.sequences import require_lengths

        require_lengths(integers, data.shape[1])


CHECKS: Mapping[str, type[Checked]] = {cls.type: cls for cls in (RegionImages, SequenceLengths)}
"""The operations by their types."""


def checked(check: type[Checked], integers: Value, data: Value, name: str) -> ComputeStep:
    """Return the step that checks integers against data, for the layer with this name."""
    result = Value(integers.shape, np.dtype(np.int64), name=name)
    return ComputeStep.of(check(), [integers, data], result)
