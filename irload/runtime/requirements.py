"""The requirements of a model to run: supported operations, and a ReadValue for every variable."""

from __future__ import annotations

from irload.errors import AttributeInvalid, UnknownOperation
from irload.graph import Node, UnknownOp
from irload.model import Model
from irload.ops.registry import too_new

__all__ = ["require_known", "require_variables"]


def require_known(model: Model) -> None:
    """Raise UnknownOperation naming every unknown operation of the model."""
    unknown: dict[tuple[str, str], Node] = {}
    for graph in model.walk():
        for node in graph.nodes:
            if isinstance(node.op, UnknownOp) and node.reachable:
                unknown.setdefault((node.op.type, node.op.opset), node)
    if unknown:
        listed = ", ".join(f"{t} ({v})" for t, v in sorted(unknown))
        first = next(iter(unknown.values()))
        verb, each = ("is", "it") if len(unknown) == 1 else ("are", "each of them")
        remedy = next(filter(None, (too_new(version) for _, version in sorted(unknown))), None) or (
            f"Define {each} in a Python file, class MyOp(irload.Op, type=…, opset=…), and load it: "
            "irload.load_extension(FILE) (irrun --extension FILE)"
        )
        raise UnknownOperation(
            f"the model cannot run: {len(unknown)} of its operation types {verb} unknown: {listed}. {remedy}",
            first.where(model.file),
            tuple(sorted(unknown)),
        )


def require_variables(model: Model) -> None:
    """Raise AttributeInvalid for an Assign to a variable that no ReadValue reads."""
    graphs = list(model.walk())
    read = {n.op.attributes.get("variable_id") for g in graphs for n in g.nodes if n.type == "ReadValue"}
    for node in (sink for g in graphs for sink in g.sinks):
        name = node.op.attributes.get("variable_id")
        if name not in read:
            raise AttributeInvalid(f"no ReadValue has the variable_id '{name}'", node.where(model.file))
