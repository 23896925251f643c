"""Model, Node and ports: reading, reshaping, editing and saving as with OpenVINO."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import irload.openvino as irov
from tests.openvino.both import DIGITS, MODELS, failure, opset, same


def small(ov):
    """A model of two inputs and two outputs, with names."""
    ops = opset(ov)
    a, b = ops.parameter([2, 3], np.float32, name="a"), ops.parameter([2, 3], np.float32, name="b")
    total = ops.add(a, b, name="total")
    relu = ops.relu(total, name="relu")
    relu.output(0).get_tensor().set_names({"out", "alias"})
    return ov.Model([relu, ops.result(ops.abs(total, name="abs"), name="second")], [a, b], "small")


def test_reading():
    def script(ov):
        core = ov.Core()
        model = core.read_model(DIGITS)
        yield repr(model), model.inputs, model.outputs, model.name[:5], model.friendly_name
        yield core.read_model(str(DIGITS)).outputs, core.read_model(DIGITS, DIGITS.with_suffix(".bin")).outputs
        xml, weights = DIGITS.read_bytes(), DIGITS.with_suffix(".bin").read_bytes()
        yield core.read_model(xml, weights).outputs, core.read_model(io.BytesIO(xml), io.BytesIO(weights)).outputs
        yield core.read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8))).outputs
        yield failure(lambda: core.read_model("nope.xml")), failure(lambda: core.read_model(b"<net"))
        yield failure(lambda: core.read_model(5))

    same(script)


def test_nodes():
    def script(ov):
        model = ov.Core().read_model(DIGITS)
        for op in model.get_ordered_ops():
            yield op, op.get_type_name(), op.friendly_name, op.get_input_size(), op.outputs()
            yield op.type_info.name, op.type_info.version_id, op.inputs(), op.get_output_partial_shape(0)
            yield sorted(op.get_attributes().items())
        conv = next(op for op in model.get_ops() if op.get_type_name() == "Convolution")
        yield conv.input_value(0), conv.input_values(), conv.input_value(1).get_node(), conv.get_strides()
        yield sorted(str(i.get_node()) for i in conv.output(0).target_inputs), conv.input(0).get_source_output().index
        yield conv.get_input_partial_shape(1), conv.get_element_type(), conv.get_input_element_type(0)
        yield failure(lambda: conv.output(4)), failure(lambda: conv.input(9)), failure(lambda: conv.shape)
        constant = conv.input_value(1).get_node()
        yield constant.data, constant.get_data().shape, constant.get_vector()[:4], constant.get_byte_size()
        yield len(model.get_ops()), len(model.get_ordered_ops()), model.get_parameters(), model.get_results()
        yield model.is_dynamic(), model.get_output_size(), model.get_output_op(0), model.get_result()
        yield conv is conv.output(0).node, conv.output(0) == conv.output(0), {conv.output(0): 1}[conv.output(0)]

    same(script)


def test_reshape():
    def script(ov):
        model = small(ov)
        a = model.input("a")
        for shapes in (
            {"a": [4, 3], "b": [4, 3]},
            {0: [1, 5], 1: ov.PartialShape([1, 5])},
            {a: "?,7", model.input(1): "?,7"},
            {"a": (ov.Dimension(1, 9), -1), "b": [(1, 9), -1]},
            {"a": [2, 2], "b": [2, 2]},
        ):
            model.reshape(shapes)
            yield model.inputs, model.outputs, model.is_dynamic()
        yield failure(lambda: model.reshape({"a": [3, 3], "b": [5, 5]})), failure(lambda: model.reshape([1, 2]))
        yield failure(lambda: model.reshape({"c": [1]})), failure(lambda: model.reshape({9: [1]}))
        yield failure(lambda: model.reshape({"a": 3})), failure(lambda: model.reshape({3.5: [1]}))
        digits = ov.Core().read_model(DIGITS)
        digits.reshape([3, 1, 8, 8])
        yield digits.outputs
        digits.reshape(ov.PartialShape([-1, 1, 8, 8]))
        digits.get_parameters()[0].layout = ov.Layout("NCHW")
        ov.set_batch(digits, 5)
        yield digits.inputs, ov.get_batch(digits), digits.get_parameters()[0].layout

    same(script)


def test_outputs_are_added():
    def script(ov):
        model = small(ov)
        yield model.add_outputs("out"), model.add_outputs([("abs", 0)]), len(model.outputs)
        yield model.add_outputs(model.get_ordered_ops()[2].output(0)), len(model.outputs)
        yield failure(lambda: model.add_outputs("nope")), failure(lambda: model.add_outputs(("nope", 0)))
        yield failure(lambda: model.add_outputs(5)), failure(lambda: model.add_outputs([("abs", 7)]))
        names = [o.names for o in model.outputs]
        yield [sorted(n)[0][:6] for n in names]

    same(script)


def test_names():
    def script(ov):
        model = small(ov)
        yield model.output(0).names, model.output("alias").index, model.outputs[0].any_name, model.input("b").names
        model.output(0).get_tensor().add_names({"more"})
        yield model.output("more"), model.get_ordered_ops()[3].output(0).names
        model.input(0).get_tensor().set_names({"image"})
        yield model.input("image"), failure(lambda: model.input("a"))
        model.get_ordered_ops()[2].set_friendly_name("sum")
        yield [op.friendly_name for op in model.get_ordered_ops()], model.get_friendly_name()
        yield failure(lambda: model.input(7)), failure(lambda: model.output()), failure(lambda: model.input())

    same(script)


def test_editing():
    def script(ov):
        ops = opset(ov)
        model = small(ov)
        total = model.get_ordered_ops()[2]
        negative = ops.negative(total.output(0), name="negative")
        for target in total.output(0).target_inputs:
            if target.get_node() is not negative:
                target.replace_source_output(negative.output(0))
        model.validate_nodes_and_infer_types()
        yield sorted(op.get_type_name() for op in model.get_ordered_ops())
        compiled = ov.Core().compile_model(model, "CPU")
        x = np.array([[1, -2, 3], [4, -5, 6]], np.float32)
        yield compiled([x, x]).to_tuple()
        relu = next(op for op in model.get_ops() if op.get_type_name() == "Relu")
        relu.output(0).replace(ops.exp(negative.output(0)).output(0))
        yield sorted(op.get_type_name() for op in model.get_ordered_ops()), model.output("out").names
        yield ov.Core().compile_model(model, "CPU")([x * 0, x * 0])[0]
        extra = ops.parameter([2, 3], np.float32, name="extra")
        model.replace_parameter(1, extra)
        yield model.inputs, [p.friendly_name for p in model.get_parameters()], model.get_parameter_index(extra)
        model.remove_result(model.get_results()[1])
        yield model.outputs
        added = ops.result(ops.sqrt(extra), name="root")
        model.add_results([added])
        yield len(model.outputs), model.get_result_index(added)

    same(script)


def test_constants_can_be_replaced():
    def script(ov):
        ops = opset(ov)
        p = ops.parameter([2], np.float32, name="p")
        model = ov.Model([ops.multiply(p, ops.constant(np.array([2, 3], np.float32)))], [p], "m")
        product = model.get_ordered_ops()[-2]
        product.input(1).replace_source_output(ops.constant(np.array([10, 10], np.float32)).output(0))
        yield ov.Core().compile_model(model, "CPU")(np.array([1, 2], np.float32))[0]
        ov.utils.replace_node(product, ops.subtract(p, ops.constant(np.array([1, 1], np.float32))))
        yield ov.Core().compile_model(model, "CPU")(np.array([1, 2], np.float32))[0]

    same(script)


def test_copies_are_independent():
    def script(ov):
        model = small(ov)
        other, third = model.clone(), copy.deepcopy(model)
        other.reshape({0: [7, 7], 1: [7, 7]})
        yield model.inputs, other.inputs, third.inputs, failure(lambda: copy.copy(model)), ov.Model(model).outputs
        compiled = ov.Core().compile_model(model, "CPU")
        model.reshape({0: [9, 9], 1: [9, 9]})
        yield compiled.inputs, compiled([np.ones((2, 3), np.float32)] * 2)[0]

    same(script)


def test_metadata():
    def script(ov):
        model = small(ov)
        model.set_rt_info("value", ["outer", "inner"])
        model.set_rt_info(5, "number")
        model.rt_info["flag"] = True
        yield model.get_rt_info(["outer", "inner"]).astype(str), model.has_rt_info("number"), model.has_rt_info("nope")
        yield (
            model.get_rt_info("number").astype(int),
            failure(lambda: model.get_rt_info("nope")),
            "flag" in model.rt_info,
        )
        node = model.get_ordered_ops()[2]
        node.rt_info["mark"] = "here"
        yield node.get_rt_info()["mark"].astype(str), len(node.rt_info), list(node.rt_info.keys())
        yield model.has_rt_info(["outer", "inner"]), model.has_rt_info(["outer", "nope"])

    same(script)


def test_evaluate():
    def script(ov):
        model = small(ov)
        tensors = [ov.Tensor(np.full((2, 3), k, np.float32)) for k in (1, -3)]
        outputs = [ov.Tensor(ov.Type.f32, [2, 3]) for _ in range(2)]
        yield model.evaluate(outputs, tensors), [t.data for t in outputs]

    same(script)


def test_tensors_that_do_not_fit_are_not_evaluated():
    def script(ov):
        ops = opset(ov)
        a, b = (ops.parameter([2, 1], np.float32) for _ in range(2))
        model = ov.Model(ops.add(a, b), [a, b], "m")
        one = lambda *shape, kind=np.float32: ov.Tensor(np.ones(shape, kind))  # noqa: E731
        out = one(2, 1)
        for outputs, inputs in (
            ([out], [one(2, 1)]),
            ([out], [one(2, 1)] * 3),
            ([], [one(2, 1)] * 2),
            ([out], [one(2, 1, kind=np.int32)] * 2),
            ([out], [one(3, 1)] * 2),
            ([out, out], [one(2, 1)] * 2),
        ):
            yield failure(lambda o=outputs, i=inputs: model.evaluate(o, i)), out.data

    same(script)


def test_wrong_arguments_of_edits():
    def script(ov):
        ops = opset(ov)

        def model():
            a = ops.parameter([2], np.float32, name="a")
            return ov.Model(ops.relu(a), [a], "m")

        m, other = model(), model()
        for edit in (
            lambda: m.remove_parameter(other.parameters[0]),
            lambda: m.remove_result(other.results[0]),
            lambda: m.remove_sink(m.parameters[0]),
            lambda: m.remove_result(m.parameters[0]),
            lambda: m.remove_parameter(3),
            lambda: m.add_parameters([3]),
            lambda: m.add_parameters([m.parameters[0]]),
            lambda: m.add_results([3]),
            lambda: m.replace_parameter(0, m.results[0]),
            lambda: m.get_parameter_index(m.results[0]),
            lambda: m.get_parameter_index(0),
            lambda: m.get_result_index("a"),
            lambda: m.reshape(None),
        ):
            yield failure(edit), len(m.inputs), len(m.outputs)

    same(script)


def test_saved_models_are_read_by_the_other(tmp_path):
    for k, (writer, reader) in enumerate([("openvino", "irload"), ("irload", "openvino")]):
        modules = {"openvino": __import__("openvino"), "irload": irov}
        ov, other = modules[writer], modules[reader]
        model = small(ov)
        model.set_rt_info(True, ["info", "flag"])
        model.get_parameters()[0].layout = ov.Layout("NC")
        ov.serialize(model, tmp_path / f"{k}.xml")
        ov.save_model(model, tmp_path / f"half_{k}.xml")
        read = other.Core().read_model(tmp_path / f"{k}.xml")
        assert [p.friendly_name for p in read.get_parameters()] == ["a", "b"]
        assert read.get_parameters()[0].layout == "NC"
        assert read.output("alias").names == {"out", "alias"}
        assert read.get_rt_info(["info", "flag"]).astype(bool) is True
        assert read.rt_info["info"]["flag"].astype(bool) is True
        x = np.array([[1, -2, 3], [4, -5, 6]], np.float32)
        assert other.compile_model(read, "CPU")([x, x * 0])["out"].tolist() == np.maximum(x, 0).tolist()
        assert other.compile_model(tmp_path / f"half_{k}.xml", "CPU")([x, x])[1].tolist() == np.abs(2 * x).tolist()


def test_models_as_text(tmp_path):
    def script(ov):
        ov.serialize(small(ov), tmp_path / "model.xml")
        text, weights = (tmp_path / "model.xml").read_text(), (tmp_path / "model.bin").read_bytes()
        core = ov.Core()
        core.add_extension([ov.Extension(), ov.Extension()])
        yield core.read_model(model=text, weights=ov.Tensor(np.frombuffer(weights or b"0", np.uint8))).inputs
        yield core.compile_model(model=text, weights=weights, device_name="CPU").outputs
        yield failure(lambda: core.read_model(model=3)), failure(lambda: core.compile_model(model=3))

    same(script)


def test_types_of_v10_ports_become_converts(tmp_path):
    text = (MODELS / "pad_openvino" / "model.xml").read_text()
    if 'version="10"' not in text:
        text = text.replace('version="11"', 'version="10"', 1)
    path = tmp_path / "model.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes((MODELS / "pad_openvino" / "model.bin").read_bytes())

    def script(ov):
        model = ov.Core().read_model(path)
        yield [p.element_type for p in (*model.inputs, *model.outputs)], model.input(0).partial_shape

    same(script)


def test_a_closed_model_is_not_accessible():
    with small(irov) as model:
        assert model.inputs
    with pytest.raises(AttributeError, match="no longer accessible"):
        _ = model.inputs


def test_ports_by_keyword():
    def script(ov):
        model = small(ov)
        compiled = ov.Core().compile_model(model, "CPU")
        for subject in (model, compiled):
            yield subject.input(index=1).any_name, subject.input(tensor_name="b").index, subject.output(index=0).names
        processor = ov.preprocess.PrePostProcessor(model)
        processor.input(tensor_name="a").tensor().set_element_type(ov.Type.u8)
        processor.input(input_index=1).tensor().set_element_type(ov.Type.i32)
        yield processor.build().inputs
        yield (
            ops_result(ov).shape,
            failure(lambda: ov.properties.cache_dir(6)),
            failure(lambda: ov.properties.supported_properties("x")),
        )

    same(script)


def ops_result(ov):
    return opset(ov).result(np.zeros((3, 2), np.float32))
