"""Creation of nodes: types, shapes and errors of OpenVINO, also for nodes that compilation rejects."""

from __future__ import annotations

import numpy as np
import pytest

import irload.openvino as irov
from tests.openvino.both import failure, opset, same

F, U = np.float32, np.uint32
PROPOSAL = {
    "base_size": U(1),
    "pre_nms_topn": U(9),
    "post_nms_topn": U(4),
    "feat_stride": U(16),
    "min_size": U(2),
    "nms_thresh": F(0.5),
    "ratio": np.array([0.5, 2], F),
    "scale": np.array([2, 4, 8], F),
}


def unchecked(ops, kind):
    """A node that breaks a rule of its operation."""
    match kind:
        case "proposal":
            ports = [ops.parameter(s, F) for s in ([2, 10, 7, 8], [2, 20, 7, 8], [3])]
            return ops.proposal(*ports, PROPOSAL)
        case "region_yolo":
            return ops.region_yolo(ops.parameter([1, 10, 5, 5], F), 4, 2, 1, False, [1, 2], 0, 3)
        case "binary_convolution":
            ones, zeros = np.array([1, 1]), np.array([0, 0])
            ports = [ops.parameter(s, F) for s in ([1, 2, 5, 5], [3, 2, 3, 3])]
            return ops.binary_convolution(*ports, ones, zeros, zeros, ones, "xnor-popcount", 0.0)
        case "ctc_greedy_decoder":
            return ops.ctc_greedy_decoder(ops.parameter([6, 2, 4], np.int32), ops.parameter([6, 2], np.int32))
        case _:
            ports = [ops.parameter(s, np.int32) for s in ([1, 8, 5, 5], [3, 5], [3, 2, 1, 1])]
            return ops.deformable_psroi_pooling(*ports[:2], 2, 0.5, 2, offsets=ports[2])


@pytest.mark.parametrize(
    "kind", ["proposal", "region_yolo", "binary_convolution", "ctc_greedy_decoder", "deformable_psroi_pooling"]
)
def test_compilation_checks_nodes_that_creation_does_not(kind):
    same(lambda ov: [[(o.element_type, o.partial_shape) for o in unchecked(opset(ov), kind).outputs()]])
    node = unchecked(irov.opset13, kind)
    model = irov.Model([node.output(0)], [i.get_source_output().get_node() for i in node.inputs()])
    with pytest.raises(RuntimeError, match="must"):
        irov.compile_model(model)


def test_ranks_are_checked_at_creation():
    def script(ov):
        ops = opset(ov)
        ports = [ops.parameter(s, F) for s in ([2, 10, 7], [2, 20, 7, 8], [3])]
        yield failure(lambda: ops.proposal(*ports, PROPOSAL))

    same(script)


def test_shapes_that_values_determine_stay_dynamic():
    def script(ov):
        ops = opset(ov)
        boxes = ops.constant(np.array([[[0, 0, 1, 1], [0, 2, 1, 3]]], F))
        scores = ops.constant(np.array([[[0.9, 0.7]]], F))
        for node in (ops.multiclass_nms(boxes, scores), ops.matrix_nms(boxes, scores), ops.non_zero(scores)):
            yield [o.partial_shape for o in node.outputs()]
        yield ops.tile(ops.constant([1, 2]), ops.constant([3])).output(0).partial_shape

    same(script)


def test_python_types_have_32_bits_in_factories():
    def script(ov):
        ops = opset(ov, 11)
        for dtype in (int, float, bool, np.float64):
            yield ops.constant([1, 2], dtype).output(0).element_type, ops.parameter([1], dtype).output(0).element_type
            yield ops.convert(ops.parameter([1]), dtype).output(0).element_type, ov.Type(dtype)
        yield ops.read_value(ops.parameter([1]), "v", float, [1]).output(0).element_type

    same(script)


def test_integers_are_codes_of_nf4():
    def script(ov):
        for values in (np.array([0, 1, 14, 15], np.uint8), np.array([0, 3]), 5, np.array([0.1, -1, 0.5], F)):
            yield opset(ov).constant(values, ov.Type.nf4).data
        for values in ([0, 1, 14, 15], [0.1, -1, 0.5, 3]):
            yield ov.op.Constant(ov.Type.nf4, ov.Shape([4]), values).get_data(dtype=np.float32)
        yield failure(lambda: ov.op.Constant(ov.Type.nf4, ov.Shape([2]), [0, 17]))

    same(script)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "u4", "boolean"])
def test_data_of_constants_are_read_only(dtype):
    def script(ov):
        node = opset(ov).constant(np.ones(4, F), getattr(ov.Type, dtype))
        for array in (node.data, node.get_data(), node.get_data(copy=True), node.tensor_view.data):
            yield array, array.flags.writeable

    same(script)


def test_the_framework_of_a_proposal_is_any_text_until_inference():
    def script(ov):
        node = unchecked(opset(ov), "proposal")
        node.set_framework("other")
        yield node.get_framework()

    same(script)


def test_planes_are_one_or_three():
    def script(ov):
        ops = opset(ov)
        y, u = ops.parameter([1, 4, 4, 1], F), ops.parameter([1, 2, 2, 1], F)
        for planes in ((y, u), (y, None, u), (y, u, u)):
            yield failure(lambda planes=planes: ops.i420_to_rgb(*planes).output(0).shape)

    same(script)


def test_sizes_of_roi_pooling_change_together():
    def script(ov):
        ops = opset(ov)
        ports = ops.parameter([2, 3, 4, 5]), ops.parameter([7, 5])
        node = ops.roi_pooling(*ports, [6, 6], 0.5)
        yield node.get_output_size()
        node.set_output_roi([2, 1])
        node.validate_and_infer_types()
        yield node.output(0).shape, node.get_output_roi()
        with pytest.warns(DeprecationWarning, match="`output_size` is deprecated"):
            node = ops.roi_pooling(*ports, output_size=[3, 2], spatial_scale=0.5)
        node.set_output_size([4, 5])
        yield node.get_output_size(), node.get_output_roi()

    same(script)


@pytest.mark.parametrize(
    "text",
    ["Dimension('C')", "Dimension('?..5')", "Dimension('5..x')", "PartialShape('[?,,3]')", "PartialShape('1,a')"],
)
def test_messages_name_the_part_that_is_no_size(text):
    def message(ov):
        try:
            return eval(f"ov.{text}")
        except RuntimeError as error:
            return str(error)[str(error).find("Cannot") :].strip()

    same(lambda ov: [message(ov)])


@pytest.mark.parametrize("trips", [7, -1, None])
@pytest.mark.parametrize("going", [True, False, None])
def test_iterations_of_loops(trips, going):
    def script(ov):
        ops = opset(ov)
        value, unfed = ops.parameter([2], F), ops.parameter([1], np.int64)
        relu = ops.relu(value)
        condition = ops.greater(value, F(0)) if going is None else ops.constant(np.array([going]))
        condition = ops.reduce_logical_and(condition, np.int64(0)) if going is None else condition
        count = ops.parameter([], np.int64) if trips is None else ops.constant(trips, np.int64)
        node = ops.loop(count, ops.constant(True, bool))
        node.set_function(ov.Model([condition, relu], [unfed, value], "body"))
        node.set_merged_input(value, ops.parameter([2], F).output(0), relu.output(0))
        node.set_special_body_ports([-1, 0])
        yield node.get_num_iterations()
        yield node.get_iter_value(relu.output(0), -1).partial_shape, node.get_num_iterations()
        yield node.get_concatenated_slices(relu.output(0), 0, 1, 1, -1, 0).partial_shape
        node.validate_and_infer_types()

    same(script)
