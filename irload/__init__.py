"""irload: load, validate and run OpenVINO IR models in NumPy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irload.checks import Finding, Report, check
    from irload.comparison.compare import Comparison, compare
    from irload.comparison.diff import diff
    from irload.comparison.edits import Difference
    from irload.compiling import compile_model
    from irload.config import show_config
    from irload.core import attribute as attr
    from irload.core import element as elements
    from irload.core.element import ElementType
    from irload.core.op import Op
    from irload.core.shape import Dim, Shape
    from irload.core.tensor import TensorType
    from irload.dump import dump_intermediates
    from irload.errors import (
        AttributeInvalid,
        DeclaredDiffers,
        ExecutionError,
        InputInvalid,
        IRError,
        LimitExceeded,
        ReadError,
        ShapeMismatch,
        TypeMismatch,
        UnknownOperation,
        Unsupported,
    )
    from irload.extensions import load_extension
    from irload.finite import check_finite
    from irload.graph import Port
    from irload.loading import read_model
    from irload.model import Model, infer
    from irload.reporting.page import ModelReport, report
    from irload.run import CompiledModel, InferRequest
    from irload.safety import Limits
    from irload.write.patch import correct_ports
    from irload.write.save import save_model

__version__ = "0.1.0"

__all__ = [
    "AttributeInvalid",
    "Comparison",
    "CompiledModel",
    "DeclaredDiffers",
    "Difference",
    "Dim",
    "ElementType",
    "ExecutionError",
    "Finding",
    "IRError",
    "InferRequest",
    "InputInvalid",
    "LimitExceeded",
    "Limits",
    "Model",
    "ModelReport",
    "Op",
    "Port",
    "ReadError",
    "Report",
    "Shape",
    "ShapeMismatch",
    "TensorType",
    "TypeMismatch",
    "UnknownOperation",
    "Unsupported",
    "attr",
    "check",
    "check_finite",
    "compare",
    "compile_model",
    "correct_ports",
    "diff",
    "dump_intermediates",
    "elements",
    "infer",
    "load_extension",
    "read_model",
    "report",
    "save_model",
    "show_config",
]

_PUBLIC = {
    "irload.checks": ("Finding", "Report", "check"),
    "irload.comparison.compare": ("Comparison", "compare"),
    "irload.comparison.diff": ("diff",),
    "irload.comparison.edits": ("Difference",),
    "irload.compiling": ("compile_model",),
    "irload.config": ("show_config",),
    "irload.dump": ("dump_intermediates",),
    "irload.finite": ("check_finite",),
    "irload.core.element": ("ElementType",),
    "irload.core.op": ("Op",),
    "irload.core.shape": ("Dim", "Shape"),
    "irload.core.tensor": ("TensorType",),
    "irload.errors": (
        *("AttributeInvalid", "DeclaredDiffers", "ExecutionError", "IRError", "InputInvalid", "LimitExceeded"),
        *("ReadError", "ShapeMismatch", "TypeMismatch", "UnknownOperation", "Unsupported"),
    ),
    "irload.extensions": ("load_extension",),
    "irload.graph": ("Port",),
    "irload.loading": ("read_model",),
    "irload.model": ("Model", "infer"),
    "irload.reporting.page": ("ModelReport", "report"),
    "irload.run": ("CompiledModel", "InferRequest"),
    "irload.safety": ("Limits",),
    "irload.write.patch": ("correct_ports",),
    "irload.write.save": ("save_model",),
}
"""The public names by the module that defines them, imported on first use: `import irload` alone takes no time."""

_MODULES = {"attr": "irload.core.attribute", "elements": "irload.core.element"}
"""Modules that are public under another name: what attributes are declared with, and the element types."""

_DEFINED_IN = {name: module for module, names in _PUBLIC.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _DEFINED_IN:
        value = getattr(import_module(_DEFINED_IN[name]), name)
    else:
        raise AttributeError(f"module 'irload' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
