"""What the ports of a file declare against what inference finds. The runtime never compares the two; irload does."""

from __future__ import annotations

from dataclasses import dataclass

from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.graph import Declared, Model, Output

__all__ = ["Comparison", "compare", "declares_static"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where one output's declaration and its inferred type disagree: in the element type, in the shape."""

    element: bool
    shape: bool

    def __bool__(self) -> bool:
        return self.element or self.shape


def compare(output: Output, *, static_file: bool) -> Comparison:
    """Whether what the file declares of an output contradicts its inferred type. False for what merely says less.

    A declared −1 admits any size. A port without dims is a scalar or of dynamic rank, so it contradicts an inferred
    rank only in a file that is static otherwise (`declares_static`).
    """
    declared, inferred = output.declared, output.type
    if declared is None:
        return Comparison(False, False)
    element = declared.element not in (None, dynamic, inferred.element) and inferred.element is not dynamic
    return Comparison(element, _shape_differs(declared, inferred, static_file))


def declares_static(model: Model) -> bool:
    """True when no port and no Parameter of the file leaves a size open."""
    for graph in model.walk():
        for node in graph.nodes:
            if node.type == "Parameter" and node.op.declared and node.op.attributes["shape"].is_dynamic:
                return False
            if any(o.declared is not None and -1 in (o.declared.dims or ()) for o in node.outputs):
                return False
    return True


def _shape_differs(declared: Declared, inferred: TensorType, static_file: bool) -> bool:
    rank = inferred.shape.rank
    if rank is None:
        return False
    if declared.dims is None:
        return static_file and rank > 0
    if rank != len(declared.dims):
        return True
    return any(n != -1 and not d.contains(n) for n, d in zip(declared.dims, inferred.shape, strict=True))
