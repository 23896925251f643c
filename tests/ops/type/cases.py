"""Random cases of type conversions."""

from __future__ import annotations

import math

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import TypeMismatch
from irload.ops.casting import to_nf4
from irload.ops.type.promote import ConvertPromoteTypes
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape

COMMON = (*FLOATS, *INTEGERS, et.boolean)
EIGHT = (et.f8e4m3, et.f8e5m2)
NIBBLES = (et.i4, et.u4)
SUB_BYTE = (*NIBBLES, et.u1, et.u2, et.u3, et.u6)


def values(rng: Random, element: ElementType, to: ElementType) -> Array:
    """Values of a type for a conversion, including values that wrap in the target if OpenVINO's cast is defined."""
    shape = random_shape(rng, (0, 4), 0)
    if element in SUB_BYTE:
        span = 1 << element.bits
        low = -span // 2 if element.is_signed else 0
        return rng.integers(low, low + span, shape).astype(element.dtype)
    wide = 40 if element in EIGHT else 300 if element.bits < 32 or to in EIGHT else 70000
    if element.is_integer and element.bits == 8:
        wide = 127
    x = random_array(rng, shape, element, -wide, wide)
    return to_nf4(x / 300) if element is et.nf4 else x


@cases("Convert", "opset1")
def convert(rng: Random, version: str) -> Case:
    element, to = pick(rng, COMMON), pick(rng, COMMON)
    # For integers beyond the range of f16 the reference differs from the CPU plugin, which converts them like floats.
    oracle = "cpu" if element.is_integer and to is et.f16 else "both"
    return Case("Convert", version, [param(values(rng, element, to), element)], {"destination_type": to}, oracle=oracle)


@cases("Convert", "opset1")
def convert_narrow(rng: Random, version: str) -> Case:
    narrow, other = pick(rng, (*EIGHT, *SUB_BYTE)), pick(rng, (et.f32, et.f16, et.bf16, et.i32, et.i64, et.u8, et.i8))
    element, to = (narrow, other) if rng.random() < 0.5 else (other, narrow)
    return Case("Convert", version, [param(values(rng, element, to), element)], {"destination_type": to})


@cases("Convert", "opset1")
def convert_four_bits(rng: Random, version: str) -> Case:
    narrow = pick(rng, (et.nf4, et.f4e2m1, et.f8e8m0))
    element, to = (narrow, et.f32) if rng.random() < 0.5 else (et.f32, narrow)
    return Case("Convert", version, [param(values(rng, element, to), element)], {"destination_type": to})


@cases("ConvertLike", "opset1")
def convert_like(rng: Random, version: str) -> Case:
    element, to = pick(rng, COMMON), pick(rng, COMMON)
    like = random_array(rng, random_shape(rng), to)
    # Only the CPU plugin computes ConvertLike; it saturates values that Convert wraps.
    x = random_array(rng, random_shape(rng, (0, 4), 0), element, 0, 100)
    return Case("ConvertLike", version, [param(x, element), param(like, to)])


PROMOTABLE = (*COMMON, *EIGHT)


@cases("ConvertPromoteTypes", "opset14")
def convert_promote_types(rng: Random, version: str) -> Case:
    while True:
        unsafe, scalars = bool(rng.integers(2)), bool(rng.integers(2))
        x, y = pick(rng, PROMOTABLE), pick(rng, PROMOTABLE)
        target = pick(rng, (et.f32, et.f64, et.i64))
        operands = [param(random_array(rng, pick(rng, ((), random_shape(rng))), e, 0, 20), e) for e in (x, y)]
        attributes = {"promote_unsafe": unsafe, "pytorch_scalar_promotion": scalars}
        if rng.random() < 0.5:
            attributes["u64_integer_promotion_target"] = target
        try:
            op = ConvertPromoteTypes(
                promote_unsafe=unsafe,
                pytorch_scalar_promotion=scalars,
                u64_integer_promotion_target=attributes.get("u64_integer_promotion_target", et.f32),
            )
            op.infer(*(TensorType(i.element, Shape(*i.value.shape)) for i in operands))
        except TypeMismatch:
            continue
        return Case("ConvertPromoteTypes", version, operands, attributes, outputs=2)


TEXTS = ("", "a", "Intel", "two words", "ünïcödé", "日本語", "🙂")


@cases("StringTensorUnpack", "opset15")
def string_tensor_unpack(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (0, 3))
    texts = rng.choice(np.array(TEXTS, object), shape)
    return Case("StringTensorUnpack", version, [pick(rng, (const, param))(texts, et.string)], outputs=3)


@cases("StringTensorPack", "opset15")
def string_tensor_pack(rng: Random, version: str) -> Case:
    symbols = np.frombuffer(b"Intel OpenVINO", np.uint8)
    shape = random_shape(rng, (0, 3))
    points = np.sort(rng.integers(0, symbols.size + 1, 2 * math.prod(shape)))
    begins, ends = points[::2].reshape(shape), points[1::2].reshape(shape)
    index, make = pick(rng, INDICES), pick(rng, (const, param))
    return Case("StringTensorPack", version, [make(begins, index), make(ends, index), param(symbols)])
