"""export_model and import_model: a compiled model as bytes.

The bytes are MARK, the size of the XML in 8 bytes, the XML and the weights of the model as IR v11. import_model
compiles the model again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import irload
import irload.model
from irload.errors import ReadError
from irload.openvino.config import PropertyValues
from irload.openvino.tensors import Tensor
from irload.write.save import save_model

__all__ = ["exported", "imported"]

MARK = b"irload openvino 1\n"


def exported(model: irload.model.Model, config: PropertyValues) -> bytes:
    """The model, encrypted by the first of CACHE_ENCRYPTION_CALLBACKS if they are set."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        save_model(model, path)
        xml, weights = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    return MARK + _callback(config, 0)(len(xml).to_bytes(8, "little") + xml + weights)


def imported(stream: Any, config: PropertyValues) -> irload.model.Model:
    """The model in exported bytes, which are given as bytes, a stream or a Tensor.

    Raises ReadError for other bytes, and TypeError for another type of `stream`.
    """
    if isinstance(stream, Tensor):
        stream = stream.data.tobytes()
    elif hasattr(stream, "read"):
        stream = stream.read()
    if not isinstance(stream, bytes | bytearray | memoryview):
        raise TypeError(
            "import_model(model_stream): incompatible function argument: `model_stream` must be an io.BytesIO object, "
            f"bytes or a Tensor, found {type(stream).__name__}"
        )
    data = bytes(stream)
    if not data.startswith(MARK):
        raise ReadError("the bytes are not a model that irload exported; compile the IR")
    content = _callback(config, 1)(data[len(MARK) :])
    end = 8 + int.from_bytes(content[:8], "little")
    if len(content) < end:
        raise ReadError("the exported model is truncated, or encrypted by other CACHE_ENCRYPTION_CALLBACKS")
    return irload.read_model(content[8:end], content[end:] or None)


def _callback(config: PropertyValues, index: int) -> Callable[[bytes], bytes]:
    callbacks = config.get("CACHE_ENCRYPTION_CALLBACKS")
    return callbacks[index] if callbacks else bytes
