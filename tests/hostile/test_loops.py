"""Loops that never end, count backwards or concatenate without bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.errors import AttributeInvalid, IRError, LimitExceeded
from models.ir import Graph

LIMITS = irload.Limits(iterations=100, tensor_bytes=1 << 20)
X = np.ones((1, 4), np.float32)


def net(text: Graph) -> tuple[bytes, bytes]:
    return f'<?xml version="1.0"?><net name="m" version="11">{text.text()}</net>'.encode(), bytes(text.blob)


def loop(trips: int, *, constant: bool, rows: int = 1, known: bool = True) -> tuple[bytes, bytes]:
    """A Loop whose condition is always true; it concatenates `rows` rows of its input from each iteration.

    Unless `known`, the condition is computed from the data, so the number of iterations is not known statically.
    """
    g = Graph()
    x = g.parameter("x", "f32", (1, 4))
    count = g.constant(np.array(trips)) if constant else g.parameter("t", "i64", ())
    body = g.body()
    row = body.parameter("row", "f32", (1, 4))
    tall = body.layer("Tile", [row, body.constant(np.array([rows, 1]))], [("f32", (rows, 4))])[0]
    if known:
        condition = body.constant(np.array(True))
    else:
        axes, zero = body.constant(np.array([0, 1])), body.constant(np.array(0, np.float32))
        greatest = body.layer("ReduceMax", [row, axes], [("f32", ())], attributes={"keep_dims": "false"})[0]
        condition = body.layer("Greater", [greatest, zero], [("boolean", ())])[0]
    outputs, going = body.result(tall), body.result(condition)
    inner = (
        f'<port_map><input external_port_id="2" internal_layer_id="{row.layer}"/>'
        f'<output external_port_id="3" internal_layer_id="{outputs}" axis="0"/>'
        f'<output external_port_id="-1" internal_layer_id="{going}" purpose="execution_condition"/></port_map>'
        f"<body>{body.text()}</body>"
    )
    going_in = g.constant(np.array(True))
    g.result(g.layer("Loop", [count, going_in, x], [("f32", ("?", 4))], version="opset5", inner=inner)[0])
    return net(g)


def run(files: tuple[bytes, bytes], *inputs: Any, limits: irload.Limits = LIMITS) -> np.ndarray[Any, Any]:
    compiled = irload.compile_model(irload.read_model(*files, limits=limits))
    return compiled(list(inputs))[0]


ENDLESS = {"-1": -1, "-2": -2, "INT64_MIN": -(2**63), "2^63 - 1": 2**63 - 1, "101": 101}


@pytest.mark.parametrize("constant", [True, False], ids=["in the file", "at run time"])
@pytest.mark.parametrize("trips", ENDLESS.values(), ids=ENDLESS)
def test_a_loop_without_end_is_stopped(trips: int, constant: bool) -> None:
    files = loop(trips, constant=constant)
    with pytest.raises(LimitExceeded) as caught:
        run(files, X, *(() if constant else (np.array(trips),)))
    assert caught.value.limit in ("iterations", "tensor_bytes")
    assert caught.value.where is not None
    assert caught.value.where.layer_type == "Loop"


@pytest.mark.parametrize("constant", [True, False], ids=["in the file", "at run time"])
def test_a_loop_within_its_budget_runs(constant: bool) -> None:
    files = loop(100, constant=constant)
    assert run(files, X, *(() if constant else (np.array(100),))).shape == (100, 4)


def test_the_concatenated_output_of_a_loop_is_bounded_during_the_run() -> None:
    files = loop(0, constant=False, rows=1 << 14, known=False)  # 256 KiB per iteration
    with pytest.raises(LimitExceeded, match="output 0 has grown too large: 1310720 bytes") as caught:
        run(files, X, np.array(50))
    assert caught.value.limit == "tensor_bytes"


def iterator(**attributes: object) -> tuple[bytes, bytes]:
    """A TensorIterator that concatenates the output of its body; `attributes` belong to the concatenated output."""
    g = Graph()
    x = g.parameter("x", "f32", (1, 4))
    body = g.body()
    row = body.parameter("row", "f32", (1, 4))
    outputs = body.result(body.layer("ReLU", [row], [("f32", (1, 4))])[0])
    text = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    inner = (
        f'<port_map><input external_port_id="0" internal_layer_id="{row.layer}"/>'
        f'<output external_port_id="1" internal_layer_id="{outputs}" axis="0" {text}/></port_map>'
        f"<body>{body.text()}</body>"
    )
    g.result(g.layer("TensorIterator", [x], [("f32", ("?", 4))], inner=inner)[0])
    return net(g)


ITERATORS: dict[str, tuple[dict[str, object], type[IRError], str]] = {
    "stride 0": ({"start": 0, "end": 3, "stride": 0}, AttributeInvalid, "stride ±part_size"),
    "a part size of 0": ({"start": 0, "end": 3, "part_size": 0}, AttributeInvalid, "part_size must be positive"),
    "a negative part size": ({"start": 0, "end": 3, "part_size": -1}, AttributeInvalid, "part_size must be positive"),
    "more iterations than allowed": ({"start": 0, "end": 102}, LimitExceeded, "iterations"),
    "2^62 iterations": ({"start": 0, "end": 1 << 62}, LimitExceeded, "tensor_bytes"),
    "an axis out of range": ({"start": 0, "end": 3, "axis": 7}, IRError, "axis 7"),
}


@pytest.mark.parametrize(("attributes", "error", "words"), ITERATORS.values(), ids=ITERATORS)
def test_a_wrong_tensor_iterator_is_rejected(attributes: dict[str, object], error: type[IRError], words: str) -> None:
    xml, blob = iterator(**{k: v for k, v in attributes.items() if k != "axis"})
    if "axis" in attributes:
        xml = xml.replace(b'axis="0"', f'axis="{attributes["axis"]}"'.encode())
    with pytest.raises(error, match=words):
        run((xml, blob), X)
