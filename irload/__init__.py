"""irload: load, validate and run OpenVINO IR models in NumPy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irload import edit
    from irload.checks import Finding, Report, check
    from irload.comparison.compare import Comparison, compare
    from irload.comparison.diff import diff
    from irload.comparison.edits import Difference
    from irload.compiling import compile_model
    from irload.core import attribute as attr
    from irload.core import element as elements
    from irload.core.element import ElementType
    from irload.core.op import Op
    from irload.core.shape import Dim, Shape
    from irload.core.tensor import TensorType
    from irload.diagnostics.config import show_config
    from irload.diagnostics.dump import dump_intermediates
    from irload.diagnostics.finite import check_finite
    from irload.errors import (
        AttributeInvalid,
        DeclaredDiffers,
        ExecutionError,
        InputInvalid,
        IRError,
        LimitExceeded,
        OutOfMemory,
        ReadError,
        ShapeMismatch,
        TypeMismatch,
        UnknownOperation,
        Unsupported,
    )
    from irload.extensions import load_extension
    from irload.graph import Port
    from irload.loading import read_model
    from irload.model import Model, infer
    from irload.options import CompileOptions
    from irload.reporting.page import ModelReport, report
    from irload.runtime.compiled_model import CompiledModel, InferRequest
    from irload.safety.limits import Limits
    from irload.text.generation import Generation, TextGeneration
    from irload.text.settings import GenerationOptions
    from irload.text.tokenizer import Tokenizer
    from irload.write.patch import correct_ports
    from irload.write.save import save_model

__version__ = "0.1.0"

__all__ = [
    "AttributeInvalid",
    "Comparison",
    "CompileOptions",
    "CompiledModel",
    "DeclaredDiffers",
    "Difference",
    "Dim",
    "ElementType",
    "ExecutionError",
    "Finding",
    "Generation",
    "GenerationOptions",
    "IRError",
    "InferRequest",
    "InputInvalid",
    "LimitExceeded",
    "Limits",
    "Model",
    "ModelReport",
    "Op",
    "OutOfMemory",
    "Port",
    "ReadError",
    "Report",
    "Shape",
    "ShapeMismatch",
    "TensorType",
    "TextGeneration",
    "Tokenizer",
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
    "edit",
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
    "irload.diagnostics.config": ("show_config",),
    "irload.diagnostics.dump": ("dump_intermediates",),
    "irload.diagnostics.finite": ("check_finite",),
    "irload.core.element": ("ElementType",),
    "irload.core.op": ("Op",),
    "irload.core.shape": ("Dim", "Shape"),
    "irload.core.tensor": ("TensorType",),
    "irload.errors": (
        *("AttributeInvalid", "DeclaredDiffers", "ExecutionError", "IRError", "InputInvalid", "LimitExceeded"),
        *("OutOfMemory", "ReadError", "ShapeMismatch", "TypeMismatch", "UnknownOperation", "Unsupported"),
    ),
    "irload.extensions": ("load_extension",),
    "irload.graph": ("Port",),
    "irload.loading": ("read_model",),
    "irload.model": ("Model", "infer"),
    "irload.options": ("CompileOptions",),
    "irload.reporting.page": ("ModelReport", "report"),
    "irload.runtime.compiled_model": ("CompiledModel", "InferRequest"),
    "irload.safety.limits": ("Limits",),
    "irload.text.generation": ("Generation", "TextGeneration"),
    "irload.text.settings": ("GenerationOptions",),
    "irload.text.tokenizer": ("Tokenizer",),
    "irload.write.patch": ("correct_ports",),
    "irload.write.save": ("save_model",),
}
"""Modules → the public names that they define. A module is imported when one of its names is first used."""

_MODULES = {"attr": "irload.core.attribute", "edit": "irload.edit", "elements": "irload.core.element"}
"""Modules that are public: attribute declarations, the tools that change a model, and the element types."""

_DEFINED_IN = {name: module for module, names in _PUBLIC.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _DEFINED_IN:
        raise AttributeError(f"module 'irload' has no attribute '{name}'")
    from irload.system.forks import unforked

    with unforked:  # a child forked during the import would inherit locked import locks
        module = import_module(_MODULES[name] if name in _MODULES else _DEFINED_IN[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
