"""Core: reading and compiling of models, and the properties of devices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

import irload
from irload.core.legacy import as_it_is
from irload.openvino.compiled import CompiledModel, compile_copy, compile_graph, properties_of
from irload.openvino.config import PropertyValues, device_of
from irload.openvino.errors import OpenVINOError, raising, unsupported
from irload.openvino.exporting import imported
from irload.openvino.model import Model
from irload.openvino.tensors import Tensor
from irload.openvino.version import Version, version
from irload.write.upgrade import as_v11

__all__ = ["Core", "compile_model", "read"]


class Core:
    """Reads and compiles models. irload has one device, CPU."""

    def __init__(self, xml_config_file: Any = "") -> None:
        if xml_config_file:
            unsupported("configuration files of plugins")
        self._configs = {"CPU": PropertyValues("CPU", {})}

    # -- models --------------------------------------------------------------------------------------------------------

    @raising
    def read_model(self, model: Any, weights: Any = None, config: Mapping[str, Any] | None = None) -> Model:
        """Read an IR: `model` a path, bytes, a stream or XML, `weights` a path, bytes, a stream or a Tensor.

        Raises RuntimeError for a file that is not an IR, Unsupported for other formats.
        """
        settings = self._config("CPU", config)
        return read(model, weights, mmap=settings.get("ENABLE_MMAP") and isinstance(model, str | os.PathLike))

    @raising
    def compile_model(
        self,
        model: Any,
        device_name: Any = None,
        config: Mapping[str, Any] | None = None,
        *,
        weights: Any = None,
    ) -> CompiledModel:
        """Compile a model, or one that is read from a path, bytes, a stream or XML. The device is CPU by default."""
        if isinstance(device_name, Mapping):
            device_name, config = None, cast("Mapping[str, Any]", device_name)
        elif isinstance(device_name, bytes | Tensor):
            weights, device_name = device_name, None
        settings = self._config(device_name or "CPU", config)
        if isinstance(model, Model):
            return compile_graph(model, settings)
        if not isinstance(model, str | bytes | bytearray | memoryview | os.PathLike) and not hasattr(model, "read"):
            raise OpenVINOError(
                f"Path: '{model}' does not exist. Please provide valid model's path either as a string, bytes or "
                "pathlib.Path"
            )
        if settings.caches and weights is None and isinstance(model, str | os.PathLike) and Path(model).exists():
            cached = _from_cache(cast(Any, model), settings)
            if cached is not None:
                return cached
        return compile_graph(read(model, weights), settings)

    @raising
    def import_model(
        self, model_stream: Any, device_name: str = "CPU", config: Mapping[str, Any] | None = None
    ) -> CompiledModel:
        """Compile the model that `CompiledModel.export_model` wrote: bytes, a stream, or a Tensor of bytes.

        Properties of the exported model are not stored, as in OpenVINO. Raises RuntimeError for other bytes.
        """
        settings = self._config(device_name, config)
        return compile_copy(imported(model_stream, settings), settings)

    def query_model(
        self, model: Model, device_name: str = "CPU", properties: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        """The device of each operation by name. Operations that irload cannot run are missing."""
        device_of(device_name)
        from irload.graph import UnknownOp

        nodes = [n for n in model._graph.nodes if n.reachable]  # noqa: SLF001
        return {n.name: "CPU" for n in nodes if not isinstance(n.op, UnknownOp)}

    @raising
    def add_extension(self, extension: Any) -> None:
        """Load operations: a Python file of irload's classes. Raises Unsupported for shared libraries."""
        if isinstance(extension, str | os.PathLike):
            path = Path(cast(Any, extension))
            if path.suffix == ".py":
                irload.load_extension(path)
                return
            if "openvino_tokenizers" in path.name:
                return  # irload has these operations
            unsupported(f"the library '{path.name}'", "write the operations as a Python file (docs/extensions.md)")
        from irload.openvino.custom import register

        for item in extension if isinstance(extension, list) else [extension]:
            register(item)

    # -- devices -------------------------------------------------------------------------------------------------------

    @property
    def available_devices(self) -> list[str]:
        """The devices: CPU."""
        return ["CPU"]

    def get_available_devices(self) -> list[str]:
        """`available_devices`."""
        return self.available_devices

    def get_versions(self, device_name: str) -> dict[str, Version]:
        """The version of irload by device."""
        return {device_of(device_name): version()}

    def _config(self, device_name: Any, given: Mapping[str, Any] | None) -> PropertyValues:
        name = device_of(str(device_name))
        defaults = self._configs["CPU"]._set | (self._configs[name]._set if name in self._configs else {})  # noqa: SLF001
        return PropertyValues(str(device_name), properties_of(given), defaults)

    @raising
    def set_property(self, *given: Any, properties: Any = None, device_name: str | None = None) -> None:
        """Set properties: `set_property("CPU", {name: value})`, without a device for all, or one (name, value)."""
        rest = [*given]
        if rest and isinstance(rest[0], str):
            device_name = rest.pop(0)
        values: Any = rest[0] if rest else properties
        if isinstance(values, tuple):
            values = dict([values])
        name = device_of(device_name or "CPU")
        config = self._configs.setdefault(name, PropertyValues(name, {}))
        for key, value in properties_of(values).items():
            config.set(key, value)

    @raising
    def get_property(self, *given: Any, **named: Any) -> Any:
        """A property: `get_property("CPU", name)`, or one of all devices without a device."""
        names = [*given, *(named[k] for k in ("device_name", "property", "name") if k in named)]
        device_name, name = names[:2] if len(names) > 1 else ("CPU", names[0])
        return self._config(device_name, None).get(str(name))

    def register_plugin(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: irload has no plugins."""
        unsupported("plugins")

    register_plugins = register_plugin

    def unload_plugin(self, device_name: str) -> None:
        """Forget the properties of a device."""
        name = device_of(device_name)
        self._configs[name] = PropertyValues(name, {})

    def create_context(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: irload has no remote memory."""
        unsupported("remote memory", "use Tensor")

    get_default_context = create_context

    def __repr__(self) -> str:
        return "<Core: available plugins[CPU]>"


def read(model: Any, weights: Any = None, *, mmap: bool = False) -> Model:
    """The model of a path, of bytes, of a stream, or of the text of an XML file."""
    if _is_xml(model):
        model = model.encode()
    elif isinstance(model, bytes | bytearray | memoryview):
        model = bytes(model)
    elif hasattr(model, "read"):
        model = model.read()
    elif not isinstance(model, str | os.PathLike):
        raise TypeError(f"Provided python object type {type(model)} isn't supported as 'model' argument.")
    elif Path(cast(Any, model)).suffix.lower() in _OTHER_FORMATS:
        unsupported(f"files of {Path(cast(Any, model)).suffix}", "convert them with OpenVINO and load the IR")
    if isinstance(weights, Tensor):
        weights = np.ascontiguousarray(weights.data).view(np.uint8).tobytes()
    elif hasattr(weights, "read"):
        weights = weights.read()
    elif isinstance(weights, np.ndarray):
        weights = weights.tobytes()
    if isinstance(weights, bytes) and not weights:
        weights = None
    loaded = irload.read_model(model if isinstance(model, bytes) else Path(cast(Any, model)), weights, mmap=mmap)
    return Model._from_graph(as_v11(loaded))  # noqa: SLF001


def _is_xml(model: Any) -> bool:
    return isinstance(model, str) and model.lstrip().startswith("<")


_OTHER_FORMATS = frozenset({".onnx", ".pb", ".pdmodel", ".tflite", ".pt", ".pth", ".json"})


def _from_cache(path: str | os.PathLike[str], settings: PropertyValues) -> CompiledModel | None:
    """The model with a cached plan; None if its ports convert types, as ports of IR v10 may."""
    compiled = irload.compile_model(Path(path), settings.threads, **settings.options())
    if any(port.shown is not as_it_is for port in (*compiled.inputs, *compiled.outputs)):
        return None
    return CompiledModel(compiled, settings)


def compile_model(model: Any, device_name: Any = "AUTO", config: Mapping[str, Any] | None = None) -> CompiledModel:
    """Compile a model with a new Core."""
    return Core().compile_model(model, device_name, config)
