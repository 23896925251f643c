"""Models as bytes: export_model, import_model, and their properties and errors."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest

import irload.openvino as irov
from tests.openvino.both import DIGITS, IMAGE, failure, opset, same


def model(ov):
    ops = opset(ov)
    data = ops.parameter([-1, 3], np.float32, name="data")
    product = ops.matmul(data, ops.constant(np.arange(6, dtype=np.float32).reshape(3, 2)), False, False)
    return ov.Model([ops.relu(product, name="out")], [data], "product")


def test_export_and_import():
    def script(ov):
        core, array = ov.Core(), np.array([[1, -2, 3], [4, 5, -6]], np.float32)
        compiled = core.compile_model(model(ov), "CPU", {"PERF_COUNT": True, "INFERENCE_NUM_THREADS": 1})
        stream = compiled.export_model()
        yield type(stream).__name__, stream.tell()
        written = io.BytesIO()
        yield compiled.export_model(written), written.tell(), len(written.getvalue()) > 0
        for source in (stream, written.getvalue(), ov.Tensor(np.frombuffer(written.getvalue(), np.uint8))):
            imported = core.import_model(source, "CPU")
            yield imported([array])[0], imported.input(0).get_partial_shape(), imported.input(0).any_name
            yield [imported.get_property(name) for name in ("NETWORK_NAME", "INFERENCE_NUM_THREADS")]
        yield core.import_model(written, "CPU", {"INFERENCE_NUM_THREADS": 2}).get_property("INFERENCE_NUM_THREADS")
        yield failure(lambda: core.import_model(b"model", "CPU")), failure(lambda: core.import_model("model", "CPU"))
        yield "EXPORT_IMPORT" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")

    same(script)


def test_encrypted_models():
    config = {"CACHE_ENCRYPTION_CALLBACKS": [base64.b64encode, base64.b64decode]}
    image = np.load(IMAGE)
    compiled = irov.compile_model(DIGITS, "CPU", config)
    data = compiled.export_model().getvalue()
    assert b"<net" not in data
    imported = irov.Core().import_model(data, "CPU", config)
    np.testing.assert_array_equal(imported(image)[0], compiled(image)[0])
    with pytest.raises(RuntimeError, match="truncated, or encrypted by other CACHE_ENCRYPTION_CALLBACKS"):
        irov.Core().import_model(data, "CPU")
    plain = irov.compile_model(DIGITS).export_model().getvalue()
    with pytest.raises(RuntimeError, match="truncated"):
        irov.Core().import_model(plain[: len(plain) // 4], "CPU")


def test_cache_dir_creates_the_folder(tmp_path):
    def script(ov):
        for number, action in enumerate(
            (
                lambda folder: ov.Core().read_model(DIGITS, config={"CACHE_DIR": folder}),
                lambda folder: ov.Core().set_property("CPU", {"CACHE_DIR": folder}),
                lambda folder: ov.Core().compile_model(model(ov), "CPU", {"CACHE_DIR": folder}),
            )
        ):
            folder = tmp_path / ov.__name__ / str(number)
            action(str(folder))
            yield folder.is_dir()

    same(script)
