"""Passes: patterns and rewriting, folding, state, as with OpenVINO."""

from __future__ import annotations

import importlib

import numpy as np
import openvino.passes
import pytest

import irload.openvino as irov
from tests.openvino.both import failure, opset, same
from tests.openvino.test_bodies import iterating

assert openvino.passes.Manager  # a module that `import openvino` does not import


def chain(ov):
    ops = opset(ov)
    p = ops.parameter([1, 3, 4], np.float32, name="p")
    scaled = ops.multiply(p, ops.constant(np.array(2, np.float32)), name="scaled")
    relu = ops.relu(scaled, name="relu")
    return ov.Model([ops.result(ops.abs(relu, name="abs"))], [p], "chain")


def kinds(model):
    return sorted(op.get_type_name() for op in model.get_ordered_ops())


def test_matchers():
    def script(ov):
        passes, model = ov.passes, chain(ov)
        relu = next(op for op in model.get_ops() if op.get_type_name() == "Relu")
        product = passes.WrapType("opset13.Multiply")
        for pattern in (
            passes.WrapType("opset13.Relu"),
            passes.WrapType("opset8::Relu"),
            passes.WrapType(["opset13.Sqrt", "opset13.Relu"], product),
            passes.WrapType("opset13.Relu", passes.WrapType("opset13.Add")),
            passes.AnyInput(),
            passes.AnyInput(lambda output: output.partial_shape.rank == 5),
            passes.Or([passes.WrapType("opset13.Sqrt"), passes.WrapType("opset13.Relu")]),
            passes.WrapType("opset13.Relu", passes.rank_equals(ov.Dimension(3))),
            passes.WrapType("opset13.Relu", passes.shape_matches("[1,C,4]")),
            passes.WrapType("opset13.Relu", passes.type_matches(ov.Type.f16)),
            passes.WrapType("opset13.Relu", passes.consumers_count(1)),
            passes.WrapType("opset13.Relu", passes.has_static_shape()),
            passes.Optional(["opset13.Abs"], passes.WrapType("opset13.Relu")),
        ):
            matcher = passes.Matcher(pattern, "m")
            yield matcher.match(relu.output(0)), matcher.get_name()
        matcher = passes.Matcher(passes.WrapType("opset13.Relu", product), "m")
        yield matcher.match(relu), matcher.get_match_root(), matcher.get_match_value()
        yield matcher.get_pattern_value_map()[product].get_node(), len(matcher.get_match_nodes())

    same(script)


def test_optional_nodes_and_names_of_dims():
    def script(ov):
        ops, passes = opset(ov), ov.passes
        p = ops.parameter([2, -1, 4, 5])
        relu = ops.relu(p)
        for node in (ops.abs(relu), ops.abs(p)):
            optional = passes.Optional(["opset13.Relu"], passes.AnyInput())
            matcher = passes.Matcher(passes.WrapType("opset13.Abs", optional), "m")
            yield matcher.match(node), optional in matcher.get_pattern_value_map(), len(matcher.get_match_nodes())
            yield passes.Matcher(passes.WrapType("opset13.Abs", passes.Optional(["opset13.Relu"])), "m").match(node)
            yield passes.Matcher(passes.Optional(["opset13.Relu"]), "m").match(node)
        named = ov.PartialShape([-1, 3, 3, 7])
        first = named[0]
        first.set_symbol(ov.Symbol())
        named[0] = first
        for shape, pattern in (
            ([2, -1, 4, 5], "[A,B,C,D]"),
            ([2, -1, 4, 5], "[A,?,C...]"),
            ([2, 3, 4, 5], "[A...,5]"),
            ([5], "[A...,5]"),
            (named, "[Batch,S,S,L]"),
            (named, "[Batch...,L]"),
            (ov.PartialShape.dynamic(), "[...]"),
        ):
            matcher = passes.Matcher(passes.AnyInput(passes.shape_matches(pattern)), "m")
            matched = matcher.match(ops.parameter(shape)), [*matcher.get_symbols()]
            values = [matcher.get_symbols()[key] for key in sorted(matched[1])]
            known = [v == first.get_symbol() if isinstance(v, ov.Symbol) else v for v in values]
            yield matched[0], sorted(matched[1]), [len(v) if not isinstance(v, bool | int) else v for v in known]
        yield failure(lambda: passes.shape_matches("[A...,B...]"))
        yield failure(lambda: passes.WrapType("opset99.Relu")), failure(lambda: passes.Serialize("a.xml", "a.bin", "v"))

    same(script)


def replacing(ov, old, create):
    class Replace(ov.passes.MatcherPass):
        def __init__(self):
            super().__init__()
            pattern = ov.passes.WrapType(f"opset13.{old}")

            def callback(matcher):
                root = matcher.get_match_root()
                new = self.register_new_node(create(root.input_value(0)))
                new.set_friendly_name(root.get_friendly_name())
                ov.utils.replace_node(root, new)
                return True

            self.register_matcher(ov.passes.Matcher(pattern, "Replace"), callback)

    return Replace()


def test_rewriting():
    def script(ov):
        ops, model = opset(ov), chain(ov)
        manager = ov.passes.Manager()
        manager.register_pass(replacing(ov, "Relu", lambda source: ops.exp(source)))
        manager.run_passes(model)
        yield kinds(model), [op.friendly_name for op in model.get_ops() if op.get_type_name() == "Exp"]
        rewrite = ov.passes.GraphRewrite()
        rewrite.add_matcher(replacing(ov, "Exp", lambda source: ops.sqrt(ops.abs(source))))
        rewrite.add_matcher(replacing(ov, "Sqrt", lambda source: ops.negative(source)))
        manager = ov.passes.Manager()
        manager.register_pass(rewrite)
        manager.run_passes(model)
        yield kinds(model)
        x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
        yield ov.Core().compile_model(model, "CPU")(x)[0]

    same(script)


def test_model_passes():
    def script(ov):
        class Rename(ov.passes.ModelPass):
            def run_on_model(self, model):
                for op in model.get_ops():
                    op.set_friendly_name("new_" + op.get_friendly_name())
                return True

        model, manager = chain(ov), ov.passes.Manager()
        manager.register_pass(Rename())
        manager.run_passes(model)
        yield model.get_parameters()[0].friendly_name

    same(script)


def test_constant_folding():
    def script(ov):
        ops = opset(ov)
        p = ops.parameter([2, 3], np.float32, name="p")
        added = ops.add(ops.constant(np.ones((2, 3), np.float32)), ops.constant(np.ones((2, 3), np.float32)))
        shape = ops.concat([ops.gather(ops.shape_of(p), [1], 0), ops.constant(np.array([-1]))], 0)
        model = ov.Model([ops.reshape(ops.add(p, added), shape, False)], [p], "m")
        manager = ov.passes.Manager()
        manager.register_pass(ov.passes.ConstantFolding())
        manager.run_passes(model)
        yield kinds(model), ov.Core().compile_model(model, "CPU")(np.zeros((2, 3), np.float32))[0]

    same(script)


def test_serialize(tmp_path):
    def script(ov):
        manager, path = ov.passes.Manager(), tmp_path / f"{ov.__name__}.xml"
        manager.register_pass(ov.passes.Serialize(path, path.with_suffix(".bin")))
        manager.run_passes(chain(ov))
        yield ov.Core().read_model(path).outputs[0].partial_shape

    same(script)


@pytest.mark.parametrize("by_name", [True, False])
def test_make_stateful(by_name):
    def script(ov):
        ops = opset(ov)
        x, past = ops.parameter([1, 2], np.float32, name="x"), ops.parameter([1, 2], np.float32, name="past")
        total = ops.add(x, past)
        total.output(0).get_tensor().set_names({"present"})
        model = ov.Model([ops.result(total, name="now"), ops.result(ops.relu(total))], [x, past], "m")
        pairs = {"past": "present"} if by_name else [(past, model.get_results()[0])]
        manager = ov.passes.Manager()
        manager.register_pass(ov.passes.MakeStateful(pairs))
        manager.run_passes(model)
        yield len(model.inputs), len(model.outputs), len(model.get_sinks()), len(model.get_variables())
        request = ov.Core().compile_model(model, "CPU").create_infer_request()
        for _ in range(3):
            yield request.infer([np.array([[1, 2]], np.float32)])[0]

    same(script)


def test_low_latency():
    model = iterating(irov)[0]
    manager = irov.passes.Manager()
    manager.register_pass(irov.passes.LowLatency2())
    manager.run_passes(model)
    request = irov.compile_model(model).create_infer_request()
    x = np.ones((3, 2), np.float32)
    last = [request.infer(x)[1].tolist() for _ in range(3)]
    assert last == [[[3, 3]], [[6, 6]], [[9, 9]]]
    request.reset_state()
    assert request.infer(x)[1].tolist() == [[3, 3]]


def test_half_precision():
    model = chain(irov)
    manager = irov.passes.Manager()
    manager.register_pass(irov.passes.ConvertFP32ToFP16())
    assert manager.run_passes(model)
    assert model.outputs[0].element_type == model.inputs[0].element_type == irov.Type.f16
    with pytest.raises(NotImplementedError, match="irrun report"):
        irov.passes.VisualizeTree("x.svg")


def test_transformations_by_their_internal_names():
    def script(ov):
        internal = importlib.import_module(f"{ov.__name__}._offline_transformations")
        model = chain(ov)
        internal.apply_moc_transformations(model, cf=False)
        internal.compress_model_transformation(model)
        yield [str(op.get_element_type()) for op in model.get_ordered_ops() if op.get_type_name() == "Constant"]
        yield kinds(model), ov.compile_model(model, "CPU")(np.full((1, 3, 4), -2.5, np.float32))[0]
        model.inputs[0].get_tensor().set_names({"in"})
        model.outputs[0].get_tensor().set_names({"out"})
        internal.apply_make_stateful_transformation(model, {"in": "out"})
        yield len(model.inputs), len(model.outputs), len(model.sinks)

    same(script)


def test_cleaning_by_internal_names():
    def script(ov):
        internal = importlib.import_module(f"{ov.__name__}._offline_transformations")
        ops = opset(ov)
        weights = ops.constant(np.array([1.5, -2e-45, 1e-39, 0, -1e-37], np.float32))
        total = ops.add(ops.parameter([5]), weights)
        model = ov.Model([total], [total.input_value(0).get_node()], "sum")
        total.get_rt_info()["fused_names_0"], total.get_rt_info()["kept"] = "a,b", "c"
        internal.apply_moc_transformations(model, False)
        internal.apply_fused_names_cleanup(model)
        yield [key in total.get_rt_info() for key in ("fused_names_0", "kept")], weights_of(total).data * 1e37

    same(script)


def weights_of(node):
    return node.input_value(1).get_node()
