"""For each rule a file that triggers only this rule, and a near miss that triggers none.

A row names a base (tests/checks/bases.py) and two lists of edits of its text: `bad` plants the one fault, `near`
produces a valid file as similar as possible. `weights` and `near_weights` change the bytes of the constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.checks.bases import layer

Changes = tuple[tuple[str, str], ...]
Weights = Callable[[bytes], bytes | None]


def same(blob: bytes) -> bytes:
    return blob


@dataclass(frozen=True)
class Row:
    """One rule on one base. `alone`: the fault concerns the whole file, so it cannot be combined with others."""

    code: str
    base: str
    bad: Changes
    near: Changes
    weights: Weights = same
    near_weights: Weights = same
    options: dict[str, Any] | None = None
    near_options: dict[str, Any] | None = None
    alone: bool = False


def row(code: str, base: str, bad: Changes | tuple[str, str], near: Changes | tuple[str, str], **rest: Any) -> Row:
    """A row; a single edit may be given without a tuple around it."""
    return Row(code, base, _many(bad), _many(near), **rest)


def _many(changes: Any) -> Changes:
    return (changes,) if changes and isinstance(changes[0], str) else changes


def floats(change: Callable[[Any], object]) -> Weights:
    """Weights with f32 values replaced."""

    def apply(blob: bytes) -> bytes:
        values = np.frombuffer(blob, np.float32).copy()
        change(values)
        return values.tobytes()

    return apply


def put(index: int, value: float) -> Weights:
    return floats(lambda values: values.__setitem__(index, value))


CONST = '<layer id="1" name="w" type="Const" version="opset1">\n'
CONV_IN = '<port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>'
FILTER = '<port id="0" precision="FP32"><dim>4</dim><dim>3</dim><dim>3</dim><dim>3</dim></port>'
CONV_OUT = '<port id="2" precision="FP32" names="c"><dim>1</dim><dim>4</dim><dim>6</dim><dim>6</dim></port>'
RELU_IN = '<port id="0" precision="FP32"><dim>1</dim><dim>4</dim><dim>6</dim><dim>6</dim></port>'
RELU_OUT = '<port id="1" precision="FP32" names="y"><dim>1</dim><dim>4</dim><dim>6</dim><dim>6</dim></port>'
RELU = '<layer id="3" name="relu" type="ReLU" version="opset1">\n'
RESULT = '<layer id="4" name="out" type="Result" version="opset1" output_names="y">\n'
TO_RESULT = '<edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>\n'
INTO_CONV = '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>\n'
FILTERS_INTO_CONV = '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>\n'
INTO_RELU = '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>\n'
STRIDES = 'strides="1,1"'
SHAPE = 'element_type="f32" shape="4,3,3,3" offset="0" size="432"'
DYNAMIC_OUT = '<port id="1" precision="FP32" names="y"><dim>-1</dim><dim>3</dim></port>'
SLICE_PORT = '<port id="0" precision="FP32"><dim>2</dim><dim>1</dim><dim>3</dim></port>'
BACK_EDGE = '<back_edges>\n<edge from-layer="4" to-layer="1"/>\n</back_edges>\n'
ITERATION = '<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>\n'
WRITE = '<data variable_id="v"/>'


def extra(*arguments: object, **keywords: object) -> tuple[str, str]:
    """An additional layer before the Result."""
    return RESULT, layer(*arguments, **keywords) + RESULT


SIX = ("FP32", (1, 4, 6, 6))
TWIN = extra(9, "twin", "ReLU", [SIX], [SIX])
TWIN_FED = (INTO_RELU, INTO_RELU + '<edge from-layer="2" from-port="2" to-layer="9" to-port="0"/>\n')
TWIN_OUT = (
    extra(10, "end", "Result", [SIX], names=["z"]),
    (TO_RESULT, TO_RESULT + '<edge from-layer="9" from-port="1" to-layer="10" to-port="0"/>\n'),
)
ASIDE = (*TWIN_OUT, TWIN, TWIN_FED)
"""A second ReLU parallel to the first, with a separate Result."""


def no(text: str) -> tuple[str, str]:
    """The edit that removes a text."""
    return text, ""


def second_const(shape: str, offset: int, size: int) -> Changes:
    """Another f32 constant, returned by a separate Result."""
    type = ("FP32", tuple(int(n) for n in shape.split(",") if n))
    data = f'element_type="f32" shape="{shape}" offset="{offset}" size="{size}"'
    return (
        extra(8, "v", "Const", [], [type], data),
        extra(9, "v_out", "Result", [type], names=["v"]),
        (TO_RESULT, f'{TO_RESULT}<edge from-layer="8" from-port="0" to-layer="9" to-port="0"/>\n'),
    )
