"""Rows of rules about XML, identity, edges, operations, ports and bodies."""

from __future__ import annotations

from typing import Any

from tests.checks.bases import CONV_DATA, STEP, edges, inner, layer, port
from tests.checks.table import (
    ASIDE,
    BACK_EDGE,
    CONV_IN,
    CONV_OUT,
    FILTER,
    FILTERS_INTO_CONV,
    INTO_RELU,
    ITERATION,
    RELU,
    RELU_IN,
    RELU_OUT,
    RESULT,
    SIX,
    STRIDES,
    TO_RESULT,
    TWIN,
    TWIN_OUT,
    Weights,
    extra,
    no,
    row,
    same,
)

CONST_SHAPE, OFFSET = 'shape="4,3,3,3" offset="0"', ' offset="0"'
DIVIDE, FLOORS = ('"Multiply"', '"Divide"'), 'cast="numpy" m_pythondiv="true"'
V1 = '"ReLU" version="opset1"'
X_DATA = 'shape="1,3,8,8" element_type="f32"'
X_PORT = '<port id="0" precision="FP32" names="x"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>'
DYNAMIC_OUT = '<port id="1" precision="FP32" names="y"><dim>-1</dim><dim>3</dim></port>'
SLICE = '<layer id="0" name="slice" type="Parameter" version="opset1">\n  <data shape="2,1,3"'
SLICE_PORT = '  <port id="0" precision="FP32"><dim>2</dim><dim>1</dim><dim>3</dim></port>'
BODY_RESULT = '  <layer id="4" name="next" type="Result" version="opset1">\n'
BODY_EDGE = edges((2, 2, 4, 0), indent="  ")
WRITE = layer(4, "write", "Assign", [("FP32", (1, 3))], [("FP32", (1, 3))], 'variable_id="v"', version="opset6")
WRITE_EDGE = edges((3, 2, 4, 0))
STATE_X = '<data shape="1,3" element_type="f32"/>\n<output>\n<port id="0" precision="FP32" names="x">'
IN_BODY = '  <data shape="1,2" element_type="f32"/>'
ELSE = '<else_port_map>\n<input external_port_id="1"'
RESHAPED = port(2, ("FP32", (2, 6)), "y")
SIZES = port(1, ("I64", (2,)))
STATE_ADD = '<port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>\n</input>'


def wrong(text: str, old: str, new: str) -> tuple[str, str]:
    """The edit that replaces `old` by `new` once within `text`, for an `old` that is not unique in the file."""
    assert old in text
    return text, text.replace(old, new, 1)


def laid_out(layout: str) -> tuple[str, str]:
    """The edit that adds a layout to the input x."""
    attribute = f'<rt_info><attribute name="layout" version="0" layout="{layout}"/></rt_info>'
    return wrong(f"<data {X_DATA}/>\n", "/>", f"/>{attribute}")


def padded(count: int) -> Weights:
    """Weights with zeros at the end."""
    return lambda blob: blob + bytes(count)


def marked(text: str, layout: str) -> str:
    """The text, followed by an rt_info with a layout."""
    return f'{text}<rt_info><attribute name="layout" version="0" layout="{layout}"/></rt_info>'


def compressed(precision: str) -> tuple[tuple[str, str], ...]:
    """Edits that add an f16 constant and the Convert that decompresses it, whose port declares `precision`."""
    half, whole = ("FP16", (2,)), (precision, (2,))
    info = '<rt_info><attribute name="decompression" version="0"/></rt_info>'
    return (
        extra(8, "v", "Const", [], [half], 'element_type="f16" shape="2" offset="432" size="4"'),
        extra(9, "wide", "Convert", [half], [whole], 'destination_type="f32"', tail=info),
        extra(10, "v_out", "Result", [("FP32", (2,))], names=["v"]),
        (TO_RESULT, TO_RESULT + edges((8, 0, 9, 0), (9, 1, 10, 0))),
    )


def joined(dims: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    """Edits that add a Concat with the input at five ports, whose output port declares `dims`."""
    image = ("FP32", (1, 3, 8, 8))
    return (
        extra(9, "join", "Concat", [image] * 5, [("FP32", dims)], 'axis="1"'),
        extra(10, "joined", "Result", [("FP32", (1, 15, 8, 8))], names=["j"]),
        (TO_RESULT, TO_RESULT + edges(*((0, 0, 9, k) for k in range(5)), (9, 5, 10, 0))),
    )


def long_const(rank: int) -> tuple[tuple[str, str], ...]:
    """Edits that add a constant with one value and `rank` axes."""
    type = ("FP32", (1,) * rank)
    data = f'element_type="f32" shape="{(",1" * rank)[1:]}" offset="432" size="4"'
    ends = f'{TO_RESULT}<edge from-layer="8" from-port="0" to-layer="9" to-port="0"/>\n'
    return (
        extra(8, "v", "Const", [], [type], data),
        extra(9, "v_out", "Result", [type], names=["v"]),
        (TO_RESULT, ends),
    )


XML_ROWS = [
    row("IR002", "conv", wrong(RELU_OUT, ' precision="FP32"', ""), wrong(RELU_IN, ' precision="FP32"', "")),
    row("IR002", "conv", wrong(RELU_OUT, "FP32", "fp32"), wrong(RELU_OUT, "FP32", "f32")),
    row("IR002", "conv", wrong(RELU_OUT, ">4<", ">four<"), wrong(RELU_OUT, ">4<", "> 4 <")),
    row("IR002", "conv", wrong(RELU_IN, ">4<", ">four<"), wrong(RELU_IN, ">4<", "> 4 <")),
    row("IR002", "conv", wrong(RELU_OUT, ">4<", ">-2<"), wrong(RELU_OUT, ">4<", ">-1<")),
    row("IR003", "conv", (RELU, f"{RELU}<dataa/>\n"), (RELU, f"{RELU}<data/>\n")),
    row("IR003", "conv", wrong(RELU_OUT, "names", "name"), wrong(RELU_OUT, '"y"', '"y,z"')),
    row("IR101", "conv", (RELU, layer(3, "copy", "ReLU", [SIX], [SIX]) + RELU), wrong(RELU, '"3"', '"03"')),
    row("IR101", "conv", wrong(RELU, '"3"', '"2"'), ASIDE),
    row("IR102", "conv", (wrong(RELU_OUT, '"1"', '"0"'), wrong(TO_RESULT, 'port="1"', 'port="0"')), ()),
    row("IR103", "conv", ('name="relu"', 'name="conv"'), ('name="relu"', 'name="Conv"')),
    row("IR103", "conv", ('name="relu"', 'name="conv"'), (('name="relu"', 'name=""'), ('name="conv"', 'name=""'))),
    row("IR104", "conv", ('name="relu"', 'name=""'), ('name="relu"', 'name="_"')),
    row("IR201", "conv", (TO_RESULT, TO_RESULT + wrong(TO_RESULT, '"4"', '"77"')[1]), ()),
    row("IR201", "conv", (TO_RESULT, TO_RESULT + edges((3, 1, 77, 0), (2, 2, 77, 1), (0, 0, 77, 2))), ()),
    row("IR201", "conv", (*TWIN_OUT, TWIN, (INTO_RELU, INTO_RELU + edges((77, 2, 9, 0)))), ASIDE),
    row("IR202", "conv", wrong(INTO_RELU, 'from-port="2"', 'from-port="1"'), ()),
    row("IR202", "conv", wrong(INTO_RELU, 'to-port="0"', 'to-port="4"'), ()),
    row("IR203", "conv", (INTO_RELU, INTO_RELU * 2), ASIDE),
    row("IR203", "conv", (INTO_RELU, INTO_RELU + edges((1, 0, 3, 0))), ASIDE),
    row("IR204", "conv", no(FILTERS_INTO_CONV), ()),
    row("IR204", "conv", no(INTO_RELU), ()),
    row("IR205", "conv", (*TWIN_OUT, TWIN, (INTO_RELU, INTO_RELU + edges((9, 1, 9, 0)))), ASIDE),
    row(
        *("IR205", "conv"),
        (
            TWIN,
            (INTO_RELU, edges((9, 1, 3, 0))),
            (TO_RESULT, edges((3, 1, 9, 0), (2, 2, 4, 0))),
        ),
        ASIDE,
    ),
]

alone: Any = {"weights": lambda blob: blob[:64], "near_weights": same, "alone": True}
"""Options for a faulty constant, which takes no bytes: cutting the weights to 64 bytes then adds no finding."""

OPERATION_ROWS = [
    row("IR301", "conv", ('type="ReLU"', 'type="FooOp"'), ('type="ReLU"', 'type="relu"')),
    row("IR301", "conv", (V1, '"FooOp" version="mine"'), ()),
    row("IR302", "conv", ('type="ReLU"', 'type="Gelu"'), (V1, '"Gelu" version="opset2"')),
    row("IR302", "conv", (V1, '"ReLU" version="mine"'), ()),
    row("IR303", "conv", (V1, '"ReLU"'), (V1, '"ReLU" version="opset2"')),
    row(
        *("IR304", "conv"),
        (
            (RELU_IN, RELU_IN + "\n" + RELU_IN.replace('"0"', '"5"', 1)),
            (INTO_RELU, INTO_RELU + INTO_RELU.replace('to-port="0"', 'to-port="5"')),
        ),
        ASIDE,
    ),
    row("IR305", "conv", (STRIDES, 'strides="0,1"'), (STRIDES, 'strides="1, 1"')),
    row("IR305", "conv", ('element_type="f32"', 'elementtype="f32"'), ('element_type="f32"', 'element_type="F32"')),
    row("IR305", "conv", no('shape="4,3,3,3" '), wrong(CONST_SHAPE, "4,3", "4, 3"), **alone),
    row("IR305", "conv", wrong(OFFSET, "0", "9" * 5000), wrong(OFFSET, "0", "0" * 10), **alone),
    row("IR305", "state", ('cast="numpy"', 'cast="foo"'), ('cast="numpy"', 'cast="NUMPY"')),
    row("IR306", "conv", (CONV_DATA, f'{CONV_DATA} depth="1"'), no(' auto_pad="explicit"')),
    row("IR306", "conv", (CONV_DATA, f'{CONV_DATA} stride="1,1"'), ()),
    row("IR306", "conv", (' auto_pad="explicit"', ' autopad="explicit"'), ()),
    row("IR307", "conv", (STRIDES, 'strides="1.5,1"'), (STRIDES, 'strides=" 1,1"')),
    row("IR308", "reshape", no(' special_zero="false"'), ('special_zero="false"', 'special_zero="0"')),
    row("IR308", "conv", (STRIDES, 'stride="1,1"'), (f"{STRIDES} ", f"{STRIDES}  ")),
    row(
        "IR312",
        "reshape",
        (DIVIDE, ('cast="numpy"', FLOORS)),
        (DIVIDE, ('cast="numpy"', FLOORS.replace("true", "false"))),
    ),
    row("IR309", "conv", (V1, '"ReLU" version="opset17"'), (V1, '"ReLU" version="opset16"')),
    row(
        *("IR311", "state"),
        ('cast="numpy"', 'cast="numpy" auto_broadcast.auto_broadcast_axis="-5"'),
        ('cast="numpy"', 'cast="numpy" auto_broadcast.auto_broadcast_axis="-1"'),
    ),
    row(
        *("IR310", "conv", long_const(65), long_const(64)),
        weights=lambda b: b + bytes(4),
        near_weights=lambda b: b + bytes(4),
    ),
]

TYPE_ROWS = [
    row("IR401", "conv", wrong(CONV_OUT, ">4<", ">99<"), wrong(CONV_OUT, ">4<", ">-1<")),
    row("IR401", "conv", wrong(FILTER, ">4<", ">5<"), ()),
    row("IR401", "conv", wrong(CONV_OUT, "<dim>4</dim>", ""), ()),
    row("IR401", "conv", wrong(X_DATA, "1,3", "2,3"), wrong(X_DATA, "1,3", "1, 3")),
    row("IR401", "tensor_iterator", wrong(SLICE_PORT, ">1<", ">2<"), ()),
    row("IR401", "reshape", wrong(RESHAPED, ">6<", ">7<"), wrong(RESHAPED, ">6<", ">-1<")),
    row("IR401", "reshape", wrong(SIZES, ">2<", ">3<"), ()),
    row("IR401", "conv", joined((1, 16, 8, 8)), joined((1, 15, 8, 8))),
    row("IR401", "conv", joined((1, 15, 8)), ()),
    row("IR402", "conv", compressed("FP16"), compressed("FP32"), weights=padded(4), near_weights=padded(4)),
    row("IR402", "conv", compressed("FP64"), (), weights=padded(4)),
    row("IR402", "reshape", wrong(SIZES, "I64", "I32"), ()),
    row("IR402", "conv", wrong(CONV_OUT, "FP32", "I64"), wrong(CONV_OUT, "FP32", "UNSPECIFIED")),
    row("IR403", "conv", wrong(RELU_IN, ">4<", ">5<"), wrong(RELU_IN, ">4<", ">-1<")),
    row("IR404", "conv", wrong(RELU_IN, "FP32", "FP16"), wrong(RELU_IN, ' precision="FP32"', "")),
    row("IR405", "dynamic", (DYNAMIC_OUT, '<port id="1" precision="FP32" names="y"/>'), ()),
    row("IR405", "conv", (RELU_OUT, '<port id="1" precision="FP32" names="y"/>'), ()),
    row("IR406", "conv", wrong(CONV_OUT, ">4<", ">-1<"), ()),
    row("IR406", "conv", wrong(RELU_IN, ">4<", ">-1<"), ()),
    row("IR407", "dynamic", wrong(DYNAMIC_OUT, "-1", "5"), ('shape="?,3"', 'shape="1..8,3"')),
    row("IR407", "dynamic", (("<dim>-1<", "<dim>5<"),) * 4, ('shape="?,3"', 'shape="-1,3"')),
    row(
        *("IR408", "conv"),
        (wrong(X_DATA, "1,3", "1,2"), wrong(X_PORT, ">3<", ">2<"), wrong(CONV_IN, ">3<", ">2<")),
        (wrong(X_DATA, "1,3", "?,3"),),
    ),
    row(
        *("IR409", "state"),
        (
            wrong(STATE_X, 'f32"', 'i64"'),
            ('"0" precision="FP32" names="x"', '"0" precision="I64" names="x"'),
            wrong(STATE_ADD, "FP32", "I64"),
        ),
        (),
    ),
    row("IR410", "conv", (RELU_OUT, RELU_OUT + "\n" + RELU_OUT.replace('"1"', '"2"').replace('"y"', '"z"')), ()),
    row("IR411", "conv", extra(9, "p", "Parameter", [], [], 'shape="1" element_type="f32"'), ()),
]

BODY_ROWS = [
    row("IR412", "conv", laid_out("[N,C,H]"), laid_out("[N,C,...]")),
    row("IR412", "conv", laid_out("[N,C,C,H]"), laid_out("NCHW")),
    row("IR412", "conv", laid_out("[N,C,H,W"), laid_out("[N,?,H,W]")),
    row("IR412", "conv", laid_out("[N,n,H,W]"), laid_out("NC??")),
    row("IR412", "conv", laid_out("[N,...,...]"), laid_out("[N,...,W]")),
    row("IR412", "conv", laid_out("[N,C,H,W,D,...]"), laid_out("[N,C,H,W,...]")),
    row("IR412", "conv", laid_out("N,C"), laid_out("...C")),
    row("IR412", "conv", laid_out(""), laid_out(" NCHW ")),
    row("IR412", "conv", laid_out("**SCALAR**"), ()),
    row("IR412", "conv", *((RELU_OUT, RELU_OUT.replace("</port>", marked("", x) + "</port>")) for x in ("NC", "NCHW"))),
    row("IR412", "conv", *((RESULT, marked(RESULT, x) + "\n") for x in ("[N,C]", "[N,C,H,W]"))),
    row("IR501", "tensor_iterator", ('external_port_id="1"', 'external_port_id="7"'), ()),
    row("IR501", "tensor_iterator", ('external_port_id="3"', 'external_port_id="9"'), ()),
    row("IR501", "tensor_iterator", ('internal_layer_id="4"', 'internal_layer_id="8"'), ()),
    row("IR501", "if", ('internal_layer_id="0"', 'internal_layer_id="1"'), ()),
    row("IR501", "loop", ('<edge from-layer="6" to-layer="1"/>', '<edge from-layer="4" to-layer="1"/>'), ()),
    row("IR501", "loop", ('<edge from-layer="6" to-layer="1"/>', '<edge from-layer="6" to-layer="2"/>'), ()),
    row("IR501", "if", wrong(ELSE, '"1"', '"7"'), ()),
    row(
        *("IR502", "tensor_iterator"),
        (
            (BODY_RESULT, inner(5, "lost", "Result", [STEP]) + BODY_RESULT),
            (BODY_EDGE, BODY_EDGE + edges((2, 2, 5, 0), indent="  ")),
        ),
        no(BACK_EDGE),
    ),
    row("IR503", "tensor_iterator", ('external_port_id="3"', 'external_port_id="2"'), ()),
    row("IR504", "loop", no(ITERATION), ()),
    row("IR505", "tensor_iterator", wrong(SLICE, "2,1", "2,2"), wrong(SLICE, "2,1", "2,?")),
    row("IR505", "tensor_iterator", (wrong(SLICE, "2,1", "2,2"), wrong(SLICE_PORT, ">1<", ">2<")), ()),
    row("IR505", "if", wrong(IN_BODY, "f32", "i64"), wrong(IN_BODY, "f32", "dynamic")),
    row("IR506", "state", ('<data variable_id="v"/>', '<data variable_id="w"/>'), ()),
    row("IR507", "state", (no(WRITE), no(WRITE_EDGE)), ()),
    row("IR508", "tensor_iterator", no(BACK_EDGE), ()),
    row("IR508", "loop", no('<back_edges>\n<edge from-layer="6" to-layer="1"/>\n</back_edges>\n'), ()),
    row("IR509", "tensor_iterator", ("<back_edges>\n", '<back_edges>\n<edge from-layer="3" to-layer="1"/>\n'), ()),
    row("IR509", "loop", (ITERATION, ITERATION + ITERATION.replace("0", "1")), ()),
]

GRAPH_ROWS = [*XML_ROWS, *OPERATION_ROWS, *TYPE_ROWS, *BODY_ROWS]
