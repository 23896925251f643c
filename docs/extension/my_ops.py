"""A user-defined operation, root-mean-square normalization; docs/extensions.md explains it."""

import numpy as np

from irload import Op, ShapeMismatch, TensorType, TypeMismatch, attr


class RMSNorm(Op, type="RMSNorm", opset="extension"):
    """Divides `x` by the root mean square of its last axis and multiplies it by `gain`."""

    epsilon = attr.number(default=1e-6, rule=attr.non_negative)

    def infer(self, x: TensorType, gain: TensorType) -> TensorType:
        if not x.element.is_float:
            raise TypeMismatch(f"x must be of a floating-point type, found {x.element}")
        if x.rank is not None and gain.rank == 1 and x.shape[-1].meet(gain.shape[0]) is None:
            raise ShapeMismatch(f"gain must have one value for each of {x.shape[-1]} features, found {gain.shape}")
        return TensorType(x.element, x.shape)

    def compute(self, x: np.ndarray, gain: np.ndarray) -> np.ndarray:
        square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(square + x.dtype.type(self.epsilon)) * gain
