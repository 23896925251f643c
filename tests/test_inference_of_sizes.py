"""Values computed from symbolic dims are expressions, which give the right value for any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.size import has_sizes, is_size, symbol, terms_of
from irload.core.tensor import Array, TensorType
from irload.core.trace import Trace
from irload.inference import Inference
from irload.read import read_graph
from models import ir
from tests.plan.graphs import Net

NUMPY = {"auto_broadcast": "numpy"}
AT, OTHER = 7, 11
LARGEST = 2**31 - 1
Layers = Callable[[ir.Graph, ir.Ref], ir.Ref]


def value_of(layers: Layers, element: str = "i64") -> tuple[TensorType, Trace]:
    """The inferred type of the last layer after the ShapeOf of an input [symbol, 3], and the trace."""
    graph = ir.Graph()
    x = graph.parameter("x", "f32", ("?", 3))
    (sizes,) = graph.layer("ShapeOf", [x], [(element, (2,))], version="opset3", attributes={"output_type": element})
    last = layers(graph, sizes)
    graph.result(last)
    text = f'<net name="n" version="11">{graph.text()}</net>'
    model = read_graph(text.encode(), bytes(graph.blob))
    run, trace = Inference(), Trace()
    (tensor,) = run.graph(model, [TensorType(et.f32, Shape(symbol(trace, AT), 3))])
    return tensor, trace


def at(tensor: TensorType, trace: Trace, size: int) -> Array:
    """The value if the symbol is `size`."""
    assert tensor.value is not None
    trace.close()
    assert trace.test()([size])
    if tensor.value.dtype == bool:
        return tensor.value
    numbers = trace.compiled([terms_of(v) for v in tensor.value.flat])([size])
    return np.array(numbers).reshape(tensor.value.shape)


def binary(type: str, *constants: Array, element: str = "i64") -> Layers:
    """Consecutive operations, each with a constant."""

    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        for constant in constants:
            (sizes,) = graph.layer(type, [sizes, graph.constant(constant)], [(element, (2,))], attributes=NUMPY)
        return sizes

    return layers


ARITHMETIC: dict[str, Any] = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "Divide": np.floor_divide,
    "Mod": np.mod,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}
COMPARISONS: dict[str, Any] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}


@pytest.mark.parametrize("type", ARITHMETIC)
def test_arithmetic(type: str) -> None:
    constant = np.array([2, 5], np.int64)
    value, trace = value_of(binary(type, constant))
    assert not trace.guards
    for size in (AT, OTHER):
        np.testing.assert_array_equal(at(value, trace, size), ARITHMETIC[type](np.array([size, 3]), constant))


@pytest.mark.parametrize("type", COMPARISONS)
@pytest.mark.parametrize("constants", [(2, 5), (2, 3), (20, 1)])
def test_comparisons(type: str, constants: tuple[int, int]) -> None:
    constant = np.array(constants, np.int64)
    value, trace = value_of(binary(type, constant, element="boolean"))
    np.testing.assert_array_equal(at(value, trace, AT), COMPARISONS[type](np.array([AT, 3]), constant))
    assert value.value is not None
    assert value.value.dtype == bool


def reduction(type: str, *, keep_dims: bool = False) -> Layers:
    """A reduction of both sizes and 9."""

    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        (three,) = graph.layer(
            "Concat", [sizes, graph.constant(np.array([9]))], [("i64", (3,))], attributes={"axis": 0}
        )
        inputs, shape = [three, graph.constant(np.array([0]))], (1,) if keep_dims else ()
        return graph.layer(type, inputs, [("i64", shape)], attributes={"keep_dims": str(keep_dims).lower()})[0]

    return layers


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(
    ("type", "function"), [("ReduceMin", min), ("ReduceMax", max), ("ReduceSum", sum), ("ReduceProd", np.prod)]
)
def test_reductions(type: str, function: Callable[..., int], keep_dims: bool) -> None:
    value, trace = value_of(reduction(type, keep_dims=keep_dims))
    assert not trace.guards
    for size in (AT, OTHER, 2):
        expected = function([size, 3, 9])
        assert at(value, trace, size).tolist() == ([expected] if keep_dims else expected)


def gather(graph: ir.Graph, sizes: ir.Ref, index: int = 0) -> ir.Ref:
    inputs = [sizes, graph.constant(np.array([index], np.int64)), graph.constant(0)]
    return graph.layer("Gather", inputs, [("i64", (1,))], version="opset8")[0]


def convert(element: str) -> Layers:
    return lambda g, s: g.layer("Convert", [s], [(element, (2,))], attributes={"destination_type": element})[0]


def test_moved_sizes() -> None:
    value, trace = value_of(gather)
    assert at(value, trace, OTHER).tolist() == [OTHER]
    value, trace = value_of(
        lambda g, s: g.layer("Concat", [gather(g, s), s], [("i64", (3,))], attributes={"axis": 0})[0]
    )
    assert at(value, trace, OTHER).tolist() == [OTHER, OTHER, 3]
    value, trace = value_of(convert("i32"))
    assert value.element is et.i32
    assert at(value, trace, OTHER).tolist() == [OTHER, 3]


def split(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
    inputs = [sizes, graph.constant(0), graph.constant(np.array([1, 1], np.int64))]
    return graph.layer("VariadicSplit", inputs, [("i64", (1,))] * 2)[0]


def test_split_sizes() -> None:
    value, trace = value_of(split)
    assert at(value, trace, OTHER).tolist() == [OTHER]


@pytest.mark.parametrize("type", ["Ceiling", "Floor"])
def test_rounding_does_not_change_sizes(type: str) -> None:
    value, trace = value_of(lambda g, s: g.layer(type, [s], [("i64", (2,))])[0])
    assert at(value, trace, OTHER).tolist() == [OTHER, 3]


def test_padding_to_a_multiple_of_a_window() -> None:
    eight = np.array([8, 8], np.int64)
    modulo = binary("FloorMod", eight)
    value, trace = value_of(
        lambda g, s: modulo(g, g.layer("Subtract", [g.constant(eight), modulo(g, s)], [("i64", (2,))])[0])
    )
    for size, missing in ((AT, 1), (OTHER, 5), (16, 0)):
        assert at(value, trace, size).tolist() == [missing, 5]


def in_floats(*layers: tuple[str, float | None], element: str = "f32") -> Layers:
    """Sizes converted to floats, passed through layers (with a constant or unary), and converted back to integers."""

    def chain(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        (x,) = graph.layer("Convert", [sizes], [(element, (2,))], attributes={"destination_type": element})
        for type, number in layers:
            dtype = np.float32 if element == "f32" else np.float16
            other = [] if number is None else [graph.constant(np.full(2, number, dtype))]
            (x,) = graph.layer(type, [x, *other], [(element, (2,))], attributes=NUMPY if other else {})
        return graph.layer("Convert", [x], [("i64", (2,))], attributes={"destination_type": "i64"})[0]

    return chain


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((("Divide", 5), ("Add", 1), ("Ceiling", None)), lambda n: -(-n // 5) + 1),
        ((("Multiply", 2), ("Floor", None)), lambda n: 2 * n),
        ((("Multiply", 0.5), ("Floor", None)), lambda n: n // 2),
        ((("Multiply", 0.5),), lambda n: n // 2),
        ((("Subtract", 9), ("Divide", 4)), lambda n: int((n - 9) / 4)),
        ((("Divide", 3), ("Floor", None), ("Multiply", 3)), lambda n: n // 3 * 3),
    ],
)
def test_sizes_that_are_rounded_in_floats(layers: Any, expected: Callable[[int], int]) -> None:
    value, trace = value_of(in_floats(*layers))
    sizes = (AT, AT + 1) if expected(AT) <= 0 else (AT, OTHER, 300)
    for size in sizes:
        assert at(value, trace, size).tolist() == [expected(size), expected(3)]


def test_one_size_that_is_rounded_in_floats() -> None:
    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        bounds = [sizes, graph.constant(0), graph.constant(0)]
        (x,) = graph.layer("Gather", bounds, [("i64", ())], version="opset8")
        (x,) = graph.layer("Convert", [x], [("f32", ())], attributes={"destination_type": "f32"})
        (x,) = graph.layer("Divide", [x, graph.constant(np.float32(2))], [("f32", ())], attributes=NUMPY)
        (x,) = graph.layer("Ceiling", [x], [("f32", ())])
        return graph.layer("Convert", [x], [("i64", ())], attributes={"destination_type": "i64"})[0]

    value, trace = value_of(layers)
    assert at(value, trace, OTHER).tolist() == -(-OTHER // 2)


@pytest.mark.parametrize(("element", "steps"), [("i64", 0), ("f32", 0), ("f32", 1)])
def test_the_length_of_a_range_of_floats(element: str, steps: int) -> None:
    """A Range from 1 to a size, in integers or floats, or to a third of a size."""
    known = np.float32 if element == "f32" else np.int64

    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        (x,) = graph.layer("Gather", [sizes, graph.constant(0), graph.constant(0)], [("i64", ())], version="opset8")
        if element == "f32":
            (x,) = graph.layer("Convert", [x], [("f32", ())], attributes={"destination_type": "f32"})
        if steps:
            (x,) = graph.layer("Divide", [x, graph.constant(np.float32(3))], [("f32", ())], attributes=NUMPY)
        ends = [graph.constant(known(1)), x, graph.constant(known(1))]
        return graph.layer("Range", ends, [("f32", (-1,))], version="opset4", attributes={"output_type": "f32"})[0]

    value, trace = value_of(layers)
    (length,) = value.shape.static
    trace.close()
    for size in (AT, OTHER, 12):
        expected = len(np.arange(1, size / 3 if steps else size))
        assert trace.compiled([terms_of(length)])([size]) == [expected]


def element_of_range(step: int, index: int) -> Layers:
    """The element of Range(size, 3 · size, step) at an index."""

    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        zero = graph.constant(0)
        (start,) = graph.layer("Gather", [sizes, zero, zero], [("i64", ())], version="opset8")
        (stop,) = graph.layer("Multiply", [start, graph.constant(3)], [("i64", ())], attributes=NUMPY)
        ends = [start, stop, graph.constant(step)]
        (positions,) = graph.layer("Range", ends, [("i64", (-1,))], version="opset4", attributes={"output_type": "i64"})
        inputs = [positions, graph.constant(np.array([index])), zero]
        return graph.layer("Gather", inputs, [("i64", (1,))], version="opset8")[0]

    return layers


@pytest.mark.parametrize(
    ("step", "index", "expected"), [(1, -1, lambda n: 3 * n - 1), (2, -1, lambda n: 3 * n - 2), (2, 3, lambda n: n + 6)]
)
def test_an_element_of_a_range(step: int, index: int, expected: Callable[[int], int]) -> None:
    """Bloom slices its mask up to the last position plus 1."""
    tensor, trace = value_of(element_of_range(step, index))
    assert at(tensor, trace, 8).tolist() == [expected(8)]


@pytest.mark.parametrize("index", [100, -100])
def test_an_element_out_of_range(index: int) -> None:
    assert value_of(element_of_range(1, index))[0].value is None


def test_a_value_without_sizes_is_numbers_of_its_type() -> None:
    value, _ = value_of(lambda g, s: gather(g, binary("Add", np.array([1, 1], np.int64))(g, s), 1))
    assert value.value is not None
    assert (value.value.tolist(), value.value.dtype) == ([4], np.int64)
    assert not has_sizes(value.value)


def test_a_size_in_bounds_is_a_value() -> None:
    value, _ = value_of(lambda g, s: s)
    assert value.value is not None
    assert is_size(value.value[0])


@pytest.mark.parametrize("chosen", ["then", "else"])
def test_a_select_of_sizes_whose_other_operand_is_unknown(chosen: str) -> None:
    """`torch.one_hot(x, n)` selects n if it is positive, else the largest element of x plus 1."""

    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        unknown = binary("Power", np.array([2, 2], np.int64))(graph, sizes)
        type = "Greater" if chosen == "then" else "Less"
        zero = graph.constant(np.zeros(2, np.int64))
        (mask,) = graph.layer(type, [sizes, zero], [("boolean", (2,))], attributes=NUMPY)
        operands = [sizes, unknown] if chosen == "then" else [unknown, sizes]
        return graph.layer("Select", [mask, *operands], [("i64", (2,))], attributes=NUMPY)[0]

    tensor, trace = value_of(layers)
    assert at(tensor, trace, 9).tolist() == [9, 3]


def test_a_select_of_sizes_from_both_operands_is_unknown() -> None:
    def layers(graph: ir.Graph, sizes: ir.Ref) -> ir.Ref:
        unknown = binary("Power", np.array([2, 2], np.int64))(graph, sizes)
        mask = graph.constant(np.array([True, False]))
        return graph.layer("Select", [mask, sizes, unknown], [("i64", (2,))], attributes=NUMPY)[0]

    assert value_of(layers)[0].value is None


UNKNOWN: dict[str, Layers] = {
    "floats": convert("f32"),
    "booleans": convert("boolean"),
    "other operations": binary("Power", np.array([2, 2], np.int64)),
    "a division by zero": binary("Divide", np.array([0, 1], np.int64)),
    "a rounded number that is multiplied": in_floats(("Divide", 3), ("Multiply", 3), ("Ceiling", None)),
    "a factor that f32 rounds": in_floats(("Multiply", 0.1), ("Floor", None)),
    "a function of floats": in_floats(("Sqrt", None), ("Floor", None)),
    "a size in f16": in_floats(("Divide", 5), ("Floor", None), element="f16"),
    "a remainder by zero": binary("FloorMod", np.array([0, 1], np.int64)),
    "a remainder of a negative size": lambda g, s: binary("Mod", np.array([2, 2], np.int64))(
        g, binary("Subtract", np.array([9, 1], np.int64))(g, s)
    ),
    "a division by a negative number": binary("Divide", np.array([-2, 1], np.int64)),
    "a division of a negative size": lambda g, s: binary("Divide", np.array([2, 2], np.int64))(
        g, binary("Subtract", np.array([9, 1], np.int64))(g, s)
    ),
    "an index beyond the sizes": lambda g, s: gather(g, s, 5),
}


@pytest.mark.parametrize("layers", UNKNOWN.values(), ids=UNKNOWN)
def test_values_that_are_not_computed(layers: Layers) -> None:
    value, _ = value_of(layers)
    assert value.value is None
    assert value.shape.is_static


@pytest.mark.parametrize(
    ("type", "constants", "fits"),
    [
        *(("Add", (LARGEST - AT,), True), ("Add", (LARGEST - AT + 1,), False)),
        *(("Subtract", (LARGEST, AT + 1), True), ("Subtract", (LARGEST, AT + 2), False)),
    ],
)
def test_values_fit_their_type(type: str, constants: tuple[int, ...], fits: bool) -> None:
    arrays = [np.array([c, 0], np.int32) for c in constants]
    value, _ = value_of(binary(type, *arrays, element="i32"), "i32")
    assert (value.value is not None) == fits


@pytest.mark.parametrize(
    "path", [["Floor"], ["Ceiling"], ["Sign"], ["Negative"], ["Convert", "Sqrt", "Convert"]], ids=str
)
def test_known_dims_beside_unknown_ones(path: list[str]) -> None:
    """A shape with one unknown dim keeps the known ones."""
    net = Net()
    unknown = net.op("Gather", net.op("ShapeOf", net.input(-1, 3)), net.constant([0]), net.constant(0))
    for k, kind in enumerate(path):
        types = {"destination_type": "i64" if k else "f32"} if kind == "Convert" else {}
        unknown = net.op(kind, unknown, **types)
    target = net.op("Concat", unknown, net.constant([2]), axis=0)
    model = net.model(net.op("Broadcast", net.constant(np.float32(1)), target))
    assert str(model.outputs[0].partial_shape) == ("[..1,2]" if path == ["Sign"] else "[?,2]")
