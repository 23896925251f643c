"""Random cases of bitwise operations."""

from __future__ import annotations

from functools import partial

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, param
from tests.harness.material import INTEGERS, pick, random_array, random_shape
from tests.ops.arithmetic.cases import operands

# Only the CPU plugin computes most of these operations. It does not support pdpd, and shifts i64 and u64 as i32.
SHIFTED = tuple(e for e in INTEGERS if e.bits <= 32)


def bitwise(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (*INTEGERS, et.boolean))
    inputs, attributes = operands(rng, element, -100, 100, pdpd=False)
    return Case(type, version, inputs, attributes)


for _type in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    cases(_type, "opset13")(partial(bitwise, _type))


@cases("BitwiseNot", "opset13")
def bitwise_not(rng: Random, version: str) -> Case:
    element = pick(rng, (*INTEGERS, et.boolean))
    return Case("BitwiseNot", version, [param(random_array(rng, random_shape(rng), element, -100, 100), element)])


def shift(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, SHIFTED)
    inputs, attributes = operands(rng, element, pdpd=False)
    left = type == "BitwiseLeftShift"  # it saturates narrow types on the CPU plugin
    a = random_array(rng, inputs[0].value.shape, element, *((0, 7) if left else (-100, 100)))
    b = random_array(rng, inputs[1].value.shape, element, 0, 4 if left else element.bits - 1)
    return Case(type, version, [param(a, element), Input(b, element, inputs[1].constant)], attributes)


for _type in ("BitwiseLeftShift", "BitwiseRightShift"):
    cases(_type, "opset15")(partial(shift, _type))
