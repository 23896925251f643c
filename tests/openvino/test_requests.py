"""Compiled models and requests: the same results, states and errors as OpenVINO's."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import irload.openvino as irov
from tests.openvino.both import DIGITS, IMAGE, MODELS, failure, opset, same


def image():
    return np.load(IMAGE)


def test_forms_of_inputs():
    def script(ov):
        model = ov.Core().compile_model(str(DIGITS), "CPU")
        x = image()
        for value in (x, [x], (x,), {0: x}, {"image": x}, {model.input(0): x}, ov.Tensor(x), {0: ov.Tensor(x)}):
            yield model(value)[0]
        yield model(x.astype(np.float64))[0], model(np.asfortranarray(x))[0], model.infer_new_request({0: x})[0]
        result = model(x)
        yield result["probabilities"], result[0], result[model.output(0)], result[model.output("probabilities")]
        yield len(result), list(result), [v.shape for v in result.values()], result.names(), result.to_tuple()
        yield failure(lambda: result["nope"]), failure(lambda: result[4]), failure(lambda: result[1.5])
        yield failure(lambda: model({"nope": x})), failure(lambda: model({7: x})), failure(lambda: model({1.5: x}))
        yield failure(lambda: model(x[:, :, :4])), failure(lambda: model([x, x])), failure(lambda: model(object()))
        yield repr(model), model.inputs, model.outputs, model.input("image"), failure(lambda: model.input("nope"))
        yield failure(lambda: model.output(3)), model.output().any_name, model.input().node.friendly_name

    same(script)


def test_tensors_of_requests():
    def script(ov):
        model = ov.Core().compile_model(ov.Core().read_model(DIGITS), "CPU")
        x = image()
        request = model.create_infer_request()
        yield repr(request), request.model_inputs, request.model_outputs
        request.set_input_tensor(ov.Tensor(x))
        request.infer()
        yield request.get_output_tensor().data, request.get_tensor("probabilities").data, request.results[0]
        request.set_tensor("image", ov.Tensor(np.concatenate([x, x])))
        yield request.infer()[0].shape, request.output_tensors[0].shape, request.input_tensors[0].shape
        out = ov.Tensor(np.zeros((1, 10), np.float32), shared_memory=True)
        request.set_output_tensor(0, out)
        request.infer({0: x})
        yield out.data, request.get_tensor(model.output(0)).data
        yield failure(lambda: request.get_tensor("nope")), failure(lambda: request.get_input_tensor(4))
        yield failure(lambda: request.set_input_tensor(ov.Tensor(np.zeros((1, 1, 8, 8), np.int32))))
        request.set_tensors({"image": ov.Tensor(x)})
        request.set_input_tensors({0: ov.Tensor(x)})
        yield request.infer()[0], request.latency > 0, request.userdata, request.query_state()
        yield request.get_compiled_model().outputs

    same(script)


def test_tensors_of_outputs_have_their_shape():
    def script(ov):
        for shape in ([2, 2], [-1, 2]):
            p = opset(ov).parameter(shape, np.float32)
            request = ov.compile_model(ov.Model(opset(ov).relu(p), [p], "m")).create_infer_request()
            for sizes in ([2, 2], [3, 2], [4], [0], [1, 2, 2]):
                tensor = ov.Tensor(ov.Type.f32, sizes)
                yield failure(lambda r=request, t=tensor: r.set_output_tensor(t))
                yield failure(lambda r=request, t=tensor: r.set_tensor(r.model_outputs[0], t))
                yield request.infer(-np.ones((2, 2), np.float32))[0]
            yield failure(lambda r=request: r.set_callback(3))

    same(script)


def test_memory_modes():
    def script(ov):
        ops = opset(ov)
        p = ops.parameter([2, 2], np.float32, name="p")
        model = ov.Core().compile_model(ov.Model([ops.relu(p)], [p]), "CPU")
        request = model.create_infer_request()
        x = np.array([[1, -2], [3, -4]], np.float32)
        result = request.infer(x, share_outputs=False)
        yield np.shares_memory(result[0], request.output_tensors[0].data), result[0]
        result = request.infer(x, share_outputs=True)
        yield np.shares_memory(result[0], request.output_tensors[0].data), result[0]
        request.infer(x, share_inputs=True)
        yield np.shares_memory(x, request.input_tensors[0].data)
        request = model.create_infer_request()
        request.infer(x)
        yield np.shares_memory(x, request.input_tensors[0].data)
        tensor = request.get_output_tensor()
        request.infer(x + 1)
        yield tensor.data

    same(script)


def test_asynchronous_requests():
    model = irov.Core().compile_model(DIGITS, "CPU")
    request, seen, x = model.create_infer_request(), [], image()
    request.set_callback(lambda data: seen.append((data, request.get_output_tensor().data.argmax())), "first")
    request.start_async({0: x})
    request.wait()
    assert seen == [("first", 7)]
    assert request.wait_for(1000)
    assert np.array_equal(request.results[0], model(x)[0])
    request.start_async(x, "second")
    request.wait()
    assert seen == [("first", 7), ("second", 7)]
    assert request.userdata == "second"
    with pytest.raises(RuntimeError, match="nope was not found"):
        request.start_async({"nope": x})
    assert request.infer(x)[0].argmax() == 7


def test_exceptions_of_callbacks_surface_at_wait():
    request = irov.compile_model(DIGITS).create_infer_request()
    request.set_callback(lambda data: 1 / 0)
    request.start_async(image())
    with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
        request.wait()
    request.wait()  # raises only once


def test_a_busy_request_refuses_other_calls():
    request = irov.compile_model(DIGITS).create_infer_request()
    go, entered = threading.Event(), threading.Event()
    plain_run = request._run

    def slow():
        entered.set()
        go.wait()
        plain_run()

    request._run = slow
    request.start_async(image())
    entered.wait()
    with pytest.raises(RuntimeError, match="busy"):
        request.infer(image())
    with pytest.raises(RuntimeError, match="busy"):
        _ = request.results
    assert not request.wait_for(1)
    go.set()
    request.wait()
    assert request.results[0].argmax() == 7


def test_state():
    def script(ov):
        model = ov.Core().compile_model(MODELS / "state" / "model.xml", "CPU")
        request, x = model.create_infer_request(), np.array([[1, 2, 3]], np.float32)
        yield request.infer(x)[0], request.infer(x)[0]
        state = request.query_state()[0]
        yield state.name, state.state.data, len(request.query_state())
        state.state = ov.Tensor(np.array([[5, 5, 5]], np.float32))
        yield request.infer(x)[0], failure(lambda: setattr(state, "state", x))
        state.reset()
        yield request.infer(x)[0]
        request.reset_state()
        yield request.infer(x)[0], model(x)[0], model(x)[0], model.query_state()[0].name
        model.reset_state()
        yield model(x)[0]

    same(script)


def test_strings():
    def script(ov):
        ops = opset(ov, 15)
        p = ops.parameter([-1], ov.Type.string, name="p")
        begins, ends, symbols = ops.string_tensor_unpack(p).outputs()
        model = ov.Core().compile_model(ov.Model([ops.string_tensor_pack(begins, ends, symbols)], [p]), "CPU")
        yield model(np.array(["ab", "c"]))[0].tolist(), model(["x", "yz"])[0].tolist()
        yield model(np.array(["ab", "c"]), decode_strings=False)[0].tolist(), model({0: [b"q", b"rst"]})[0].tolist()

    same(script)


def test_scalars_and_narrow_types():
    def script(ov):
        ops = opset(ov)
        a, b = ops.parameter([], np.float32, name="a"), ops.parameter([2], ov.Type.bf16, name="b")
        model = ov.Core().compile_model(ov.Model([ops.relu(a), ops.convert(b, "f32")], [a, b]), "CPU")
        half = ov.Tensor(ov.Type.bf16, [2])
        half.data.view(np.uint16)[:] = [0x3F80, 0xC000]
        for value in (3.0, 3, np.float32(3), np.array(3.0)):
            yield model({0: value, 1: half}).to_tuple()

    same(script)


def test_packed_outputs_are_bytes():
    p = opset(irov).parameter([3], irov.Type.u4, name="p")
    model = irov.compile_model(irov.Model([opset(irov).result(p)], [p], "packed"))
    packed = irov.Tensor(np.array([0x21, 0x03], np.uint8), [3], irov.Type.u4)
    for shared in (True, False):
        assert model({0: packed}, share_outputs=shared)[0].tolist() == [0x21, 0x03]


def test_queue():
    model = irov.Core().compile_model(DIGITS, "CPU")
    queue, seen, x = irov.AsyncInferQueue(model, 3), [], image()
    queue.set_callback(lambda request, data: seen.append((data, int(request.results[0].argmax()))))
    for k in range(10):
        queue.start_async({0: x}, k)
    queue.wait_all()
    assert sorted(seen) == [(k, 7) for k in range(10)]
    assert len(queue) == len(queue.userdata) == len([*queue]) == 3
    assert queue.is_ready()
    assert 0 <= queue.get_idle_request_id() < 3
    assert queue[0].get_output_tensor().data.argmax() == 7


def test_a_queue_raises_errors_of_callbacks_and_inferences():
    model = irov.compile_model(DIGITS)
    queue = irov.AsyncInferQueue(model, 2)
    queue.set_callback(lambda request, data: [][data])
    queue.start_async({0: image()}, 5)
    with pytest.raises(IndexError):
        queue.wait_all()
    queue.set_callback(lambda request, data: None)
    queue.start_async({0: image()}, 5)
    queue.wait_all()
    with pytest.raises(RuntimeError, match="incompatible"):
        queue.start_async({0: image()[:, :, 1:]})
    queue.wait_all()
    assert sorted(queue._idle.get_nowait() for _ in range(2)) == [0, 1]


def test_a_thousand_inferences_call_back_once_each():
    model = irov.compile_model(DIGITS, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT"})
    queue, seen, x = irov.AsyncInferQueue(model, 4), [], image()
    queue.set_callback(lambda request, k: seen.append((k, int(request.get_output_tensor().data.argmax()))))
    for k in range(1000):
        queue.start_async({0: np.roll(x, k % 3, -1)}, k)
    queue.wait_all()
    assert sorted(k for k, _ in seen) == list(range(1000))
    expected = [int(model(np.roll(x, shift, -1))[0].argmax()) for shift in range(3)]
    assert all(digit == expected[k % 3] for k, digit in seen)


def test_arrays_that_cannot_be_shared_are_copied():
    def script(ov):
        request = ov.Core().compile_model(DIGITS, "CPU").create_infer_request()
        first, second = image(), image()[:, :, ::-1].copy()
        second.flags.writeable = False
        for share in (True, False):
            request.infer({0: first}, share_inputs=True)
            kept = first.copy()
            request.infer({0: second}, share_inputs=share)
            yield (first == kept).all(), request.get_input_tensor().data, request.get_output_tensor().data.argmax()

    same(script)


INTERRUPTED = """
import signal, sys, threading
import numpy as np
import irload.openvino as ov

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
model = ov.compile_model(sys.argv[1], "CPU", {"NUM_STREAMS": 2})
queue = ov.AsyncInferQueue(model, 2)
going = threading.Event()
queue.set_callback(lambda request, data: going.wait(10))
main, image = threading.main_thread().ident, np.load(sys.argv[2])
for wait in (queue.wait_all, lambda: [queue.start_async([image]) for _ in range(4)]):
    going.clear()
    for _ in range(2):
        queue.start_async([image])
    threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    try:
        wait()
        sys.exit("the wait was not interrupted")
    except KeyboardInterrupt:
        going.set()
        queue.wait_all()
        assert queue.is_ready()
going.clear()
for _ in range(2):
    queue.start_async([image])
threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
try:
    queue.wait_all()
finally:
    going.set()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pthread_kill")
def test_an_interrupt_ends_the_waits_of_a_queue():
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, DIGITS, IMAGE], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == -signal.SIGINT, ended.stderr
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
