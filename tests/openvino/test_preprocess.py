"""PrePostProcessor: the models that it builds compute the same as OpenVINO's."""

from __future__ import annotations

import re

import numpy as np
import openvino
import pytest

import irload.openvino as irov
from tests.harness.tiers import tiered
from tests.openvino.both import failure, opset, plain, same

COLORS = {
    "RGB": ("RGB", "BGR", "GRAY"),
    "BGR": ("RGB", "BGR", "GRAY"),
    "RGBX": ("RGB", "BGR"),
    "BGRX": ("RGB", "BGR"),
    "NV12_SINGLE_PLANE": ("RGB", "BGR", "GRAY"),
    "NV12_TWO_PLANES": ("RGB", "BGR", "GRAY"),
    "I420_SINGLE_PLANE": ("RGB", "BGR"),
    "I420_THREE_PLANES": ("RGB", "BGR", "GRAY"),
}
RESIZES = ("LINEAR", "CUBIC", "NEAREST", "BILINEAR_PILLOW", "BICUBIC_PILLOW")


def network(ov, channels, element="f32"):
    ops = opset(ov)
    p = ops.parameter([1, channels, 8, 8], getattr(ov.Type, element), name="p")
    p.output(0).get_tensor().set_names({"image"})
    total = ops.multiply(p, ops.convert(ops.constant(np.array(2, np.int32)), element), name="double")
    total.output(0).get_tensor().set_names({"scores"})
    return ov.Model([total], [p], "network")


def specification(rng):
    """A random list of calls: (part, method, arguments), with the channels of the model."""
    calls = []
    colour = rng.choice([None, None, *COLORS])
    target = None if colour is None else str(rng.choice(COLORS[colour]))
    channels = 1 if target == "GRAY" else 3
    planes = colour is not None and colour[0] in "NI"
    element = "u8" if planes else str(rng.choice(["u8", "f32", "f32", "u8", "f16" if colour is None else "f32"]))
    four = colour is not None and colour[-1] == "X"  # OpenVINO takes the last axis as channels
    layout = (
        "NHWC" if planes or four else str(rng.choice(["NHWC", "NCHW"] if colour else ["NHWC", "NCHW", "HWC", "NCWH"]))
    )
    calls.append(("tensor", "set_element_type", ("Type", element)))
    calls += [] if planes else [("tensor", "set_layout", layout)]
    calls.append(("model", "set_layout", "NCHW"))
    if colour is not None:
        calls.append(("tensor", "set_color_format", ("ColorFormat", str(colour))))
        calls.append(("steps", "convert_color", ("ColorFormat", target)))
    if rng.random() < 0.4 and layout in ("NHWC", "NCHW"):  # the plugin's results are wrong for other layouts
        height, width = (int(n) * 2 for n in rng.integers(3, 8, 2))
        calls.insert(3, ("tensor", "set_spatial_static_shape", height, width))
        resize = ("steps", "resize", ("ResizeAlgorithm", f"RESIZE_{rng.choice(RESIZES)}"))
        calls += [("steps", "convert_element_type", ("Type", "f32")), resize]
    elif rng.random() < 0.5:
        calls.append(("steps", "convert_element_type", ("Type", "f32")))
    floats = element != "u8" or any(c[1] == "convert_element_type" for c in calls)
    if floats and rng.random() < 0.7:
        values = [float(v) for v in np.round(rng.uniform(1, 5, channels), 2)]
        for name in rng.permutation(["mean", "scale"]):
            calls.append(("steps", str(name), values if rng.random() < 0.5 else values[0]))
    if rng.random() < 0.3:
        calls.append(("steps", "convert_layout", "NCHW"))
    if channels == 3 and rng.random() < 0.2:
        calls.append(("steps", "reverse_channels"))
    if rng.random() < 0.3:
        calls.append(("output_tensor", "set_element_type", ("Type", str(rng.choice(["f16", "i32", "f32"])))))
    if rng.random() < 0.3:
        calls += [("output_model", "set_layout", "NCHW"), ("output_tensor", "set_layout", "NHWC")]
    return calls, channels


def built(ov, calls, channels):
    """The model of a specification, built by one of the modules."""
    processor = ov.preprocess.PrePostProcessor(network(ov, channels))
    inputs, outputs = processor.input(), processor.output("scores")
    parts = {"tensor": inputs.tensor(), "model": inputs.model(), "steps": inputs.preprocess()}
    parts |= {"output_tensor": outputs.tensor(), "output_model": outputs.model()}
    for part, method, *arguments in calls:
        getattr(parts[part], method)(*(argument(ov, method, a) for a in arguments))
    return processor.build()


def argument(ov, method, value):
    if isinstance(value, tuple):
        home = ov if value[0] == "Type" else ov.preprocess
        return getattr(getattr(home, value[0]), value[1])
    return ov.Layout(value) if isinstance(value, str) else value


def data(model, rng):
    """Random inputs for the ports of a model."""
    arrays = []
    for port in model.inputs:
        dtype = port.element_type.to_dtype()
        values = rng.uniform(0, 255, tuple(port.shape))
        arrays.append(np.floor(values).astype(dtype) if dtype == np.uint8 else (values / 16).astype(dtype))
    return arrays


def agree(a, b, narrow=False):
    if a.dtype.kind in "iu":
        return np.abs(a.astype(np.int64) - b.astype(np.int64)).max() <= 2  # one unit, doubled by the network
    tolerance = 1e-2 if narrow or a.dtype == np.float16 else 1e-4
    return np.allclose(a.astype(np.float64), b.astype(np.float64), tolerance, tolerance)


@pytest.mark.parametrize("part", range(4))
def test_random_specifications(part, tmp_path):
    for seed in range(part * 1000, part * 1000 + tiered(5, 100)):
        rng = np.random.default_rng(seed)
        calls, channels = specification(rng)
        ours, theirs = built(irov, calls, channels), built(openvino, calls, channels)
        assert plain(ours.inputs) == plain(theirs.inputs), calls
        assert plain(ours.outputs) == plain(theirs.outputs), calls
        x = data(theirs, rng)
        expected = openvino.compile_model(theirs, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
        models = [ours]
        if seed % 5 == 0:
            openvino.serialize(theirs, tmp_path / "theirs.xml")
            irov.serialize(ours, tmp_path / "ours.xml")
            models.append(irov.Core().read_model(tmp_path / "theirs.xml"))
            result = openvino.compile_model(tmp_path / "ours.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
            assert agree(result, expected, "f16" in str(calls)), calls
        for model in models:
            result = irov.compile_model(model)(x)[0]
            assert result.dtype == expected.dtype
            assert agree(result, expected, "f16" in str(calls)), f"{seed} {calls}: {np.abs(result - expected).max()}"


def test_shapes_crops_and_padding():
    def script(ov):
        pre = ov.preprocess
        for shape, steps in (
            ([1, 3, 12, 12], lambda s: s.crop([0, 0, 2, 2], [1, 3, 10, 10])),
            ([1, 3, 12, 12], lambda s: s.crop([0, 0, 2, 2], [1, 3, -2, -2])),
            ([1, 3, 6, 6], lambda s: s.pad([0, 0, 1, 1], [0, 0, 1, 1], 2, pre.PaddingMode.CONSTANT)),
            ([1, 3, 6, 6], lambda s: s.pad([0, 0, 1, 1], [0, 0, 1, 1], 0, pre.PaddingMode.REFLECT)),
            ([1, 3, 6, 6], lambda s: s.pad([0, 0, 1, 1], [0, 0, 1, 1], 0, pre.PaddingMode.SYMMETRIC)),
            ([1, 8, 8, 3], lambda s: s.convert_layout([0, 3, 1, 2])),
        ):
            processor = pre.PrePostProcessor(network(ov, 3))
            processor.input("image").tensor().set_shape(shape)
            steps(processor.input(0).preprocess())
            model = processor.build()
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            yield model.inputs, ov.Core().compile_model(model, "CPU")(x)[0]

    same(script)


def test_errors():
    def script(ov):
        pre = ov.preprocess
        for calls in (
            [("tensor", "set_element_type", ("Type", "u8")), ("steps", "scale", 2.0)],
            [("steps", "mean", [1.0, 2.0, 3.0])],
            [("tensor", "set_layout", "NCHW"), ("steps", "mean", [1.0, 2.0])],
            [("steps", "resize", ("ResizeAlgorithm", "RESIZE_LINEAR"))],
            [("tensor", "set_layout", "NHWC"), ("model", "set_layout", "NCDW")],
            [("tensor", "set_color_format", ("ColorFormat", "NV12_TWO_PLANES"))],
            [("steps", "convert_layout", [0, 1, 1, 2])],
        ):
            yield failure(lambda calls=calls: built(ov, calls, 3).inputs)
        processor = pre.PrePostProcessor(network(ov, 3))
        yield failure(lambda: processor.input(3)), failure(lambda: processor.output("nope"))
        yield failure(lambda: processor.input().tensor().set_color_format(pre.ColorFormat.NV12_TWO_PLANES, ["y"]))

    same(script)


def test_descriptions():
    def script(ov):
        pre, f16 = ov.preprocess, ov.Type.f16
        for declare in (
            lambda i, o: None,
            lambda i, o: i.model().set_layout("NCHW"),
            lambda i, o: i.tensor().set_layout(ov.Layout("NHWC")).set_element_type(f16).set_memory_type("shared"),
            lambda i, o: i.preprocess().mean(0.5).scale([1, 2.5, 3e9]),
            lambda i, o: (i.tensor().set_layout("NCHW"), i.preprocess().mean([0.5]).scale([2])),
            lambda i, o: (i.tensor().set_layout("NCHW"), i.preprocess().resize(pre.ResizeAlgorithm.RESIZE_LINEAR)),
            lambda i, o: (
                i.preprocess().pad([0, 0, 1, 0], [0, 0, 1, 0], 0.5, pre.PaddingMode.CONSTANT).reverse_channels()
            ),
            lambda i, o: i.preprocess().crop([0, 0, 1, 0], [1, 3, -1, 8]).convert_layout([0, 1, 3, 2]),
            lambda i, o: (
                o.model().set_layout("NCHW"),
                o.tensor().set_layout("NHWC"),
                o.tensor().set_element_type(f16),
            ),
            lambda i, o: o.postprocess().convert_element_type(f16),
        ):
            processor = pre.PrePostProcessor(network(ov, 3))
            declare(processor.input(), processor.output())
            yield re.sub("Check.*\n", "", str(processor)).strip()
            yield failure(lambda prepared=processor: [(str(p), str(p.node.layout)) for p in prepared.build().inputs])
        processor = pre.PrePostProcessor(network(ov, 3))
        tensor = processor.input().tensor().set_element_type(ov.Type.u8)
        tensor.set_color_format(pre.ColorFormat.NV12_TWO_PLANES, ["y", "uv"])
        processor.input().model().set_layout("NCHW")
        processor.input().preprocess().convert_color(pre.ColorFormat.RGB)
        yield str(processor), [str(p.partial_shape) for p in processor.build().inputs]

    same(script)


def test_layouts_follow_from_steps():
    to_front, to_back = [0, 3, 1, 2], [0, 2, 3, 1]

    def script(ov):
        for tensor in (None, "NCHW", "NHWC"):
            for model in (None, "NCHW"):
                for steps in (
                    [],
                    ["NHWC"],
                    [to_front],
                    ["NCHW", to_back],
                    ["NHWC", "NCHW"],
                    ["..."],
                    ["NHWC", to_front],
                ):
                    processor = ov.preprocess.PrePostProcessor(network(ov, 3))
                    part = processor.input()
                    if tensor is not None:
                        part.tensor().set_layout(ov.Layout(tensor))
                    if model is not None:
                        part.model().set_layout(ov.Layout(model))
                    for step in steps:
                        part.preprocess().convert_layout(ov.Layout(step) if isinstance(step, str) else step)
                    text = re.sub("Error occurred.*", "", str(processor), flags=re.DOTALL).strip()
                    built = failure(lambda prepared=processor: [str(p.node.layout) for p in prepared.build().inputs])
                    yield tensor, model, steps, text, built

    same(script)


def test_the_memory_type_is_metadata_of_the_input(tmp_path):
    def script(ov):
        model = network(ov, 3)
        model.get_parameters()[0].set_layout(ov.Layout("NCHW"))
        processor = ov.preprocess.PrePostProcessor(model)
        processor.input().tensor().set_memory_type("shared")
        model = processor.build()
        yield sorted(model.input().rt_info), ov.compile_model(model, "CPU")(np.ones((1, 3, 8, 8), np.float32))[0].sum()
        ov.serialize(model, tmp_path / "model.xml")
        yield sorted(ov.Core().read_model(tmp_path / "model.xml").input().rt_info)

    same(script)


def test_custom_steps_and_names_of_planes():
    pre = irov.preprocess
    model = network(irov, 3)
    processor = pre.PrePostProcessor(model)
    processor.input().tensor().set_element_type(irov.Type.u8)
    processor.input().tensor().set_color_format(pre.ColorFormat.NV12_TWO_PLANES, ["y", "uv"])
    processor.input().model().set_layout(irov.Layout("NCHW"))
    steps = processor.input().preprocess().convert_color(pre.ColorFormat.RGB).convert_element_type(irov.Type.f32)
    steps.custom(lambda output: opset(irov).negative(output))
    processor.output().postprocess().custom(lambda output: opset(irov).abs(output))
    assert 'Input "image"' in str(processor)
    processor.build()
    assert [port.any_name for port in model.inputs] == ["image/y", "image/uv"]
    assert [p.friendly_name for p in model.get_parameters()] == ["p/y", "p/uv"]
    grey = {"image/y": np.full((1, 8, 8, 1), 128, np.uint8), "image/uv": np.full((1, 4, 4, 2), 128, np.uint8)}
    result = irov.compile_model(model)(grey)["scores"]
    assert result.shape == (1, 3, 8, 8)
    assert np.all(result == 2 * 130)


def test_the_layout_of_the_model_is_that_of_a_tensor_without_one():
    def script(ov):
        model = network(ov, 3)
        model.get_parameters()[0].layout = ov.Layout("NCHW")
        processor = ov.preprocess.PrePostProcessor(model)
        processor.input().tensor().set_from(ov.Tensor(ov.Type.i32, [1, 3, 16, 4]))
        steps = processor.input().preprocess().convert_element_type(ov.Type.f32).scale([3.0, 7.0, 0.1])
        steps.resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR).mean(1.0)
        model = processor.build()
        x = np.arange(192, dtype=np.int32).reshape(1, 3, 16, 4)
        compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        yield model.inputs, sorted(op.get_type_name() for op in model.get_ops()), compiled(x)[0]

    same(script)


def test_colours_of_images_of_unknown_shape():
    def script(ov):
        processor = ov.preprocess.PrePostProcessor(network(ov, 3))
        tensor = processor.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        tensor.set_color_format(ov.preprocess.ColorFormat.BGR).set_shape([1, -1, -1, 3])
        steps = processor.input().preprocess()
        steps.custom(lambda output: padded(ov, output))
        steps.convert_color(ov.preprocess.ColorFormat.RGB)
        processor.input().model().set_layout(ov.Layout("NCHW"))
        model = processor.build()
        image = (np.arange(8 * 8 * 3) % 200).astype(np.uint8).reshape(1, 8, 8, 3)
        yield model.inputs, ov.Core().compile_model(model, "CPU")(image)[0]

    same(script)


def padded(ov, output):
    """The output, padded by computed sizes that are all 0, so that its inferred shape is unknown."""
    ops = opset(ov)
    sizes = ops.convert(ops.shape_of(output, "i32"), "f32")
    zeros = ops.convert(ops.floor(ops.divide(sizes, ops.constant(np.float32(1e6)))), "i32")
    return ops.pad(output, np.zeros(4, np.int32), zeros, "constant", np.uint8(0)).output(0)


def test_images_of_a_hello_classification():
    def script(ov):
        core = ov.Core()
        model = network(ov, 3)
        processor = ov.preprocess.PrePostProcessor(model)
        processor.input().tensor().set_shape((1, 16, 20, 3)).set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        processor.input().preprocess().resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR)
        processor.input().model().set_layout(ov.Layout("NCHW"))
        processor.output().tensor().set_element_type(ov.Type.f32)
        model = processor.build()
        image = (np.arange(16 * 20 * 3) % 200).astype(np.uint8).reshape(1, 16, 20, 3)
        result = next(iter(core.compile_model(model, "CPU").infer_new_request({0: image}).values()))
        yield model.inputs, result.shape, np.round(result.reshape(-1)[:8] / 4)

    same(script)
