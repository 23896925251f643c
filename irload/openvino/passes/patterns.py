"""Pattern nodes: WrapType, AnyInput, Or and Optional, which stand for nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irload.core.op import Op, Signature
from irload.core.tensor import UNKNOWN, Array, TensorType
from irload.openvino import authoring
from irload.openvino.attributes import XML_NAMES
from irload.openvino.errors import translated
from irload.openvino.node import Node, as_output
from irload.openvino.passes.predicates import Predicate
from irload.openvino.ports import Output
from irload.ops.registry import resolve

__all__ = ["AnyInput", "Optional", "Or", "PatternOp", "WrapType", "is_type"]


class PatternOp(Op):
    """The operation of a pattern node: of unknown type."""

    type = "Pattern"
    opset = "util"
    folds = False

    def __init__(self, kind: str, types: Sequence[str], predicate: Predicate) -> None:
        super().__init__()
        self.kind = kind
        self.types = types
        self.predicate = predicate

    def infer(self, *inputs: TensorType) -> TensorType:
        return UNKNOWN

    def compute(self, *inputs: Array) -> Array:
        raise AssertionError("patterns are not run")


PatternOp.signature = Signature.of(PatternOp)  # without registration: files have no patterns


class _Pattern(Node):
    def _create(self, kind: str, types: Sequence[str], inputs: Sequence[Any], predicate: Any) -> None:
        op = PatternOp(kind, types, Predicate.of(predicate))
        self._adopt(authoring.new_node(op, [as_output(i) for i in inputs]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: '{self.friendly_name}'>"


class AnyInput(_Pattern):
    """Any output for which the predicate holds."""

    def __init__(self, predicate: Predicate | Callable[..., Any] | None = None) -> None:
        self._create("any", (), (), predicate)


class WrapType(_Pattern):
    """A node of one of these types, such as `opset13.Relu` or `Relu`, with these inputs."""

    def __init__(self, *given: Any, **named: Any) -> None:
        types, inputs, predicate = _arguments(given, named)
        self._create("type", types, inputs, predicate)


class Optional(_Pattern):
    """A node of one of these types with these inputs, or else an output that matches the first of these inputs."""

    def __init__(self, *given: Any, **named: Any) -> None:
        types, inputs, predicate = _arguments(given, named)
        self._create("optional", types, inputs, predicate)


class Or(_Pattern):
    """One of several patterns."""

    def __init__(self, inputs: Sequence[Node | Output]) -> None:
        self._create("or", (), inputs, None)


def _arguments(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[str], list[Any], Any]:
    """Types, inputs and the predicate, from the arguments of a pattern."""
    rest = [*given]
    types = rest.pop(0) if rest else named.get("type_names", named.get("type_name"))
    inputs: list[Any] = []
    predicate = named.get("predicate", named.get("pred"))
    for item in (*rest, *(named[k] for k in ("input", "inputs") if k in named)):
        if isinstance(item, Node | Output):
            inputs.append(item)
        elif isinstance(item, list | tuple):
            inputs += item
        else:
            predicate = item
    names: list[str] = [types] if isinstance(types, str) else list(types or ())
    with translated():
        for name in names:
            is_type(None, name)
    return names, inputs, predicate


def is_type(op: Op | None, name: str) -> bool:
    """True if an operation has a type such as `opset13.Relu`, `opset13::Relu` or `Relu`. Raises for an unknown type."""
    version, _, kind = name.replace("::", ".").rpartition(".")
    kind = XML_NAMES.get(kind, kind)
    if not version:
        return op is not None and op.type == kind
    cls, _ = resolve(kind, version)
    return op is not None and type(op) is cls
