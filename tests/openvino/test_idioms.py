"""The idioms of OpenVINO's samples and notebooks, in scripts that differ in the module only."""

from __future__ import annotations

import statistics
from datetime import datetime, timedelta
from time import perf_counter

import numpy as np

import irload.openvino as irov
from tests.openvino.both import DIGITS, IMAGE, MODELS, failure, ours, same
from tests.openvino.detector import save_detector

IMAGES = [MODELS / "digits" / f"digit_{k}_0.npy" for k in range(10)]


def digits():
    """The digits in the images, by synchronous inference."""
    compiled = irov.compile_model(DIGITS)
    return [int(compiled(np.load(path))[0].argmax()) for path in IMAGES]


def test_hello_world():
    def script(ov):
        core = ov.Core()
        compiled = core.compile_model(model=str(DIGITS), device_name="CPU")
        output = compiled.output(0)
        result = compiled([np.load(IMAGE)])[output]
        yield int(np.argmax(result)), result.shape, core.available_devices
        yield [core.get_property(device, "FULL_DEVICE_NAME") != "" for device in core.available_devices]

    same(script)


def test_synchronous_benchmark():
    def script(ov):
        core = ov.Core()
        model = core.read_model(DIGITS)
        model.reshape([1, 1, 8, 8])
        compiled = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
        request = compiled.create_infer_request()
        for port in compiled.inputs:
            fill(request.get_tensor(port))
        request.infer()
        latencies = []
        start, limit = perf_counter(), 20
        while len(latencies) < limit and perf_counter() - start < 10:
            before = perf_counter()
            request.infer()
            latencies.append(perf_counter() - before)
        yield len(latencies), statistics.median(latencies) > 0, request.get_output_tensor().data.shape
        yield compiled.get_property("EXECUTION_DEVICES")

    same(script)


def fill(tensor):
    generator = np.random.default_rng(5)
    tensor.data[:] = generator.integers(0, 2, tuple(tensor.shape)).astype(tensor.element_type.to_dtype())


def test_throughput_benchmark():
    def script(ov):
        core = ov.Core()
        model = core.read_model(DIGITS)
        model.reshape({port: [2, 1, 8, 8] for port in model.inputs})
        compiled = core.compile_model(model, "CPU", {ov.properties.hint.performance_mode(): "THROUGHPUT"})
        queue = ov.AsyncInferQueue(compiled)
        for request in queue:
            for port in compiled.inputs:
                fill(request.get_tensor(port))
        for _ in range(len(queue)):
            queue.start_async()
        queue.wait_all()
        latencies, done = [], 0
        start = datetime.now()
        while done < 30 and datetime.now() - start < timedelta(seconds=10):
            number = queue.get_idle_request_id()
            if done >= len(queue):
                latencies.append(queue[number].latency)
            queue.start_async()
            done += 1
        queue.wait_all()
        yield done, min(latencies) > 0, compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") >= 1

    assert ours(script) == [[30, True, True]]


def test_classification_async():
    def script(ov):
        core = ov.Core()
        model = core.read_model(DIGITS)
        if len(model.inputs) != 1 or len(model.outputs) != 1:
            raise AssertionError("the sample is for models of one input and one output")
        compiled = core.compile_model(model, "CPU", {"NUM_STREAMS": 2})
        results = {}

        def completion(request, path):
            scores = next(iter(request.results.values()))
            results[IMAGES.index(path)] = np.argsort(scores[0])[::-1][:3].tolist()

        queue = ov.AsyncInferQueue(compiled, len(IMAGES))
        queue.set_callback(completion)
        for path in IMAGES:
            queue.start_async({0: np.load(path)}, path)
        queue.wait_all()
        yield [sorted(results.items())]

    (result,) = ours(script)[0]
    assert [number for number, _ in result] == [*range(len(IMAGES))]
    assert [best[0] for _, best in result] == digits()


def test_async_api():
    def script(ov):
        core = ov.Core()
        compiled = core.compile_model(core.read_model(DIGITS), "CPU")
        current, following = compiled.create_infer_request(), compiled.create_infer_request()
        frames, digits = iter(np.load(path) for path in IMAGES), []
        current.set_tensor(compiled.input(0), ov.Tensor(next(frames)))
        current.start_async()
        for frame in frames:
            following.set_tensor(compiled.input(0), ov.Tensor(frame))
            following.start_async()
            if current.wait_for(60_000):
                digits.append(int(current.get_output_tensor(0).data[0].argmax()))
            current, following = following, current
        current.wait()
        yield digits, int(current.get_output_tensor(0).data[0].argmax())

    assert ours(script) == [[digits()[:-1], digits()[-1]]]


def test_model_reshape():
    def script(ov):
        core = ov.Core()
        model = core.read_model(MODELS / "dynamic" / "model.xml")
        yield [(port.any_name, port.partial_shape, port.element_type) for port in model.inputs]
        yield model.is_dynamic()
        dims = [d if d.is_static else ov.Dimension(1, 16) for d in model.inputs[0].partial_shape]
        model.reshape({model.inputs[0]: ov.PartialShape(dims)})
        yield model.inputs, model.outputs
        static = ov.PartialShape([d.get_max_length() for d in dims])
        model.reshape({0: static})
        yield model.inputs, model.outputs, core.compile_model(model, "CPU").outputs[0].shape

    same(script)


def test_hello_reshape_detector(tmp_path):
    save_detector(tmp_path / "detector.xml")
    image = np.random.default_rng(3).integers(0, 256, (48, 72, 3)).astype(np.uint8)

    def script(ov):
        core = ov.Core()
        model = core.read_model(tmp_path / "detector.xml")
        if len(model.inputs) != 1 or len(model.outputs) != 1:
            raise AssertionError("the sample is for models of one input and one output")
        tensor = np.expand_dims(image, 0)
        n, h, w, c = tensor.shape
        model.reshape({model.input().get_any_name(): ov.PartialShape((n, c, h, w))})
        yield model.input().shape, model.is_dynamic()
        ppp = ov.preprocess.PrePostProcessor(model)
        ppp.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        ppp.input().model().set_layout(ov.Layout("NCHW"))
        ppp.output().tensor().set_element_type(ov.Type.f32)
        compiled = core.compile_model(ppp.build(), "CPU")
        results = compiled.infer_new_request({0: tensor})
        predictions = next(iter(results.values()))
        detections = [d for d in predictions.reshape(-1, 7) if d[2] > 0.4]
        assert len(detections) > 3
        yield predictions.shape
        yield [(int(d[1]), np.round(d[3:] * (w, h, w, h)).astype(int).tolist()) for d in detections]

    same(script)


def test_properties_of_a_session():
    def script(ov):
        from_hint = {ov.properties.hint.performance_mode: ov.properties.hint.PerformanceMode.LATENCY}
        core = ov.Core()
        compiled = core.compile_model(DIGITS, "CPU", from_hint | {ov.properties.inference_num_threads: 1})
        yield compiled.get_property(ov.properties.inference_num_threads), compiled.get_property("NUM_STREAMS")
        yield compiled.get_property(ov.properties.hint.execution_mode()), compiled.get_property("NETWORK_NAME")
        yield [
            compiled.get_property(name) for name in ("PERF_COUNT", "PERFORMANCE_HINT", "PERFORMANCE_HINT_NUM_REQUESTS")
        ]
        profiled = core.compile_model(DIGITS, "CPU", {"PERF_COUNT": True, "PERFORMANCE_HINT": "THROUGHPUT"})
        yield profiled.get_property("PERF_COUNT"), profiled.get_property("PERFORMANCE_HINT")
        yield failure(lambda: compiled([["a"]]))
        core.set_property("CPU", {"LOG_LEVEL": "LOG_NONE"})
        yield str(core.get_property("CPU", "LOG_LEVEL"))
        core.set_property("CPU", {ov.properties.enable_profiling(): True})
        core.set_property("CPU", ov.properties.inference_num_threads(2))
        yield core.get_property("CPU", "INFERENCE_NUM_THREADS"), core.get_property("CPU", "PERF_COUNT")
        yield core.get_property("CPU", ov.properties.optimal_number_of_infer_requests)
        request = core.compile_model(DIGITS, "CPU").create_infer_request()
        request.infer(np.load(IMAGE))
        steps = request.profiling_info
        yield any(s.status == ov.ProfilingInfo.Status.EXECUTED for s in steps), all(s.node_name for s in steps)
        yield str(ov.properties.hint.inference_precision(ov.Type.f32)[0]), ov.properties.streams.num()

    same(script)
