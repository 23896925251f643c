"""Factories: each operation that they create infers as OpenVINO's, and models of them load in OpenVINO."""

from __future__ import annotations

import inspect
import zlib

import numpy as np
import openvino
import pytest

import irload
import irload.openvino as irov
from irload.openvino import factories, opsets
from irload.openvino.attributes import XML_NAMES
from irload.openvino.utils.node_factory import NodeFactory
from irload.ops.registry import registered, resolve
from tests.harness import runtime
from tests.harness.case import GENERATORS
from tests.openvino.both import failure, opset, same
from tests.ops.families import load_families

load_families()
NUMBERED = sorted(row for row in GENERATORS if row[1].startswith("opset") and row[1] != "opset")
BODIES = ("If", "Loop", "TensorIterator")
PARAMETERS = ("Parameter", "Const", "Result")


def built(case):
    """A model of the case's operation, built by the factory of its opset."""
    inputs, nodes = [], []
    for k, operand in enumerate(case.inputs):
        if operand.constant:
            nodes.append(irov.op.Constant(irov.Tensor._from_array(operand.value, operand.element)))
        else:
            inputs.append(irov.op.Parameter(irov.types.type_of(operand.element), operand.value.shape))
            inputs[-1].friendly_name = f"in{k}"
            nodes.append(inputs[-1])
    create = NodeFactory(case.version).create
    node = create(case.type, [n.output(0) for n in nodes], dict(case.attributes))
    return irov.Model([irov.op.Result(o) for o in node.outputs()], inputs, "case")


@pytest.mark.parametrize("row", NUMBERED, ids="-".join)
def test_models_of_every_row_load_in_the_runtime(row, tmp_path):
    if row[0] in BODIES or row[0] in PARAMETERS:
        return  # tested in test_bodies.py, or part of every model
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    case = GENERATORS[row][0](rng)
    model = built(case)
    irov.serialize(model, tmp_path / "model.xml")
    theirs = runtime.core().read_model(tmp_path / "model.xml")
    inferred = [(p.element_type.type_name, str(p.partial_shape)) for p in model.outputs]
    expected = [(p.element_type.type_name, str(p.partial_shape)) for p in theirs.outputs]
    if case.inconsistent_shapes or row[0] == "NonMaxSuppression":  # OpenVINO states shapes that results may not have
        pairs = zip(model.outputs, theirs.outputs, strict=True)
        assert all(a.partial_shape.relaxes(irov.PartialShape(str(b.partial_shape))) for a, b in pairs)
    else:
        assert inferred == expected
    assert irload.read_model(tmp_path / "model.xml").differences == []


def functions(module):
    return {
        name: value
        for name in dir(module)
        if not name.startswith("_") and callable(value := getattr(module, name)) and not inspect.isclass(value)
    }


@pytest.mark.parametrize("number", range(1, 17))
def test_signatures_equal_the_runtimes(number):
    theirs = functions(getattr(openvino, f"opset{number}"))
    ours = getattr(irov, f"opset{number}")
    differing = {}
    for name, function in theirs.items():
        if name in ("constant", "read_value", "parameter", "result", "roi_pooling"):
            continue
        wanted = [(p.name, shown(p.default)) for p in inspect.signature(function).parameters.values()]
        parameters = [(p.name, shown(p.default)) for p in inspect.signature(getattr(ours, name)).parameters.values()]
        if wanted != parameters:
            differing[name] = wanted, parameters
    assert differing == {}


def shown(default):
    return "" if default is inspect.Parameter.empty else repr(default)


def test_every_type_has_a_factory():
    for cls in registered():
        if cls.namespace == "opset" and cls.type not in (*BODIES, *PARAMETERS):
            name = factories.snake(irov.attributes.TYPE_NAMES.get(cls.type, cls.type))
            known = [n for n in factories.names(max(cls.since, 1)) if n.replace("_", "") == name.replace("_", "")]
            assert known, cls
            assert resolve(XML_NAMES.get(cls.type, cls.type), f"opset{max(cls.since, 1)}")
    assert opsets.LATEST == irload.ops.registry.LATEST


def test_errors_name_the_fault():
    ops = irov.opset13
    p = ops.parameter([1, 2], np.float32)
    with pytest.raises(RuntimeError, match="cannot broadcast"):
        ops.add(p, ops.parameter([1, 3], np.float32))
    with pytest.raises(RuntimeError, match="is not one of"):
        ops.pad(p, [0, 0], [1, 1], "wrong")
    with pytest.raises(TypeError, match="missing a required argument: 'axis'"):
        ops.split(p)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ops.nonsense
    with pytest.raises(TypeError, match="found object"):
        ops.add(p, object())


def test_forms_of_arguments():
    def script(ov):
        ops, earlier = opset(ov, 13), opset(ov, 11)
        counted = earlier.range(ops.constant(0, dtype=np.int32), np.int32(16), np.int32(1))
        yield counted.get_type_info().version_id, counted.output(0).shape
        regions = [ops.parameter([2, 3, 4, 5]), ops.parameter([150, 5])]
        pooled = ops.roi_pooling(*regions, [6, 6], 0.0625, "Max")
        yield sorted(pooled.get_attributes().items()), pooled.output(0).shape
        pooled.set_output_roi([2, 1])
        yield pooled.get_output_roi()
        for missing in ({"spatial_scale": 1.0}, {"output_roi": [6, 6]}):
            yield failure(lambda argument=missing: ops.roi_pooling(*regions, **argument))
        with pytest.warns(DeprecationWarning, match="`output_size` is deprecated"):
            yield ops.roi_pooling(*regions, spatial_scale=1.0, output_size=[6, 6]).output(0).shape
        values = np.ones((1, 64), np.float32)
        yield ops.read_value(values, "v1", name="read").friendly_name
        info = ov.op.util.VariableInfo()
        info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1, 64]), ov.Type.f32, "v2"
        variable = ov.op.util.Variable(info)
        yield ops.read_value(init_value=values, ov_variable=variable).output(0).shape
        yield ops.read_value(variable).output(0).shape, failure(lambda: ops.read_value(values, "v3", 2))

    same(script)


def test_omitted_inputs_get_the_value_of_the_runtime():
    def script(ov):
        ops = opset(ov, 15)
        q, k, v = (
            ops.parameter([1, 7, 8], np.float16),
            ops.parameter([1, 9, 8], np.float16),
            ops.parameter([1, 9, 5], np.float16),
        )
        attention = ops.scaled_dot_product_attention(q, k, v, scale=ops.parameter([], np.float16))
        table, indices, offsets = ops.parameter([5, 2]), ops.parameter([4], np.int64), ops.parameter([3], np.int64)
        bags = ops.embedding_bag_offsets(table, indices, offsets, per_sample_weights=ops.parameter([4]))
        for node in (attention, bags):
            filled = node.input_value(3).get_node()
            yield filled.get_type_name(), filled.output(0).element_type.type_name, filled.input_value(0).get_node().data
            yield node.get_input_size(), node.output(0).shape
        yield failure(lambda: opset(ov, 8).constant(None))
        declared = ov.utils.node_factory.NodeFactory().create("Parameter", [], {})
        yield declared.get_element_type().type_name, str(declared.get_partial_shape())

    same(script)
    normalized = irov.opset13.normalize_l2(np.ones([1, 3], np.float32), [1], 1e-3, "max")
    assert normalized.get_attributes()["eps_mode"] == "max"  # OpenVINO's function ignores it
