"""`openvino.utils`: replacing nodes, and other helpers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from irload.openvino import adapters
from irload.openvino.errors import OpenVINOError
from irload.openvino.node import Node
from irload.openvino.package_utils import (
    classproperty,
    deprecated,
    deprecatedclassproperty,
    deprecation_warning,
    get_cmake_path,
)
from irload.openvino.ports import Output

__all__ = [
    "classproperty",
    "deprecated",
    "deprecatedclassproperty",
    "deprecation_warning",
    "get_cmake_path",
    "numpy_to_c",
    "replace_node",
    "replace_output_update_name",
]


def replace_node(target: Node, replacement: Node | Sequence[Output], order: Sequence[int] | None = None) -> None:
    """Connect the consumers of a node to the outputs of another node, or to a list of outputs. No name is changed."""
    if isinstance(replacement, Node):
        numbers = range(replacement.get_output_size()) if order is None else order
        outputs = [replacement.output(k) for k in numbers]
    else:
        outputs = [*replacement]
    if len(outputs) != target.get_output_size():
        raise OpenVINOError(f"{target!r} has {target.get_output_size()} outputs, the replacement {len(outputs)}")
    for old, new in zip(target.outputs(), outputs, strict=True):
        old.replace(new)


def replace_output_update_name(output: Output, replacement: Output) -> bool:
    """Connect the consumers of an output to another output, whose node gets the name of the old node.

    Returns False without connecting if a Result reads the output and the new node has several outputs, else True.
    """
    node = output.node
    if any(i.get_node().get_type_name() == "Result" for i in output.target_inputs):
        replacement.node.friendly_name = node.friendly_name
        if replacement.node.get_output_size() > 1:
            return False
    output.replace(replacement)
    replacement.node.friendly_name = node.friendly_name
    adapters.edited()
    return True


def numpy_to_c(array: Any) -> int:
    """The address of the memory of an array."""
    return array.ctypes.data


def __getattr__(name: str) -> Any:
    if name in ("data_helpers", "decorators", "input_validation", "node_factory", "postponed_constant", "types"):
        return import_module(f"irload.openvino.utils.{name}")
    if name == "make_postponed_constant":
        return import_module("irload.openvino.utils.postponed_constant").make_postponed_constant
    raise AttributeError(f"module 'irload.openvino.utils' has no attribute '{name}'")
