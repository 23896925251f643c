"""OpenVINO's Python API over irload: `import irload.openvino as ov` in place of `import openvino as ov`.

Names are imported on first use. docs/openvino.md lists supported names and differences.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irload.openvino import opsets

_DEFINED_IN = {
    "core": ("Core", "compile_model"),
    "compiled": ("CompiledModel",),
    "custom": ("AttributeVisitor", "Op"),
    "dimensions": ("Dimension", "PartialShape", "Symbol"),
    "layouts": ("Layout",),
    "model": ("Model",),
    "node": ("Node",),
    "ov_dict": ("OVDict",),
    "ports": ("ConstOutput", "DescriptorTensor", "Input", "Output"),
    "profiling": ("ProfilingInfo",),
    "queue": ("AsyncInferQueue",),
    "requests": ("InferRequest",),
    "rt_info": ("OVAny", "RTMap"),
    "saving": ("save_model", "serialize"),
    "state": ("VariableState",),
    "tensors": ("Tensor", "TensorVector"),
    "type_info": ("DiscreteTypeInfo",),
    "types": ("Type",),
    "vectors": ("AxisSet", "AxisVector", "Coordinate", "CoordinateDiff", "Shape", "Strides"),
    "version": ("Version", "get_version"),
    "helper_functions": ("get_batch", "set_batch", "shutdown", "tensor_from_file"),
    "installing": ("install",),
    "remote": (
        *("Extension", "FrontEnd", "FrontEndManager", "OpExtension", "RemoteContext", "RemoteTensor"),
        *("VAContext", "VASurfaceTensor", "convert_model"),
    ),
}
"""Modules → the public names that they define."""

_MODULES = (
    *(
        "exceptions",
        "experimental",
        "frontend",
        "helpers",
        "layout_helpers",
        "op",
        "package_utils",
        "passes",
        "preprocess",
        "properties",
        "runtime",
    ),
    "utils",
)
"""Public submodules."""

_BY_NAME = {name: module for module, names in _DEFINED_IN.items() for name in names}

_OPSETS = opsets.register(__name__)

_PUBLIC = [*_BY_NAME, *_MODULES, *_OPSETS]


def __getattr__(name: str) -> Any:
    from irload.system.forks import unforked

    with unforked:  # a child forked during the import would inherit locked import locks
        if name == "__version__":
            value: Any = import_module("irload.openvino.version").get_version()
        elif name in _BY_NAME:
            value = getattr(import_module(f"irload.openvino.{_BY_NAME[name]}"), name)
        elif name == "__all__":
            value = _PUBLIC
        elif name in _OPSETS:
            value = _OPSETS[name]
        elif name in _MODULES or name == "_pyopenvino":
            value = import_module(f"irload.openvino.{name}")
        else:
            raise AttributeError(f"module 'irload.openvino' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_PUBLIC, "__version__"]
