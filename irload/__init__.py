"""irload: load, validate and run OpenVINO IR models with nothing but NumPy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irload.checks import Finding, Report, check
    from irload.config import show_config
    from irload.core import attribute as attr
    from irload.core import element as elements
    from irload.core.element import ElementType
    from irload.core.op import Op
    from irload.core.shape import Dim, Shape
    from irload.core.tensor import TensorType
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
    from irload.graph import Model, Port
    from irload.inference import infer
    from irload.model import read_model
    from irload.run import CompiledModel, InferRequest, compile_model
    from irload.safety import Limits
    from irload.write.patch import correct_ports
    from irload.write.save import save_model

__version__ = "0.1.0"

__all__ = [
    "AttributeInvalid",
    "CompiledModel",
    "DeclaredDiffers",
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
    "compile_model",
    "correct_ports",
    "elements",
    "infer",
    "load_extension",
    "read_model",
    "save_model",
    "show_config",
]

# Where each public name lives. They are imported on first use, so that `import irload` costs next to nothing.
_HOMES = {
    "Finding": "irload.checks",
    "Report": "irload.checks",
    "check": "irload.checks",
    "ElementType": "irload.core.element",
    "Op": "irload.core.op",
    "Dim": "irload.core.shape",
    "Shape": "irload.core.shape",
    "TensorType": "irload.core.tensor",
    "load_extension": "irload.extensions",
    "Model": "irload.graph",
    "Port": "irload.graph",
    "infer": "irload.inference",
    "Limits": "irload.safety",
    "read_model": "irload.model",
    "CompiledModel": "irload.run",
    "InferRequest": "irload.run",
    "compile_model": "irload.run",
    "correct_ports": "irload.write.patch",
    "save_model": "irload.write.save",
    "show_config": "irload.config",
}

# Modules that are public under a name of their own: what attributes are declared with, and the element types.
_MODULES = {"attr": "irload.core.attribute", "elements": "irload.core.element"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'irload' has no attribute '{name}'")
    home = _MODULES.get(name)
    value = getattr(import_module(_HOMES.get(name, "irload.errors")), name) if home is None else import_module(home)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
