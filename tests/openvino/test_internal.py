"""Modules of OpenVINO for libraries and tests: bounds, validation of attributes, enumerations, warnings."""

from __future__ import annotations

import importlib
import warnings
from copy import copy
from pathlib import Path

import numpy as np
import pytest

import irload.openvino
from tests.openvino.both import failure, opset, same


def module(ov, name):
    return importlib.import_module(f"{ov.__name__}.{name}")


def test_bounds_of_values():
    def script(ov):
        ops, experimental = opset(ov), module(ov, "experimental")
        bounds = [(-6, -6), (-4, 0), (-4, 4), (0, 0), (0, 2), (1, 42)]
        sizes = ops.shape_of(ops.parameter(ov.PartialShape([ov.Dimension(0, b - a) for a, b in bounds]), ov.Type.f32))
        shifted = ops.add(sizes, ops.constant(np.array([a for a, _ in bounds])))
        yield [tensor.data for tensor in experimental.evaluate_both_bounds(shifted.output(0))]
        shape = ov.PartialShape([])
        yield experimental.evaluate_as_partial_shape(sizes.output(0), shape), shape
        tensor = ops.add(np.array([[1, 2, 3]]), np.array([3, 2, 1])).get_input_tensor(0)
        experimental.set_element_type(tensor, ov.Type.f64)
        yield tensor.get_element_type(), tensor.get_partial_shape()
        experimental.set_tensor_type(tensor, ov.Type.i64, ov.PartialShape([-1, 6]))
        yield tensor.get_element_type(), tensor.get_partial_shape()

    same(script)


def test_bounds_and_symbols_that_scripts_set():
    def script(ov):
        ops = opset(ov)
        parameter = ops.parameter([2], ov.Type.i64)
        tensor = parameter.output(0).get_tensor()
        low, high = ov.Tensor(np.array([1, 2])), ov.Tensor(np.array([3, 4]))
        yield tensor.get_value_symbol()
        tensor.set_lower_value(low)
        tensor.set_upper_value(high)
        yield tensor.get_lower_value().data, parameter.output(0).get_tensor().get_upper_value().data
        yield np.shares_memory(tensor.get_lower_value().data, low.data)
        yield failure(lambda: tensor.set_lower_value(ov.Tensor(np.array([1, 2, 3]))))
        yield failure(lambda: tensor.set_lower_value(ov.Tensor(np.array([1.0, 2.0]))))
        symbols = [ov.Symbol(), ov.Symbol()]
        tensor.set_value_symbol(symbols)
        yield tensor.get_value_symbol() == symbols, failure(lambda: tensor.set_value_symbol(symbols[:1]))
        ov.Model([ops.relu(parameter)], [parameter], "m").validate_nodes_and_infer_types()
        yield tensor.get_value_symbol()

    same(script)


def test_ports_take_attributes():
    def script(ov):
        relu = opset(ov).relu(opset(ov).parameter([2], np.float32))
        compiled = ov.compile_model(ov.Model([relu], [relu.input_value(0).get_node()], "m"))
        for port in (relu.output(0), relu.input(0), compiled.output(0)):
            port.note = "kept"
            yield port.note
        copied = copy(relu.output(0))
        yield copied == relu.output(0), failure(lambda: copied.note)

    same(script)


def test_postponed_constants(tmp_path):
    def script(ov):
        values = []

        def maker():
            values.append(ov.Tensor(np.array([1, 2], np.float32)))
            return values[-1]

        create = module(ov, "utils.postponed_constant").make_postponed_constant
        constant = create(ov.Type.f32, ov.Shape([1, 2]), maker, "large")
        parameter = opset(ov).parameter([3, 1], np.float32)
        model = ov.Model([opset(ov).add(parameter, constant)], [parameter], "m")
        yield constant.friendly_name, constant.output(0), "postponed_constant" in constant.get_rt_info(), len(values)
        path = tmp_path / f"{ov.__name__}.xml"
        ov.serialize(model, path)
        yield len(values), path.with_suffix(".bin").stat().st_size
        yield [n.get_type_name() for n in model.get_ordered_ops()]
        read = ov.Core().read_model(path)
        yield [n.get_type_name() for n in read.get_ordered_ops()], next(iter(read.get_ops())).get_type_name()
        x = np.array([[0], [10], [20]], np.float32)
        yield ov.compile_model(read)(x)[0], ov.compile_model(model)(x)[0]

    same(script)


def test_values_of_properties():
    def script(ov):
        device, streams = ov.properties.device, ov.properties.streams
        yield streams.Num().to_integer(), streams.Num(3).to_integer()
        for devices in (("CPU",), ("CPU,GPU",), ("CPU", "GPU")):
            name, value = device.priorities(*devices)
            yield name, value.value
        yield device.priorities(), failure(lambda: device.priorities("CPU", 6))

    same(script)


def test_validation_of_attributes():
    def script(ov):
        checks = module(ov, "utils.input_validation")
        even = lambda value: value % 2 == 0  # noqa: E731
        for kind in (np.int8, np.uint16, np.float64):
            yield [bool(checks.is_positive_value(kind(n))) for n in (16, 0)]
            yield [bool(checks.is_non_negative_value(kind(n))) for n in (16, 0)]
            for wanted in (np.integer, np.unsignedinteger, np.floating):
                for value in map(kind, (64, 61)):
                    yield failure(lambda v=value, w=wanted: checks._check_value("Op", "attr", v, w, even))
        attributes = {"mode": "bilinear", "sizes": [1, 2, 3]}
        for name, wanted, required in (
            ("width", np.unsignedinteger, False),
            ("width", np.unsignedinteger, True),
            ("mode", np.str_, True),
            ("sizes", np.integer, True),
            ("sizes", np.floating, True),
        ):
            row = name, required, wanted, None
            yield failure(lambda r=row: checks.check_valid_attribute("Op", attributes, r[0], r[2], required=r[1]))
            yield failure(lambda r=row: checks.check_valid_attributes("Op", attributes, [r]))

    same(script)


def test_entries_of_enumerations():
    def script(ov):
        properties = module(ov, "properties")
        for kind in (properties.CacheMode, properties.hint.Priority, properties.log.Level, ov.preprocess.PaddingMode):
            yield [(name, str(entry[0]), int(entry[0])) for name, entry in getattr(kind, "__entries").items()]
        npu, gpu = module(ov, "properties.intel_npu"), module(ov, "properties.intel_gpu")
        yield npu.turbo(), npu.turbo == "NPU_TURBO", npu.tiles(128)[0], npu.driver_version()
        yield npu.compilation_mode_params("x")[0], failure(lambda: npu.driver_version(1))
        yield gpu.MemoryType.surface, gpu.CapabilityGPU.HW_MATMUL

    same(script)


def test_warnings_of_deprecation():
    def script(ov):
        util = ov._pyopenvino.util if ov.__name__ == "openvino" else ov.utils
        for named in ({}, {"version": "2025.4"}, {"message": "Use g"}, {"version": "2025.4", "message": "Use g"}):
            with pytest.warns(DeprecationWarning, match="f is deprecated") as caught:
                util.deprecation_warning("f", **named)
            yield str(caught[0].message)

    same(script)


def test_factories_by_type():
    def script(ov):
        ops, factory = opset(ov, 8), module(ov, "utils.node_factory").NodeFactory("opset1")
        data, count = ops.parameter([2, 10], np.int32, name="A"), ops.constant(3, dtype=np.int32)
        arguments = factory._arguments_as_outputs([data, count])
        node = factory.create("TopK", arguments, {"axis": 1, "mode": "max", "sort": "value"})
        yield [node.get_attributes()[name] for name in ("axis", "mode", "sort")], node.output(0).shape
        yield failure(lambda: factory.create("TopK", None, {"axis": 1, "mode": "max", "sort": "value"}))
        empty = factory.create("TopK")
        yield empty.get_type_name()
        empty.set_arguments(arguments)
        for name, value in (("axis", 1), ("mode", "max"), ("sort", "value")):
            empty.set_attribute(name, value)
        empty.constructor_validate_and_infer_types()
        yield empty.get_output_size(), empty.get_output_shape(0)

    same(script)


def test_submodules_are_attributes():
    def script(ov):
        types = ov.utils.types
        yield types.get_element_type(np.float32), types.get_dtype(ov.Type.u8), ov.op.util.VariableInfo.__name__
        yield ov.utils.node_factory.NodeFactory.__name__, ov.utils.data_helpers.OVDict.__name__

    same(script)


def test_package_utils():
    def script(ov):
        utils = module(ov, "package_utils")

        class Old:
            @utils.deprecatedclassproperty(name="Old.value", version="2030.1", message="Use new")
            def value(self):
                return self.__name__

            @utils.classproperty
            def kind(self):
                return self.__name__

        @ov.utils.deprecated(version="2030.1", message="Use another function")
        def function(x, *, y=2):
            return x + y

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield function(1, y=5), Old.value, Old().kind, function.__name__
        yield [(w.category.__name__, str(w.message)) for w in seen]
        yield [Path(w.filename).name for w in seen][:1]

    same(script)
    assert irload.openvino.utils.get_cmake_path() == ""
