"""Rows of rules about XML, identity, edges, operations, ports and bodies."""

from __future__ import annotations

from tests.checks.bases import CONV_DATA, STEP, edges, inner, layer
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
    SIX,
    STRIDES,
    TO_RESULT,
    TWIN,
    extra,
    no,
    row,
)

INVERSE = '"Inverse" version="opset14"><data adjoint="{}"/>'
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
STATE_ADD = '<port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>\n</input>'


def wrong(text: str, old: str, new: str) -> tuple[str, str]:
    """The edit of a part of a text, where the part is given whole."""
    assert old in text
    return text, text.replace(old, new, 1)


def laid_out(layout: str) -> tuple[str, str]:
    """The layout of the input x."""
    attribute = f'<rt_info><attribute name="layout" version="0" layout="{layout}"/></rt_info>'
    return wrong(f"<data {X_DATA}/>\n", "/>", f"/>{attribute}")


def long_const(rank: int) -> tuple[tuple[str, str], ...]:
    """A constant of one value and many axes."""
    given = ("FP32", (1,) * rank)
    data = f'element_type="f32" shape="{(",1" * rank)[1:]}" offset="432" size="4"'
    ends = f'{TO_RESULT}<edge from-layer="8" from-port="0" to-layer="9" to-port="0"/>\n'
    return (
        extra(8, "v", "Const", [], [given], data),
        extra(9, "v_out", "Result", [given], names=["v"]),
        (TO_RESULT, ends),
    )


XML_ROWS = [
    row("IR002", "conv", wrong(RELU_OUT, ' precision="FP32"', ""), wrong(RELU_IN, ' precision="FP32"', "")),
    row("IR002", "conv", wrong(RELU_OUT, "FP32", "fp32"), wrong(RELU_OUT, "FP32", "f32")),
    row("IR002", "conv", wrong(RELU_OUT, ">4<", ">four<"), wrong(RELU_OUT, ">4<", "> 4 <")),
    row("IR002", "conv", wrong(RELU_OUT, ">4<", ">-2<"), wrong(RELU_OUT, ">4<", ">-1<")),
    row("IR003", "conv", (RELU, f"{RELU}<dataa/>\n"), (RELU, f"{RELU}<data/>\n")),
    row("IR003", "conv", wrong(RELU_OUT, "names", "name"), wrong(RELU_OUT, '"y"', '"y,z"')),
    row("IR101", "conv", (RELU, layer(3, "copy", "ReLU", [SIX], [SIX]) + RELU), wrong(RELU, '"3"', '"03"')),
    row("IR101", "conv", wrong(RELU, '"3"', '"2"'), ASIDE),
    row("IR102", "conv", (wrong(RELU_OUT, '"1"', '"0"'), wrong(TO_RESULT, 'port="1"', 'port="0"')), ()),
    row("IR103", "conv", ('name="relu"', 'name="conv"'), ('name="relu"', 'name="Conv"')),
    row("IR104", "conv", ('name="relu"', 'name=""'), ('name="relu"', 'name="_"')),
    row("IR201", "conv", (TO_RESULT, TO_RESULT + wrong(TO_RESULT, '"4"', '"77"')[1]), ()),
    row("IR202", "conv", wrong(INTO_RELU, 'from-port="2"', 'from-port="1"'), ()),
    row("IR202", "conv", wrong(INTO_RELU, 'to-port="0"', 'to-port="4"'), ()),
    row("IR203", "conv", (INTO_RELU, INTO_RELU * 2), ASIDE),
    row("IR204", "conv", no(FILTERS_INTO_CONV), ()),
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

OPERATION_ROWS = [
    row("IR301", "conv", ('type="ReLU"', 'type="FooOp"'), ('type="ReLU"', 'type="relu"')),
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
    row("IR305", "state", ('cast="numpy"', 'cast="foo"'), ('cast="numpy"', 'cast="NUMPY"')),
    row("IR306", "conv", (CONV_DATA, f'{CONV_DATA} depth="1"'), no(' auto_pad="explicit"')),
    row("IR307", "conv", (STRIDES, 'strides="1.5,1"'), (STRIDES, 'strides=" 1,1"')),
    row("IR308", "reshape", no(' special_zero="false"'), ('special_zero="false"', 'special_zero="0"')),
    row("IR308", "conv", (STRIDES, 'stride="1,1"'), (f"{STRIDES} ", f"{STRIDES}  ")),
    row("IR312", "conv", (f"{V1}>", INVERSE.format("true")), (f"{V1}>", INVERSE.format("false"))),
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
    row("IR402", "conv", wrong(CONV_OUT, "FP32", "I64"), wrong(CONV_OUT, "FP32", "UNSPECIFIED")),
    row("IR403", "conv", wrong(RELU_IN, ">4<", ">5<"), wrong(RELU_IN, ">4<", ">-1<")),
    row("IR404", "conv", wrong(RELU_IN, "FP32", "FP16"), wrong(RELU_IN, ' precision="FP32"', "")),
    row("IR405", "dynamic", (DYNAMIC_OUT, '<port id="1" precision="FP32" names="y"/>'), ()),
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
    row("IR501", "tensor_iterator", ('external_port_id="1"', 'external_port_id="7"'), ()),
    row("IR501", "tensor_iterator", ('external_port_id="3"', 'external_port_id="9"'), ()),
    row("IR501", "tensor_iterator", ('internal_layer_id="4"', 'internal_layer_id="8"'), ()),
    row("IR501", "if", ('internal_layer_id="0"', 'internal_layer_id="1"'), ()),
    row("IR501", "loop", ('<edge from-layer="6" to-layer="1"/>', '<edge from-layer="4" to-layer="1"/>'), ()),
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
    row("IR506", "state", ('<data variable_id="v"/>', '<data variable_id="w"/>'), ()),
    row("IR507", "state", (no(WRITE), no(WRITE_EDGE)), ()),
    row("IR508", "tensor_iterator", no(BACK_EDGE), ()),
    row("IR509", "tensor_iterator", ("<back_edges>\n", '<back_edges>\n<edge from-layer="3" to-layer="1"/>\n'), ()),
    row("IR509", "loop", (ITERATION, ITERATION + ITERATION.replace("0", "1")), ()),
]

GRAPH_ROWS = [*XML_ROWS, *OPERATION_ROWS, *TYPE_ROWS, *BODY_ROWS]
