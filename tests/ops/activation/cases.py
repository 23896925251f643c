"""Random cases of the activations."""

from __future__ import annotations

from functools import partial

from irload.core import element as et
from tests.harness.case import Case, Random, cases, const, param
from tests.harness.material import FLOATS, INTEGERS, pick, random_array, random_shape
from tests.ops.arithmetic.cases_unary import WIDE, unary

cases("ReLU", "opset1")(partial(unary, "ReLU", elements=(*FLOATS, *INTEGERS)))
cases("Sigmoid", "opset1")(partial(unary, "Sigmoid", elements=(*FLOATS, *WIDE)))
for _type, _version in (
    ("Gelu", "opset2"),
    ("HSigmoid", "opset5"),
    ("HSwish", "opset4"),
    ("Mish", "opset4"),
    ("SoftPlus", "opset4"),
    ("SoftSign", "opset9"),
):
    cases(_type, _version)(partial(unary, _type))


@cases("Gelu", "opset7")
def gelu(rng: Random, version: str) -> Case:
    case = unary("Gelu", rng, version)
    mode = pick(rng, ("ERF", "TANH", "erf", None))
    return Case("Gelu", version, case.inputs, {} if mode is None else {"approximation_mode": mode})


@cases("Clamp", "opset1")
def clamp(rng: Random, version: str) -> Case:
    case = unary("Clamp", rng, version, (*FLOATS, *INTEGERS))
    low, high = sorted(rng.uniform(-3, 3, 2).tolist())
    if case.inputs[0].element.is_integer:
        low, high = low - 1, high + 1  # at least one integer is in the range
    return Case("Clamp", version, case.inputs, {"min": low, "max": high})


@cases("Elu", "opset1")
def elu(rng: Random, version: str) -> Case:
    return Case("Elu", version, unary("Elu", rng, version).inputs, {"alpha": float(rng.uniform(0, 2))})


@cases("Selu", "opset1")
def selu(rng: Random, version: str) -> Case:
    x = unary("Selu", rng, version).inputs[0]
    shape = pick(rng, ((), (1,)))
    return Case(
        "Selu", version, [x, *(const(random_array(rng, shape, x.element, 0.5, 2), x.element) for _ in range(2))]
    )


@cases("HardSigmoid", "opset1")
def hard_sigmoid(rng: Random, version: str) -> Case:
    x = unary("HardSigmoid", rng, version).inputs[0]
    return Case("HardSigmoid", version, [x, *(const(random_array(rng, (), x.element, 0, 1), x.element) for _ in "ab")])


@cases("Swish", "opset4")
def swish(rng: Random, version: str) -> Case:
    x = unary("Swish", rng, version).inputs[0]
    make = pick(rng, (const, param))
    beta = [make(random_array(rng, (), x.element, 0, 3), x.element)] if rng.random() < 0.6 else []
    return Case("Swish", version, [x, *beta])


@cases("PReLU", "opset1")
def prelu(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *FLOATS, et.i32, et.i8))
    shape = random_shape(rng, (1, 4))
    by_channel = shape[1:2] if len(shape) > 1 else shape
    slope = pick(rng, ((1,), by_channel, shape, (1,) * len(shape)))
    make = pick(rng, (const, param))
    x = random_array(rng, shape, element)
    return Case("PReLU", version, [param(x, element), make(random_array(rng, slope, element), element)])


@cases("SoftMax", "opset1", "opset8")
def softmax(rng: Random, version: str) -> Case:
    return along_an_axis("SoftMax", rng, version, negative=version == "opset8")


@cases("LogSoftmax", "opset5")
def log_softmax(rng: Random, version: str) -> Case:
    return along_an_axis("LogSoftmax", rng, version, negative=True)


def along_an_axis(type: str, rng: Random, version: str, negative: bool) -> Case:
    element = pick(rng, FLOATS)
    shape = random_shape(rng, (1, 4))
    axis = int(rng.integers(-len(shape) if negative else 0, len(shape)))
    attributes = {} if len(shape) > 1 and rng.random() < 0.2 and negative else {"axis": axis}
    return Case(type, version, [param(random_array(rng, shape, element), element)], attributes)


@cases("Identity", "opset16")
def identity(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS, et.boolean))
    return Case("Identity", version, [param(random_array(rng, random_shape(rng), element), element)])
