"""Legacy layers of elements, each with its definition in NumPy: activations, arithmetic, reductions, normalizations."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from tests.read.legacy_layers import NCHW, SCALE, SLOPES, Row, softmax, spread

X = np.array([[-2.5, -1, -0.4, 0, 0.3, 1, 2.5]], np.float32)
Y = np.array([[2, -1, 0.5, 1, 0.3, -3, 2]], np.float32)
INSIDE = np.array([[0.1, 0.35, 0.6, 0.9]], np.float32)
BEYOND_1 = INSIDE + 1
FLAGS = np.array([[0, 1, 2, 0, 1, 0, 3]], np.float32)
OTHERS = np.array([[0, 0, 1, 1, 2, 0, 0]], np.float32)
AXES = np.array([1, 2], np.int32)
LEVELS = {k: np.full(1, v, np.float32) for k, v in ((1, -1), (2, 1), (3, -1), (4, 3))}


def leaky(x: Array, slope: Array | float) -> Array:
    return np.where(x > 0, x, x * slope)


def elu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x))


FUNCTIONS = {
    "Abs": np.abs,
    "Atan": np.arctan,
    "Ceiling": np.ceil,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Exp": np.exp,
    "Floor": np.floor,
    "Negative": np.negative,
    "Neg": np.negative,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Tan": np.tan,
    "Tanh": np.tanh,
    "TanH": np.tanh,
    "Asinh": np.arcsinh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Logistic": lambda x: 1 / (1 + np.exp(-x)),
    "SoftPlus": lambda x: np.log1p(np.exp(x)),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}
BOUNDED = {"Acos": np.arccos, "Asin": np.arcsin, "Log": np.log, "Sqrt": np.sqrt, "Atanh": np.arctanh}
UNARY = [
    *(Row(name, "", [X.shape], [X.shape], f, values={0: X}) for name, f in FUNCTIONS.items()),
    *(Row(name, "", [INSIDE.shape], [INSIDE.shape], f, values={0: INSIDE}) for name, f in BOUNDED.items()),
    Row("Acosh", "", [INSIDE.shape], [INSIDE.shape], np.arccosh, values={0: BEYOND_1}),
    *(
        Row("Activation", f'<data type="{name.lower()}"/>', [X.shape], [X.shape], FUNCTIONS[name], values={0: X})
        for name in ("Abs", "TanH", "Logistic", "Exp")
    ),
    Row("Activation", '<data type="relu" negative_slope="0.5"/>', [NCHW], [NCHW], lambda x: leaky(x, 0.5)),
    Row("Activation", '<data type="elu" alpha="2"/>', [NCHW], [NCHW], lambda x: elu(x, 2)),
    Row("Activation", '<data type="clamp" min="-1" max="0.5"/>', [NCHW], [NCHW], lambda x: np.clip(x, -1, 0.5)),
    Row("Activation", '<data type="ReLU6" n="1"/>', [NCHW], [NCHW], lambda x: np.clip(x, 0, 1)),
    Row("ReLU", "", [NCHW], [NCHW], lambda x: np.maximum(x, 0)),
    Row("ReLU", '<data negative_slope="-1"/>', [NCHW], [NCHW], lambda x: leaky(x, -1)),
    Row("PReLU", '<data channel_shared="1"/>', [NCHW], [NCHW], lambda x: leaky(x, SLOPES[0]), {"weights": SLOPES[:1]}),
    Row("PReLU", "", [(3,)], [(3,)], lambda x: leaky(x, SLOPES), {"weights": SLOPES}),
    Row("PReLU", "", [(2, 3)], [(2, 3)], lambda x: leaky(x, SLOPES), {"weights": SLOPES}),
    Row("PReLU", "", [NCHW, (3,)], [NCHW], lambda x, s: np.where(x > 0, x, spread(x, s)), version=7),
    Row("ELU", "", [NCHW], [NCHW], lambda x: elu(x, 1)),
    Row("HardSigmoid", "", [X.shape], [X.shape], lambda x: np.clip(0.2 * x + 0.5, 0, 1), values={0: X}),
    Row(
        *(
            "HardSigmoid",
            '<data alpha="0.3" beta="0.4"/>',
            [X.shape],
            [X.shape],
            lambda x: np.clip(0.3 * x + 0.4, 0, 1),
        ),
        values={0: X},
    ),
    Row("Selu", "", [NCHW], [NCHW], lambda x: 1.05070098 * elu(x, 1.67326324)),
    Row("Selu", '<data alpha="1.5" gamma="2"/>', [NCHW], [NCHW], lambda x: 2 * elu(x, 1.5)),
    Row("SoftMax", "", [NCHW], [NCHW], lambda x: softmax(x, 1)),
    Row("LogSoftmax", "", [NCHW], [NCHW], lambda x: np.log(softmax(x, 1))),
    Row("LogSoftmax", '<data axis="2"/>', [NCHW], [NCHW], lambda x: np.log(softmax(x, 2))),
]

BINARY = {
    "sum": np.add,
    "add": np.add,
    "prod": np.multiply,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "sub": np.subtract,
    "div": np.divide,
    "floor_mod": np.mod,
    "mod": np.mod,
    "squared_diff": lambda x, y: (x - y) ** 2,
}
COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


def eltwise(operation: str, expected, values: dict[int, Array], count: int = 2) -> Row:
    dims = [values[0].shape] * count
    return Row("Eltwise", f'<data operation="{operation}"/>', dims, dims[:1], expected, values=values)


PAIRS = [
    *(eltwise(name, f, {0: X, 1: Y}) for name, f in BINARY.items()),
    eltwise("pow", np.power, {0: BEYOND_1, 1: INSIDE}),
    *(eltwise(name, lambda x, y, f=f: f(x, y).astype(np.float32), {0: X, 1: Y}) for name, f in COMPARISONS.items()),
    *(
        eltwise(name, lambda x, y, f=f: f(x != 0, y != 0).astype(np.float32), {0: FLAGS, 1: OTHERS})
        for name, f in LOGIC.items()
    ),
    eltwise("mean", lambda x, y, z: (x + y + z) / 3, {0: X, 1: Y, 2: X * X}, 3),
    Row("Eltwise", '<data operation="SUM" coeff="1,1"/>', [NCHW] * 2, [NCHW], lambda x, y: x + y),
    Row("Eltwise", '<data coeff="1,0.5,-1"/>', [NCHW] * 3, [NCHW], lambda x, y, z: x + 0.5 * y - z),
    Row("Eltwise", '<data operation="add" coeff="2,1"/>', [NCHW] * 2, [NCHW], lambda x, y: 2 * x + y),
    Row("Eltwise", '<data operation="add" coeff="2,3"/>', [NCHW] * 2, [NCHW], lambda x, y: 2 * x + 3 * y),
    Row("Eltwise", '<data operation="mul" coeff="2,1"/>', [NCHW] * 2, [NCHW], lambda x, y: x * y),
    Row("Power", "", [NCHW], [NCHW], lambda x: x),
    Row("Power", '<data scale="2" shift="0" power="1"/>', [NCHW], [NCHW], lambda x: 2 * x),
    Row("Power", '<data shift="1"/>', [NCHW], [NCHW], lambda x: x + 1),
    Row("Power", '<data power="2"/>', [NCHW], [NCHW], lambda x: x * x),
    Row("Power", "", [INSIDE.shape] * 2, [INSIDE.shape], np.power, values={0: BEYOND_1, 1: INSIDE}),
    Row("Select", "", [X.shape] * 3, [X.shape], lambda c, x, y: np.where(c != 0, x, y), values={0: FLAGS, 1: X, 2: Y}),
    Row(
        *("FakeQuantize", '<data levels="3"/>', [NCHW, *[(1,)] * 4], [NCHW]),
        lambda x: np.clip(np.rint(x), -1, 1) * 2 + 1,
        constants=LEVELS,
    ),
]

REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, axes, keepdims: np.abs(x).sum(axes, keepdims=keepdims),
    "ReduceL2": lambda x, axes, keepdims: np.sqrt((x * x).sum(axes, keepdims=keepdims)),
}
ALONG = [
    *(
        Row(name, "", [(2, 3, 4), (2,)], [(2, 1, 1)], lambda x, f=f: f(x, (1, 2), keepdims=True), constants={1: AXES})
        for name, f in REDUCTIONS.items()
    ),
    Row(
        *("ReduceMax", '<data keep_dims="0"/>', [(2, 3, 4), (2,)], [(2,)], lambda x: x.max((1, 2))),
        constants={1: AXES},
    ),
    Row(
        *("Norm", '<data beta="0.75" size="3" region="same"/>', [(1, 2, 4, 4)], [(1, 2, 4, 4)]),
        lambda x: x / (1 + neighbours(x) / 9) ** 0.75,
    ),
    Row("Normalize", "", [NCHW], [NCHW], lambda x: x / np.sqrt((x**2).sum((1, 2, 3), keepdims=True) + 1e-10)),
    Row(
        *("Normalize", '<data across_spatial="1"/>', [(2, 3, 4)], [(2, 3, 4)]),
        lambda x: SCALE[0] * x / np.sqrt((x**2).sum((1, 2), keepdims=True)),
        {"weights": SCALE[:1]},
    ),
    Row("MVN", '<data normalize_variance="1" across_channels="1"/>', [NCHW], [NCHW], lambda x: standard(x, (1, 2, 3))),
    Row("MVN", '<data normalize_variance="1"/>', [NCHW], [NCHW], lambda x: standard(x, (2, 3))),
    Row("GRN", '<data bias="0.5"/>', [NCHW], [NCHW], lambda x: x / np.sqrt((x**2).sum(1, keepdims=True) + 0.5)),
]


def neighbours(x: Array) -> Array:
    """For each element, the sum of the squares of the 3 by 3 elements around it."""
    squares = np.pad(x**2, [(0, 0), (0, 0), (1, 1), (1, 1)])
    return np.lib.stride_tricks.sliding_window_view(squares, (3, 3), (2, 3)).sum((-2, -1))


def standard(x: Array, axes: tuple[int, ...]) -> Array:
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


ROWS = [*UNARY, *PAIRS, *ALONG]
