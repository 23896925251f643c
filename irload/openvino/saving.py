"""Writing of models as IR."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import irload.model
from irload.openvino import copies
from irload.openvino.errors import OpenVINOError, raising, unsupported
from irload.openvino.model import Model
from irload.openvino.rt_info import plain
from irload.openvino.utils.postponed_constant import PostponedConstant
from irload.write.save import save_model as save

__all__ = ["save_model", "serialize"]


@raising
def save_model(model: Model, output_model: Any, compress_to_fp16: bool = True) -> None:
    """Write a model as IR v11; by default its f32 constants as f16, which are converted when it is loaded."""
    if not isinstance(model, Model):
        raise TypeError(f"save_model takes a Model, found {type(model).__name__}")
    _write(model, output_model, compress_to_fp16=compress_to_fp16)


@raising
def serialize(model: Model, xml_path: Any, bin_path: Any = "", version: str = "UNSPECIFIED") -> None:
    """Write a model as IR v11 with unchanged constants. The .bin is next to the .xml unless a path is given."""
    if str(getattr(version, "name", version)) not in ("UNSPECIFIED", "IR_V11"):
        unsupported(f"writing IR version {version}", "write IR_V11")
    if not isinstance(model, Model):
        raise TypeError(f"serialize takes a Model, found {type(model).__name__}")
    _write(model, xml_path)
    beside = Path(xml_path).with_suffix(".bin")
    if bin_path and Path(bin_path).absolute() != beside.absolute():
        os.replace(beside, bin_path)


def _write(model: Model, path: Any, *, compress_to_fp16: bool = False) -> None:
    copy = copies.clone(model._graph)  # noqa: SLF001
    for node in copy.nodes:
        maker = getattr(node.op, "node", None)
        if isinstance(maker, PostponedConstant):
            node.op = maker.constant().op
            node.version = node.op.opset
    if copy.inferred is None:
        irload.model.infer(copy)
    copy.rt_info = _texts(copy.rt_info)
    try:
        save(copy, Path(path), compress_to_fp16)
    except OSError as error:
        raise OpenVINOError(f"the model cannot be written: {error}") from error


def _texts(tree: dict[str, Any]) -> dict[str, Any]:
    """Metadata as texts: booleans are YES and NO, items of lists are separated by blanks."""
    return {str(key): _text(plain(value)) for key, value in tree.items()}


def _text(value: Any) -> Any:
    if isinstance(value, dict):
        return _texts(cast("dict[str, Any]", value))
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, list | tuple | set):
        return " ".join(str(_text(item)) for item in cast("list[Any]", value))
    return str(value)
