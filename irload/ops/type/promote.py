"""The common element type of two tensors, and their conversion to it."""

from __future__ import annotations

from irload.core import attribute as attr
from irload.core import element as et
from irload.core.context import RunContext
from irload.core.element import ElementType, dynamic
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.errors import TypeMismatch
from irload.ops.casting import convert

UNKNOWN_TO_IT = (et.f8e8m0, et.f4e2m1, et.nf4, et.u2, et.u3, et.u6, et.string)
SIGNED = {e.bits: e for e in (et.i4, et.i8, et.i16, et.i32, et.i64)}


class ConvertPromoteTypes(Op, since=14):
    """Both inputs, converted to the element type that represents the values of both.

    Specification: ConvertPromoteTypes-14. `promote_unsafe` allows lossy types; with `pytorch_scalar_promotion` a
    tensor's type takes precedence over a scalar's of the same kind; `u64_integer_promotion_target` is the type for u64
    and a signed type.
    """

    promote_unsafe = attr.boolean(default=False)
    pytorch_scalar_promotion = attr.boolean(default=False)
    u64_integer_promotion_target = attr.element_type(default=et.f32)

    widens = False

    def infer(self, a: TensorType, b: TensorType) -> tuple[TensorType, TensorType]:
        for element in (a.element, b.element):
            if element in UNKNOWN_TO_IT:
                raise TypeMismatch(f"{element} cannot be promoted")
        element = self._common(a, b)
        return TensorType(element, a.shape), TensorType(element, b.shape)

    def compute(self, a: Array, b: Array, *, context: RunContext) -> tuple[Array, Array]:
        to = context.outputs[0].element
        return convert(a, to), convert(b, to)

    def _common(self, a: TensorType, b: TensorType) -> ElementType:
        x, y = a.element, b.element
        if dynamic in (x, y):
            return dynamic
        if x is y or y is et.boolean:
            return x
        if x is et.boolean:
            return y
        if x.is_float != y.is_float:
            return self._with_float(*((x, y) if x.is_float else (y, x)))
        if self.pytorch_scalar_promotion and None in (a.rank, b.rank):
            return dynamic
        if self.pytorch_scalar_promotion and (a.rank == 0) != (b.rank == 0):
            return self._over_scalar(*((y, x) if a.rank == 0 else (x, y)))
        if x.is_signed != y.is_signed:
            return self._with_unsigned(*((x, y) if x.is_signed else (y, x)))
        if x.bits != y.bits:
            return x if x.bits > y.bits else y
        return self._next_float(x, y)

    def _with_float(self, real: ElementType, integer: ElementType) -> ElementType:
        """A float and an integer: the float, if it is twice as wide."""
        if not self.promote_unsafe and real.bits < 2 * integer.bits:
            raise TypeMismatch(f"{integer} cannot be promoted to {real} without promote_unsafe")
        return real

    def _over_scalar(self, tensor: ElementType, scalar: ElementType) -> ElementType:
        """A tensor and a scalar of one kind: the tensor's type, if it represents the scalar's values."""
        same = tensor.is_signed == scalar.is_signed and tensor.bits >= scalar.bits
        above = tensor.is_signed and not scalar.is_signed and 2 * tensor.bits >= scalar.bits
        if not (self.promote_unsafe or same or above):
            raise TypeMismatch(f"a scalar of {scalar} cannot be promoted to {tensor} without promote_unsafe")
        return tensor

    def _with_unsigned(self, signed: ElementType, unsigned: ElementType) -> ElementType:
        """A signed and an unsigned integer: the signed type that represents both, if there is one."""
        if unsigned.bits <= 32 and (self.promote_unsafe or 2 * unsigned.bits <= signed.bits):
            return SIGNED[max(2 * unsigned.bits, signed.bits)]
        if not self.promote_unsafe:
            raise TypeMismatch(f"{unsigned} and {signed} cannot be promoted without promote_unsafe")
        return self.u64_integer_promotion_target

    def _next_float(self, x: ElementType, y: ElementType) -> ElementType:
        """Two different floats of one width: the next wider one."""
        if not self.promote_unsafe:
            raise TypeMismatch(f"{x} and {y} cannot be promoted without promote_unsafe")
        return et.f16 if x.bits == 8 else et.f32
