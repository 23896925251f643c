"""if_op, loop and tensor_iterator: models with bodies, written with both modules."""

from __future__ import annotations

import numpy as np
import openvino
import pytest

import irload.openvino as irov
from tests.openvino.both import opset, plain, same


def conditional(ov):
    ops = opset(ov)
    condition, x = ops.parameter([], ov.Type.boolean, name="c"), ops.parameter([2], np.float32, name="x")
    a, b = ops.parameter([2], np.float32, name="a"), ops.parameter([2], np.float32, name="b")
    then_result, else_result = ops.result(ops.exp(a)), ops.result(ops.negative(b))
    node = ops.if_op(condition.output(0))
    node.set_then_body(ov.Model([then_result], [a], "then"))
    node.set_else_body(ov.Model([else_result], [b], "else"))
    node.set_input(x.output(0), a, b)
    out = node.set_output(then_result, else_result)
    return ov.Model([ops.result(out)], [condition, x], "conditional"), node


def counting(ov):
    ops = opset(ov)
    count, start = ops.constant(np.array(4, np.int64)), ops.parameter([1, 2], np.float32, name="start")
    step, value = ops.parameter([], np.int64, name="step"), ops.parameter([1, 2], np.float32, name="value")
    one = ops.parameter([1, 2], np.float32, name="one")
    total = ops.add(ops.add(value, one), ops.convert(step, "f32"))
    body = ov.Model([ops.result(ops.constant(np.array(True))), ops.result(total)], [step, value, one], "body")
    node = ops.loop(count.output(0), ops.constant(np.array(True)).output(0))
    node.set_function(body)
    node.set_special_body_ports([0, 0])
    node.set_merged_input(value, start.output(0), total.output(0))
    node.set_invariant_input(one, ops.constant(np.ones((1, 2), np.float32)).output(0))
    last, every = (
        node.get_iter_value(total.output(0), -1),
        node.get_concatenated_slices(total.output(0), 0, 1, 1, -1, 0),
    )
    return ov.Model([ops.result(last), ops.result(every)], [start], "counting"), node


def iterating(ov):
    ops = opset(ov)
    x = ops.parameter([3, 2], np.float32, name="x")
    part, held = ops.parameter([1, 2], np.float32, name="part"), ops.parameter([1, 2], np.float32, name="held")
    total = ops.add(part, held)
    node = ops.tensor_iterator()
    node.set_body(ov.Model([ops.result(total)], [part, held], "body"))
    node.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    node.set_merged_input(held, ops.constant(np.zeros((1, 2), np.float32)).output(0), total.output(0))
    every, last = (
        node.get_concatenated_slices(total.output(0), 0, 1, 1, -1, 0),
        node.get_iter_value(total.output(0), -1),
    )
    return ov.Model([ops.result(every), ops.result(last)], [x], "iterating"), node


INPUTS = {
    conditional: [np.array(True), np.array([1, 2], np.float32)],
    counting: [np.array([[10, 20]], np.float32)],
    iterating: [np.arange(6, dtype=np.float32).reshape(3, 2)],
}


@pytest.mark.parametrize("build", INPUTS)
def test_models_with_bodies(build, tmp_path):
    (ours, node), (theirs, _) = build(irov), build(openvino)
    assert plain(ours.outputs)[0].split("shape")[1] == plain(theirs.outputs)[0].split("shape")[1]
    expected = [plain(a) for a in openvino.compile_model(theirs, "CPU")(INPUTS[build]).to_tuple()]
    assert [plain(a) for a in irov.compile_model(ours)(INPUTS[build]).to_tuple()] == expected
    irov.serialize(ours, tmp_path / "model.xml")
    for ov in (openvino, irov):
        result = ov.compile_model(tmp_path / "model.xml", "CPU")(INPUTS[build])
        assert [plain(a) for a in result.to_tuple()] == expected
    read = irov.Core().read_model(tmp_path / "model.xml")
    copy = next(op for op in read.get_ops() if type(op) is type(node))
    body = copy.get_function(0) if build is conditional else copy.get_function()
    assert [op.get_type_name() for op in body.get_ops()]


def test_descriptions():
    def script(ov):
        for build in (counting, iterating):
            _, node = build(ov)
            for description in (*node.get_input_descriptions(), *node.get_output_descriptions()):
                yield (
                    type(description).__name__,
                    sorted(
                        (name, getattr(description, name))
                        for name in ("input_index", "body_parameter_index", "body_value_index", "output_index", "axis")
                        if hasattr(description, name)
                    ),
                )
        yield counting(ov)[1].get_special_body_ports()
        _, node = conditional(ov)
        yield node.get_then_body().get_results()[0].get_type_name(), node.get_function(1).outputs[0].partial_shape
        yield [d.input_index for d in node.get_input_descriptions(0)]

    same(script)
