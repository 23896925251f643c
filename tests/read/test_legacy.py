"""IR v2 to v7: each layer type against its definition in NumPy, state, bodies, and faults."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.errors import IRError
from irload.graph import UnknownOp
from tests.harness.runtime import core
from tests.read import legacy_elementwise, legacy_layers, legacy_movement, legacy_windows
from tests.read.legacy import legacy_net
from tests.read.legacy_layers import FC, NCHW, SCALE, SHIFT, Row, W, conv, kernel, weights

ROWS = [row for part in (legacy_layers, legacy_elementwise, legacy_windows, legacy_movement) for row in part.ROWS]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.type}-{r.data[:40]}")
@pytest.mark.parametrize("half", [False, True], ids=["f32", "f16"])
def test_layers(row: Row, half: bool) -> None:
    kind = np.float16 if half else np.float32
    blobs = {name: values.astype(kind) for name, values in row.blobs.items()}
    text, blob = legacy_net(
        *(row.type, row.data, row.inputs, row.outputs, blobs, row.version, row.constants),
        precision="FP16" if half else "FP32",
        precisions=row.precisions,
    )
    model = irload.read_model(text, blob)
    assert model.warnings == []
    inputs = [row.values.get(k, weights(*dims)) for k, dims in enumerate(row.inputs) if k not in row.constants]
    result = irload.compile_model(model, jit=False)(inputs)
    expected = row.expected(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(result) == len(expected)
    for k, values in enumerate(expected):
        assert result[k].shape == tuple(row.outputs[k])
        np.testing.assert_allclose(result[k], values, rtol=2e-3 if half else 2e-5, atol=2e-3 if half else 2e-5)


def test_a_saved_file_is_read_by_the_runtime(tmp_path) -> None:
    text, blob = legacy_net("ScaleShift", "", [NCHW], [NCHW], {"weights": SCALE.astype(np.float16)}, precision="FP16")
    model = irload.read_model(text, blob)
    irload.save_model(model, tmp_path / "new.xml")
    x = weights(*NCHW)
    theirs = core().compile_model(str(tmp_path / "new.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
    np.testing.assert_allclose(irload.compile_model(model, jit=False)(x)[0], theirs, rtol=1e-6)


def test_rewritten_layers_are_listed() -> None:
    text, blob = legacy_net("ScaleShift", "", [NCHW], [NCHW], {"weights": SCALE, "biases": SHIFT})
    model = irload.read_model(text, blob)
    assert model.ir_version == 6
    assert model.rewritten == ["Input 'in0' → Parameter", "ScaleShift 'layer' → Multiply, Add"]
    assert [o.any_name for o in model.outputs] == ["layer"]
    model = irload.read_model(*legacy_net("Concat", "", [NCHW, NCHW], [(1, 6, 6, 6)]))
    assert model.rewritten == ["Input 'in0' → Parameter", "Input 'in1' → Parameter"]
    assert irload.read_model(*legacy_net("Copy", "", [NCHW], [NCHW])).rewritten[1] == "Copy 'layer' → nothing"


def test_an_unknown_layer_stays_unknown() -> None:
    model = irload.read_model(*legacy_net("Oddity", "", [NCHW], [NCHW]))
    assert [type(n.op) for n in model.nodes if n.name == "layer"] == [UnknownOp]
    assert "Oddity" in model.warnings[0]


FAULTS = [
    ("Convolution", kernel(g=2), [NCHW], [(1, 4, 4, 4)], {"weights": W}, "group 2 does not divide"),
    ("Convolution", kernel(), [NCHW], [(1, 4, 4, 4)], {"weights": W[:3]}, r"weights have 324 bytes.*432 in f32"),
    ("BinaryConvolution", kernel(), [NCHW], [(1, 4, 4, 4)], {"weights": W}, r"weights have 432 bytes.*14 in u1"),
    ("Convolution", '<data kernel="3,3,3" output="4"/>', [NCHW], [(1, 4, 4, 4)], {"weights": W}, "must have 2 values"),
    (
        *(
            "Pooling",
            '<data kernel="6,1,6" strides="1,1,1" pads_begin="0,0" pads_end="0,0,0"/>',
            [NCHW],
            [(1, 3, 1, 1)],
        ),
        *({}, "2 values for an input of rank 4, found 3 in kernel, 3 in strides, 3 in pads_end$"),
    ),
    ("Convolution", '<data kernel="3,a" output="4"/>', [NCHW], [(1, 4, 4, 4)], {}, "must consist of numbers"),
    ("Pooling", '<data kernel="2,2" pool-method="sum"/>', [NCHW], [(1, 3, 5, 5)], {}, "must be max or avg"),
    ("Eltwise", '<data operation="fold"/>', [NCHW, NCHW], [NCHW], {}, "operation is 'fold'"),
    ("Crop", '<data axis="7" offset="1"/>', [NCHW], [NCHW], {}, "do not fit a rank of 4"),
    ("FullyConnected", "", [NCHW], [(1, 5)], {}, "out-size is missing"),
    ("BatchNormalization", '<data epsilon="0.5"/>', [NCHW], [NCHW], {"weights": SCALE}, "no biases"),
    ("BatchNormalization", '<data epsilon="0.5"/>', [NCHW], [NCHW], {"biases": SCALE}, "no weights"),
    ("BinaryConvolution", kernel(g=2), [(1, 4, 5, 5)], [(1, 4, 3, 3)], {"weights": W}, "several groups"),
    ("Convolution", kernel(), [(1, 3)], [(1, 4)], {"weights": W}, "input of rank 2, expected 3 to 5"),
    ("Convolution", kernel(), [(1, 3, 1, 1, 6, 6)], [(1, 4)], {"weights": W}, "input of rank 6, expected 3 to 5"),
    ("Convolution", kernel(g=0), [NCHW], [(1, 4, 4, 4)], {"weights": W}, "group 0 does not divide"),
    ("Convolution", kernel(s="0,0"), [NCHW], [(1, 4, 4, 4)], {"weights": W}, "do not fit its type Convolution"),
    ("Convolution", kernel(), [NCHW], [(1, 4, 4)], {"weights": W}, "do not fit its type Convolution"),
    ("Slice", '<data axis="4"/>', [NCHW], [NCHW], {}, "do not fit its type Slice"),
    ("ReLU", "", [NCHW], [NCHW, NCHW], {}, "has 2 outputs, expected 1"),
    ("FullyConnected", '<data out-size="5"/>', [(12,)], [(1, 5)], {"weights": FC}, "rank 1 and an output of rank 2"),
    ("FullyConnected", '<data out-size="5"/>', [(12,)], [()], {"weights": FC}, "an output of rank 0"),
    ("FullyConnected", '<data out-size="5,6"/>', [(1, 12)], [(1, 5)], {"weights": FC}, "must be one number, found 2"),
    ("Eltwise", "", [NCHW], [NCHW], {}, "has 1 inputs, expected at least 2"),
    ("Eltwise", '<data coeff="1,2,3"/>', [NCHW] * 2, [NCHW], {}, "must have 2 values, found 3"),
    ("Select", "", [NCHW] * 2, [NCHW], {}, "has no input 2"),
    ("Crop", '<data axis="1,2" offset="1"/>', [NCHW], [NCHW], {}, "do not fit a rank of 4"),
    ("Crop", '<data axis="-1" offset="1"/>', [NCHW], [NCHW], {}, "do not fit a rank of 4"),
    ("Crop", '<data axis="3" offset="1"/>', [NCHW], [(1, 3, 6)], {}, "do not fit a rank of 4"),
    ("Crop", '<data axis="1" offset="1"/>', [NCHW], [], {}, "has no output 0"),
    ("Tile", '<data axis="4" tiles="2"/>', [NCHW], [NCHW], {}, "axis is 4, outside a rank of 4"),
    ("Tile", '<data axis="-5" tiles="2"/>', [NCHW], [NCHW], {}, "axis is -5, outside a rank of 4"),
    ("Memory", '<data id="v" index="1"/>', [NCHW], [], {}, "which reads, but no output"),
    ("Norm", '<data region="all" size="3"/>', [NCHW], [NCHW], {}, "must be across or same"),
    ("MVN", '<data across_channels="maybe"/>', [NCHW], [NCHW], {}, "must be 0, 1, true or false, found 'maybe'"),
    ("Activation", '<data type="sinus"/>', [NCHW], [NCHW], {}, "type is 'sinus', which is not a legacy activation"),
    ("Resample", '<data type="lanczos"/>', [NCHW], [NCHW], {}, "type is 'lanczos'"),
    ("LSTMCell", '<data hidden_size="2"/>', [(1, 3), (1, 2), (1, 2)], [(1, 2)] * 2, {}, "has no weights"),
]


@pytest.mark.parametrize(("type", "data", "inputs", "outputs", "blobs", "said"), FAULTS)
def test_faults_name_the_layer(type, data, inputs, outputs, blobs, said) -> None:
    with pytest.raises(IRError, match=said) as caught:
        irload.read_model(*legacy_net(type, data, inputs, outputs, blobs))
    assert caught.value.where is not None
    assert caught.value.where.layer_name == "layer"


def test_leading_dims_that_a_reshape_keeps_follow_the_input() -> None:
    for type, dims, size in (("Flatten", (1, 108), (5, 108)), ("Reshape", (1, 3, 36), (5, 3, 36))):
        model = irload.read_model(*legacy_net(type, "", [NCHW], [dims]))
        assert model.reshape((5, 3, 6, 6)).outputs[0].shape == size


def test_rounded_up_pooling_of_other_sizes() -> None:
    data = '<data kernel="3,3" strides="3,3" pool-method="max"/>'
    model = irload.read_model(*legacy_net("Pooling", data, [(1, 2, 8, 8)], [(1, 2, 3, 3)]))
    assert model.reshape((1, 2, 7, 10)).outputs[0].shape == (1, 2, 3, 4)
    model = irload.read_model(*legacy_net("Pooling", data, [(1, 2, 8, 8)], [(1, 2, 2, 2)]))
    assert model.reshape((1, 2, 7, 9)).outputs[0].shape == (1, 2, 2, 3)
    for rounding, size in (("ceil", 3), ("floor", 2)):  # both give the declared dims
        data = f'<data kernel="3,3" strides="3,3" pool-method="max" rounding_type="{rounding}"/>'
        model = irload.read_model(*legacy_net("Pooling", data, [(1, 2, 9, 9)], [(1, 2, 3, 3)]))
        assert model.reshape((1, 2, 8, 9)).outputs[0].shape == (1, 2, size, 3)


@pytest.mark.parametrize(
    ("precision", "element"),
    [*((p, "f32") for p in ("FP32", "FP16", "MIXED", "U8", "I8", "U16", "I16")), ("I32", "i32"), ("I64", "i64")],
)
def test_inputs_have_the_precision_of_plugins_for_cpus(precision: str, element: str) -> None:
    model = irload.read_model(*legacy_net("Copy", "", [NCHW], [NCHW], precision=precision))
    assert model.inputs[0].element_type.name == element


def test_reorganized_maps_are_smaller() -> None:
    net = legacy_net("ReorgYolo", '<data stride="2"/>', [(1, 4, 4, 4)], [(1, 16, 2, 2)])
    x = weights(1, 4, 4, 4)
    output = irload.compile_model(irload.read_model(*net))(x)[0]
    assert output.shape == (1, 16, 2, 2)
    np.testing.assert_array_equal(np.sort(output.ravel()), np.sort(x.ravel()))


def test_integers_may_be_written_as_floats() -> None:
    net = legacy_net("FullyConnected", '<data out-size="5.0"/>', [(1, 12)], [(1, 5)], {"weights": FC})
    assert irload.read_model(*net).outputs[0].shape == (1, 5)


def test_strides_by_axis_override_strides_of_the_source_framework() -> None:
    """Files of v2 have both; `stride` has four values there."""
    data = (
        '<convolution_data kernel-x="3" kernel-y="3" stride="1,1,2,2" stride-x="2" stride-y="2" output="4" group="1"/>'
    )
    net = legacy_net("Convolution", data, [NCHW], [(1, 4, 2, 2)], {"weights": W}, version=2)
    x = weights(*NCHW)
    np.testing.assert_allclose(irload.compile_model(irload.read_model(*net))(x)[0], conv(x, W, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("attribute", "size"), [("", 4), ('normalized="1"', 4), ('normalized="0"', 5)])
def test_boxes_are_normalized_by_default(attribute: str, size: int) -> None:
    data = f'<data num_classes="2" top_k="4" keep_top_k="4" nms_threshold="0.5" share_location="1" {attribute}/>'
    net = legacy_net("DetectionOutput", data, [(1, 8), (1, 4), (1, 2, 2 * size)], [(1, 1, 4, 7)])
    (layer,) = (n for n in irload.read_model(*net).nodes if n.type == "DetectionOutput")
    assert layer.op.normalized is (size == 4)


def test_bits() -> None:
    packed = np.array([0b00000001, 0b11110000], np.uint8)  # of 2 outputs and 8 channels, the low bit first
    data = '<data kernel="1,1" output="2" mode="xnor-popcount"/>'
    net = legacy_net("BinaryConvolution", data, [(1, 8, 1, 1)], [(1, 2, 1, 1)], {"weights": packed})
    x = np.array([1, 0, 0, 0, 1, 1, 1, 1], np.float32).reshape(1, 8, 1, 1)
    assert irload.compile_model(irload.read_model(*net))(x)[0].ravel().tolist() == [0, 6]


@pytest.mark.parametrize("count", [3, 4, 6])
def test_proposals_of_more_sizes_read_the_first_four(count: int) -> None:
    data = '<data base_size="16" feat_stride="16" min_size="4" nms_thresh="0.7" post_nms_topn="5" pre_nms_topn="20"'
    dims = [(1, 2, 3, 3), (1, 4, 3, 3), (1, count)]
    net = legacy_net("Proposal", f'{data} ratio="1" scale="1"/>', dims, [(5, 5)])
    scores, deltas = np.random.default_rng(0).random((2, 1, 4, 3, 3)).astype(np.float32)
    boxes = [
        irload.compile_model(irload.read_model(*net))([scores[:, :2], deltas, np.array([[48, 48, *rest]], np.float32)])
        for rest in ([1, 1, 7, 9][: count - 2], [1, 1, 1, 1][: count - 2])
    ]
    assert boxes[0][0].shape == (5, 5)
    np.testing.assert_array_equal(boxes[0][0], boxes[1][0])
