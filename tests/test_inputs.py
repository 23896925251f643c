"""Arrays of other types than a model's inputs: converted as OpenVINO's Python API does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

import irload
from models.ir import Graph
from tests.harness.runtime import core

DTYPES = ("f2", "f4", "f8", ">f4", "?", "i1", "u1", "i2", "i4", "i8", "u8")
VALUES = np.array([[0, 1, 2.75], [3.5, 100, 17]])


def text_of(element: str, shape: list[int | str]) -> bytes:
    """A model that returns its input."""
    graph = Graph()
    narrow = element in ("i4", "u4")  # not supported by the writer of small graphs
    graph.result(graph.parameter("x", "i8" if narrow else element, shape))
    text = f'<net name="m" version="11">{graph.text()}</net>'
    return (text.replace('"i8"', f'"{element}"').replace("I8", element.upper()) if narrow else text).encode()


def both(element: str, shape: list[int | str]) -> tuple[irload.CompiledModel, Any]:
    """The model that returns its input, compiled by irload and by OpenVINO."""
    text = text_of(element, shape)
    theirs = core().read_model(text, ov.Tensor(np.zeros(1, np.uint8)))
    config = {} if element == "string" else {"INFERENCE_PRECISION_HINT": "f32"}
    return irload.compile_model(irload.read_model(text, b"")), core().compile_model(theirs, "CPU", config)


@pytest.mark.parametrize("element", ["f32", "f16", "f64", "i32", "i64", "u8", "boolean"])
def test_any_number_becomes_the_type_of_the_input(element: str):
    ours, theirs = both(element, [2, 3])
    for dtype in DTYPES:
        x = VALUES.astype(dtype)
        assert ours(x)[0].dtype == ours.inputs[0].element_type.dtype
        assert ours(x)[0].tolist() == theirs([x])[0].tolist(), dtype


def test_any_layout_and_container():
    ours, theirs = both("f32", [2, 3])
    for x in (VALUES[::-1], np.asfortranarray(VALUES), VALUES.T.copy().T, VALUES[:, ::-1].astype("i8")):
        assert ours({"x": x})[0].tolist() == theirs({0: x})[0].tolist() == ours([x])[0].tolist()
    assert ours([[True, False, True]] * 2)[0].tolist() == [[1, 0, 1]] * 2
    assert ours(np.array([["1", "2.5", "-3"]] * 2))[0].tolist() == [[1, 2.5, -3]] * 2


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
def test_a_number_is_a_tensor_of_one_element(shape: list[int | str]):
    ours, theirs = both("f32", shape)
    for value in (np.array(2.5), np.float64(2.5), 2):
        expected = theirs(value)[0] if isinstance(value, np.ndarray) else np.full(shape, value, np.float32)
        assert ours(value)[0].tolist() == expected.tolist()


def test_a_number_does_not_fill_a_larger_tensor():
    with pytest.raises(irload.InputInvalid, match=r"has shape \[\]; the model takes \[2\]"):
        irload.compile_model(irload.read_model(text_of("f32", [2]), b""))(np.array(1.0))


def test_text_of_any_kind_for_strings():
    ours, theirs = both("string", ["?"])
    for x in (np.array(["a", "bé"]), np.array([b"a", "bé".encode()]), np.array([b"\xff", b"x"])):
        assert ours(x)[0].tolist() == theirs([x])[0].tolist()
    assert ours(np.array([b"a", "b"], object))[0].tolist() == ["a", "b"]
    assert ours("word")[0].tolist() == ["word"]


@pytest.mark.parametrize("value", [np.array([1, None], object), np.array([1.5, 2])])
def test_values_other_than_text_are_rejected(value: Any):
    with pytest.raises(irload.InputInvalid, match="the model takes strings"):
        irload.compile_model(irload.read_model(text_of("string", ["?"]), b""))(value)


@pytest.mark.parametrize(
    ("element", "value"),
    [("f32", np.array([1 + 2j, 0])), ("f32", np.array(["one", "two"])), ("i32", [1.5, 2]), ("u8", [1, 300])],
)
def test_lossy_conversions_are_rejected(element: str, value: Any):
    with pytest.raises(irload.InputInvalid, match=element):
        irload.compile_model(irload.read_model(text_of(element, [2]), b""))(value)


@pytest.mark.parametrize("element", ["f32", "i4", "u4", "f16", "bf16", "boolean", "string"])
def test_repeated_inputs_are_converted_the_same_way(element: str):
    """Several types, layouts and shapes in turn, each of which may affect the conversion of the next input."""
    ours = irload.compile_model(irload.read_model(text_of(element, ["?", 3]), b""))
    dtype = ours.inputs[0].element_type.dtype
    small = VALUES.clip(0, 7).astype(np.int64).astype(dtype)
    forms = [small, small.astype("f8"), small[::-1], VALUES.astype("i1"), small.T, small[:, :2], small[:1], small]
    forms = [array.astype(str).astype(object) if element == "string" else array for array in forms]
    alone = [irload.compile_model(irload.read_model(text_of(element, ["?", 3]), b"")) for _ in forms]

    def outcome(compiled: irload.CompiledModel, value: Any) -> tuple[Any, ...]:
        try:
            output = compiled([value])[0]
        except irload.InputInvalid as error:
            return (str(error),)
        return output.dtype, output.tolist()

    for _ in range(3):
        for compiled, value in zip(alone, forms, strict=True):
            before = value.copy()
            assert outcome(ours, value) == outcome(compiled, value)
            assert np.array_equal(value, before)


def test_a_result_is_not_the_input_array():
    ours, _ = both("f32", [2, 3])
    x = VALUES.astype(np.float32)
    for _ in range(3):
        actual = ours([x])[0]
        assert not np.shares_memory(actual, x)


def test_text_and_complex_numbers_are_parsed_for_numeric_inputs() -> None:
    real, whole = (irload.compile_model(irload.read_model(text_of(element, [2]))) for element in ("f32", "i64"))
    assert real(np.array(["1.5", "-2e3"]))[0].tolist() == [1.5, -2000]
    assert whole(np.array([b"7", b"-8"]))[0].tolist() == [7, -8]
    assert real(np.array([1.5 + 0j, 2]))[0].tolist() == [1.5, 2]
    for model, wrong, reason in (
        (real, ["1.5", "x"], "<U3, and some text is not a number"),
        (whole, ["1.5", "2"], "<U3, and some text is not an integer"),
        (real, [1 + 1j, 2], "complex128, and some imaginary part is not 0"),
    ):
        with pytest.raises(irload.InputInvalid, match=f"is of dtype {reason}; the model takes"):
            model(np.array(wrong))


def test_an_output_by_an_index_that_does_not_exist() -> None:
    digits = Path(__file__).parents[1] / "models" / "digits"
    result = irload.compile_model(digits / "model.xml")(np.load(digits / "digit_7_0.npy"))
    assert result[-1] is result[0]
    for index in (1, -2):
        with pytest.raises(IndexError, match=f"the model has 1 output, found index {index}$"):
            result[index]
