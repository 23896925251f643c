"""Operations written in Python: inferred, run, saved and read."""

from __future__ import annotations

import numpy as np
import pytest

import irload.openvino as irov
from tests.openvino.both import opset

pytestmark = pytest.mark.usefixtures("passing_extensions")


class Scaled(irov.Op):
    """The input multiplied by an attribute."""

    class_type_info = irov.DiscreteTypeInfo("Scaled", "extension")

    def __init__(self, inputs=None, factor=2):
        super().__init__(self)
        self.factors = {"factor": factor}
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def evaluate(self, outputs, inputs):
        outputs[0].shape = inputs[0].shape
        outputs[0].data[:] = inputs[0].data * self.factors["factor"]
        return True

    def visit_attributes(self, visitor):
        visitor.on_attributes(self.factors)
        return True


def model():
    p = opset(irov).parameter([-1, 2], np.float32, name="p")
    return irov.Model([opset(irov).negative(Scaled([p], factor=3))], [p], "custom")


def test_operations_run_and_are_saved(tmp_path):
    x = np.array([[1, 2], [3, 4]], np.float32)
    net = model()
    assert irov.compile_model(net)(x)[0].tolist() == (-3 * x).tolist()
    assert [op.get_type_name() for op in net.get_ordered_ops()] == ["Parameter", "Scaled", "Negative", "Result"]
    net.reshape([1, 2])
    assert net.outputs[0].shape == [1, 2]
    irov.serialize(net, tmp_path / "model.xml")
    core = irov.Core()
    core.add_extension(Scaled)
    read = core.read_model(tmp_path / "model.xml")
    scaled = next(op for op in read.get_ops() if op.get_type_name() == "Scaled")
    assert isinstance(scaled, Scaled)
    assert scaled.get_attributes() == {"factor": 3}
    assert core.compile_model(read)(x[:1])[0].tolist() == [[-3, -6]]


def test_other_classes_are_refused():
    core = irov.Core()
    for wrong, words in ((bool, "Unsupported data type"), (irov.OpExtension(int), "Unsupported data type")):
        with pytest.raises(RuntimeError, match=words):
            core.add_extension(wrong)


def test_an_operation_without_evaluate_does_not_run():
    class Silent(irov.Op):
        def validate_and_infer_types(self):
            self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    p = opset(irov).parameter([2], np.float32)
    net = irov.Model([Silent(None, [p])], [p], "silent")
    with pytest.raises(RuntimeError, match="does not define evaluate"):
        irov.compile_model(net)(np.zeros(2, np.float32))


def test_arrays_become_lists_of_numbers():
    p = opset(irov).parameter([2], np.float32)
    node = Scaled([p], factor=np.array([1.5, 2.5], np.float32))
    assert node.get_attributes() == {"factor": [1.5, 2.5]} == node.factors
