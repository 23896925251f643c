"""Multiply-accumulates: each formula by hand, and whole architectures against published numbers."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.analysis.macs import macs
from irload.analysis.memory import memory
from irload.core import element as et
from irload.model import infer
from irload.read import read_graph
from tests.harness.body import Body, Value, input_entry, output_entry


def total(body: Body) -> int:
    return sum(macs(n) or 0 for n in irload.read_model(*body.model()).nodes)


def inputs(body: Body, *shapes: str) -> list[Value]:
    return [body.parameter(et.f32, s) for s in shapes]


RNN = {"hidden_size": 5}
WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


@pytest.mark.parametrize(
    ("type", "version", "shapes", "attributes", "count"),
    [
        ("Convolution", "opset1", ["2,3,8,8", "4,3,3,3"], WINDOW, 2 * 4 * 36 * 27),
        ("GroupConvolution", "opset1", ["2,6,8,8", "3,4,2,3,3"], WINDOW, 2 * 12 * 36 * 2 * 9),
        ("ConvolutionBackpropData", "opset1", ["2,3,8,8", "3,4,3,3"], WINDOW, 2 * 64 * 3 * 4 * 9),
        ("GroupConvolutionBackpropData", "opset1", ["2,6,8,8", "3,2,4,3,3"], WINDOW, 2 * 64 * 6 * 4 * 9),
        (
            "DeformableConvolution",
            "opset8",
            ["1,4,8,8", "1,18,6,6", "6,2,3,3"],
            {**WINDOW, "group": 2, "deformable_group": 1},
            36 * 6 * 2 * 9,
        ),
        ("MatMul", "opset1", ["2,3,4", "2,4,5"], {}, 2 * 3 * 4 * 5),
        ("MatMul", "opset1", ["2,4,3", "5,4"], {"transpose_a": True, "transpose_b": True}, 2 * 3 * 4 * 5),
        ("MatMul", "opset1", ["4", "4,5"], {"transpose_a": True}, 4 * 5),
        ("MatMul", "opset1", ["?,4", "4,5"], {}, None),
        ("Einsum", "opset7", ["2,3,4", "2,4,5"], {"equation": "bij,bjk->bik"}, 2 * 3 * 4 * 5),
        ("Einsum", "opset7", ["2,7,3,4", "7,4,5"], {"equation": "...ij,...jk->...ik"}, 2 * 7 * 3 * 4 * 5),
        ("ScaledDotProductAttention", "opset13", ["2,8,5,16", "2,8,7,16", "2,8,7,32"], {"causal": False}, 16 * 35 * 48),
        ("RNNCell", "opset1", ["2,3", "2,5", "5,3", "5,5", "5"], RNN, 2 * 5 * 8),
        ("GRUCell", "opset3", ["2,3", "2,5", "15,3", "15,5", "15"], RNN, 2 * 15 * 8),
        ("LSTMCell", "opset4", ["2,3", "2,5", "2,5", "20,3", "20,5", "20"], RNN, 2 * 20 * 8),
        ("ReLU", "opset1", ["2,3"], {}, 0),
        ("Strange", "mine", ["2,3"], {}, 0),
    ],
)
def test_formulas(type, version, shapes, attributes, count):
    body = Body(bytearray())
    body.result(body.op(type, *inputs(body, *shapes), version=version, **attributes))
    (node,) = [n for n in irload.read_model(*body.model()).nodes if n.type == type]
    assert macs(node) == count


@pytest.mark.parametrize(
    ("type", "shapes", "attributes"),
    [
        ("Einsum", ["2,3,4", "2,4,5"], {"equation": "ij,jk->ik"}),
        ("Einsum", ["2,3"], {"equation": "ij,jk->ik"}),
        ("MatMul", ["", "3"], {}),
        ("Convolution", ["2,3"], WINDOW),
        ("LSTMCell", ["2,3", "2,5"], RNN),
    ],
)
def test_layers_that_do_not_hold_together_have_no_count(type, shapes, attributes):
    body = Body(bytearray())
    versions = {"Einsum": "opset7", "LSTMCell": "opset4"}
    body.result(body.op(type, *inputs(body, *shapes), version=versions.get(type, "opset1"), **attributes))
    model = infer(read_graph(*body.model()), on_error=lambda node, error: None)
    (node,) = [n for n in model.nodes if n.type == type]
    assert macs(node) is None


def test_sequences_run_every_step_in_every_direction():
    body = Body(bytearray())
    x, h, lengths, *rest = (
        *inputs(body, "2,7,3", "2,2,5"),
        body.constant(np.array([7, 7])),
        *inputs(body, "2,15,3", "2,15,5", "2,15"),
    )
    y, _ = body.nested("GRUSequence", "opset5", [x, h, lengths, *rest], 2, "", hidden_size=5, direction="bidirectional")
    body.result(y)
    assert total(body) == 2 * 7 * 2 * 15 * (3 + 5)


def looped(trips: int) -> Body:
    weights = bytearray()
    inner = Body(weights)
    x, w = inputs(inner, "2,4", "4,4")
    condition = inner.constant(np.array(True))
    output, ending = inner.result(inner.op("MatMul", x, w)), inner.result(condition)
    entries = (
        input_entry(2, x),
        input_entry(3, w),
        output_entry(-1, ending, purpose="execution_condition"),
        output_entry(4, output),
    )
    outer = Body(weights)
    ends = [outer.constant(np.array(trips)), outer.constant(np.array(True)), *inputs(outer, "2,4", "4,4")]
    outer.loop(ends, inner, entries, [(output, x)], 1)
    return outer


def test_bodies_count_as_often_as_they_run():
    assert total(looped(3)) == 3 * 2 * 4 * 4
    (loop,) = [n for n in irload.read_model(*looped(-1).model()).nodes if n.type == "Loop"]
    assert macs(loop) is None


# -- published architectures -------------------------------------------------------------------------------------------


class Net:
    """A convolutional network reduced to its sizes."""

    def __init__(self) -> None:
        self.body = Body(bytearray())
        self.x = self.body.parameter(et.f32, "1,3,224,224")
        self.channels = 3

    def conv(self, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        pad = f"{kernel // 2},{kernel // 2}"
        ends = {"strides": f"{stride},{stride}", "dilations": "1,1", "pads_begin": pad, "pads_end": pad}
        size = f"{channels // groups},{self.channels // groups},{kernel},{kernel}"
        (filters,) = inputs(self.body, size if groups == 1 else f"{groups},{size}")
        kind = "Convolution" if groups == 1 else "GroupConvolution"
        self.x, self.channels = self.body.op(kind, self.x, filters, **ends), channels

    def head(self) -> None:
        pooled = self.body.op("ReduceMean", self.x, self.body.constant(np.array([2, 3])))
        (weights,) = inputs(self.body, f"{self.channels},1000")
        self.body.result(self.body.op("MatMul", pooled, weights))


def test_resnet_50_takes_4_09_billion():
    """He et al. 2015, with the stride in the 3×3 convolution as torchvision has it: 4.089 GMACs at 224×224."""
    net = Net()
    net.conv(64, 7, 2)
    net.x = net.body.op(
        "MaxPool", net.x, strides="2,2", kernel="3,3", pads_begin="1,1", pads_end="1,1", rounding_type="floor"
    )
    for width, depth in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for k in range(depth):
            before, channels = net.x, net.channels
            stride = 2 if k == 0 and width > 64 else 1
            if k == 0:
                net.conv(4 * width, 1, stride)
            shortcut, net.x, net.channels = net.x, before, channels
            net.conv(width, 1)
            net.conv(width, 3, stride)
            net.conv(4 * width, 1)
            net.x = net.body.op("Add", net.x, shortcut)
    net.head()
    assert total(net.body) == pytest.approx(4.089e9, rel=0.001)


def test_mobilenet_v2_takes_300_million():
    """Sandler et al. 2018, table 4: 300 million multiply-adds at 224×224."""
    net = Net()
    net.conv(32, 3, 2)
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, channels, repeats, first in blocks:
        for k in range(repeats):
            wide = net.channels * factor
            if factor > 1:
                net.conv(wide, 1)
            net.conv(wide, 3, first if k == 0 else 1, groups=wide)
            net.conv(channels, 1)
    net.conv(1280, 1)
    net.head()
    assert total(net.body) == pytest.approx(300e6, rel=0.01)


def test_bert_base_takes_22_5_billion_flops():
    """Sun et al. 2020 (MobileBERT), table 4: 22.5 GFLOPs for 128 tokens, two per MAC."""
    body = Body(bytearray())
    (x,) = inputs(body, "1,128,768")
    for _ in range(12):
        q, k, v = (body.op("MatMul", x, *inputs(body, "768,768")) for _ in range(3))
        shape, order = body.constant(np.array([1, 128, 12, 64])), body.constant(np.array([0, 2, 1, 3]))
        heads = [body.op("Transpose", body.op("Reshape", t, shape, special_zero=False), order) for t in (q, k, v)]
        scores = body.op("SoftMax", body.op("MatMul", heads[0], heads[1], transpose_b=True), axis=3)
        mixed = body.op("Transpose", body.op("MatMul", scores, heads[2]), order)
        flat = body.op("Reshape", mixed, body.constant(np.array([1, 128, 768])), special_zero=False)
        x = body.op("MatMul", flat, *inputs(body, "768,768"))
        x = body.op("MatMul", body.op("MatMul", x, *inputs(body, "768,3072")), *inputs(body, "3072,768"))
    body.result(x)
    assert 2 * total(body) == pytest.approx(22.5e9, rel=0.01)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_memory_by_lifetimes():
    """x is live to the end, the chain's values two at a time; the constant and values derived from it do not count."""
    body = Body(bytearray())
    x = body.parameter(et.f32, "100")
    scale = body.op("Negative", body.constant(np.ones(100, np.float32)))
    y = body.op("Multiply", x, scale)
    y = body.op("ReLU", y)
    y = body.op("Reshape", y, body.constant(np.array([10, 10])), special_zero=False)
    body.result(body.op("Exp", y))
    usage = memory(irload.read_model(*body.model()))
    assert usage.constants == 400 + 16
    assert usage.peak == 3 * 400
    assert usage.activations == 4 * 400
    assert usage.unknown == 0
    assert usage.at is not None
    assert usage.at.type == "ReLU"


def test_tensors_of_unknown_size_are_counted_separately():
    body = Body(bytearray())
    x = body.parameter(et.f32, "?,3")
    body.result(body.op("ReLU", x))
    usage = memory(irload.read_model(*body.model()))
    assert (usage.peak, usage.unknown, usage.at) == (0, 2, None)


def test_a_body_is_alive_while_its_layer_runs():
    usage = memory(irload.read_model(*looped(3).model()))
    assert usage.at is not None
    assert usage.at.type == "Loop"
    assert usage.peak == (8 + 16 + 8) * 4 + (8 + 16 + 8) * 4
