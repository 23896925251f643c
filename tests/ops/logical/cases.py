"""Random cases of logical operations."""

from __future__ import annotations

from functools import partial

from irload.core import element as et
from tests.harness.case import Case, Random, cases, param
from tests.harness.material import pick, random_array, random_shape
from tests.ops.arithmetic.cases import operands


def logical(type: str, rng: Random, version: str) -> Case:
    inputs, attributes = operands(rng, et.boolean)
    return Case(type, version, inputs, attributes)


for _type in ("LogicalAnd", "LogicalOr", "Xor"):
    cases(_type, "opset1")(partial(logical, _type))
cases("LogicalXor", "opset1", "opset2")(partial(logical, "LogicalXor"))


@cases("LogicalNot", "opset1")
def logical_not(rng: Random, version: str) -> Case:
    element = pick(rng, (et.boolean, et.boolean, et.i32, et.u8, et.f32))
    return Case("LogicalNot", version, [param(random_array(rng, random_shape(rng, (0, 4), 0), element), element)])
