"""`openvino.utils.decorators`: for functions that create nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from irload.openvino.node import Node
from irload.openvino.ports import Output
from irload.openvino.utils.types import as_node, as_nodes

__all__ = ["binary_op", "custom_preprocess_function", "nameable_op", "unary_op"]


def _named(node: Node, keywords: dict[str, Any]) -> Node:
    if keywords.get("name") is not None:
        node.friendly_name = keywords["name"]
    return node


def nameable_op(node_factory_function: Callable[..., Node]) -> Callable[..., Node]:
    """Give the node the name that is passed as `name`."""

    @wraps(node_factory_function)
    def wrapper(*args: Any, **kwargs: Any) -> Node:
        return _named(node_factory_function(*args, **kwargs), kwargs)

    return wrapper


def unary_op(node_factory_function: Callable[..., Node]) -> Callable[..., Node]:
    """Convert the first argument to a node."""

    @wraps(node_factory_function)
    def wrapper(input_value: Any, *args: Any, **kwargs: Any) -> Node:
        return _named(node_factory_function(as_node(input_value), *args, **kwargs), kwargs)

    return wrapper


def binary_op(node_factory_function: Callable[..., Node]) -> Callable[..., Node]:
    """Convert the first two arguments to nodes."""

    @wraps(node_factory_function)
    def wrapper(left: Any, right: Any, *args: Any, **kwargs: Any) -> Node:
        return _named(node_factory_function(*as_nodes(left, right), *args, **kwargs), kwargs)

    return wrapper


def custom_preprocess_function(custom_function: Callable[..., Node]) -> Callable[..., Output]:
    """Return the output of the node that a step of preprocessing creates."""

    @wraps(custom_function)
    def wrapper(node: Any) -> Output:
        result = custom_function(node)
        return result if isinstance(result, Output) else result.output(0)

    return wrapper
