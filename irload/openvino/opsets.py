"""The modules `opset1` to `opset17`: a factory for each operation of an opset, created on first use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["OpsetModule", "register"]

LATEST = 17


class OpsetModule(ModuleType):
    """The factories of one opset as a module."""

    def __init__(self, package: str, number: int) -> None:
        super().__init__(f"{package}.opset{number}", f"Factories of the operations of opset{number}.")
        self.number = number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from irload.openvino.factories import factory

        function = factory(self.number, name)
        if function is None:
            raise AttributeError(f"module 'opset{self.number}' has no attribute '{name}'")
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        from irload.openvino.factories import names

        return sorted(names(self.number))


def register(package: str) -> dict[str, ModuleType]:
    """Create the modules of all opsets, so that they can be imported by name. Returns them by name."""
    modules: dict[str, ModuleType] = {}
    for number in range(1, LATEST + 1):
        module = OpsetModule(package, number)
        sys.modules[module.__name__] = modules[f"opset{number}"] = module
    return modules
