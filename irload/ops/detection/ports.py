"""Checks of the ports of detection operations."""

from __future__ import annotations

from irload.core.element import ElementType, follow, merge
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import TensorType
from irload.errors import ShapeMismatch, TypeMismatch


def require_shape(name: str, tensor: TensorType, *dims: Dim | int | None) -> None:
    """Raise ShapeMismatch for a port that cannot have these dims; None stands for any size."""
    expected = Shape(*dims)
    if tensor.shape.meet(expected) is None:
        raise ShapeMismatch(f"{name} must have the shape {expected}, found {tensor.shape}")


def require_floats(**ports: TensorType) -> ElementType:
    """The common floating-point type of the ports. Raises TypeMismatch."""
    return _float(merge(*(tensor.element for tensor in ports.values())), *ports)


def follow_floats(**ports: TensorType) -> ElementType:
    """The floating-point type of the first port; a remark if others differ. Raises TypeMismatch."""
    for name, tensor in ports.items():
        _float(tensor.element, name)
    return follow(*(tensor.element for tensor in ports.values()))


def _float(element: ElementType, *names: str) -> ElementType:
    if not (element.is_float or element.is_dynamic):
        raise TypeMismatch(f"{', '.join(names)} must be of a floating-point type, found {element}")
    return element


def dim_of(tensor: TensorType, axis: int) -> Dim:
    """A dim of the tensor, ANY if it is unknown or if the axis does not exist, which require_shape reports."""
    return ANY if tensor.rank is None or axis >= tensor.rank else tensor.shape[axis]


def agreed(subject: str, *dims: Dim) -> Dim:
    """The sizes that all dims allow. Raises ShapeMismatch if there are none."""
    result = ANY
    for dim in dims:
        met = result.meet(dim)
        if met is None:
            raise ShapeMismatch(f"{subject} must agree, found {', '.join(map(str, dims))}")
        result = met
    return result
