"""IR7xx: hygiene. Files that run, but probably contain a mistake."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule, graph_rule
from irload.checks.subject import Scope, Subject
from irload.errors import UnknownOperation
from irload.graph import Node, Output
from irload.ops.registry import LATEST, resolve
from irload.read.raw import RawLayer

_OPTIONAL_OUTPUTS = frozenset(
    {"MaxPool", "TopK", "Split", "VariadicSplit", "LSTMSequence", "GRUSequence", "RNNSequence"}
)
"""Types whose outputs are often used only in part."""


@graph_rule("IR701", "warning", "unreachable layers")
def unreachable(scope: Scope) -> Iterator[Hit]:
    """No Result and no Assign depends on a layer, so OpenVINO never creates it. A branch is reported at its last layer.

    A note if the branch consists of constants, because OpenVINO itself writes unused constants.

    Example: a branch whose Result was removed.
    """
    if not any(layer.type in ("Result", "Assign") for layer in scope.layers.values()):
        return  # IR706 reports it
    for layer in scope.dead_ends:
        if layer.id not in scope.reached:
            before = _branch(scope, layer)
            cause = f"nor on the {len(before)} before it" if before else ""
            constant = {x.type for x in (layer, *before)} <= {"Const", "Convert"}
            message = "no output of the model depends on it; OpenVINO drops it without a warning"
            yield Hit(layer, message, cause, severity="note" if constant else None)


def _branch(scope: Scope, end: RawLayer) -> list[RawLayer]:
    """The unreachable layers on which a dead end depends."""
    branch: dict[int, RawLayer] = {}
    pending = [end.id]
    while pending:
        layer = scope.layers.get(pending.pop())
        if layer is not None and layer.id not in branch and layer.id not in scope.reached:
            branch[layer.id] = layer
            pending += [source for fed in scope.feeds(layer).values() for source in fed]
    return [layer for layer in branch.values() if layer is not end]


@graph_rule("IR708", "note", "input that nothing uses")
def unused_input(scope: Scope) -> Iterator[Hit]:
    """An input of the model feeds nothing. Every inference must supply it nevertheless.

    Example: a Parameter from which no edge starts.
    """
    for layer in scope.layers.values():
        if layer.type == "Parameter" and layer.outputs and scope.owner is None and not _used(scope, layer):
            yield Hit(layer, "is an input that nothing uses")


def _used(scope: Scope, layer: RawLayer) -> bool:
    return any((layer.id, p.id) in scope.used_ports for p in layer.outputs)


@graph_rule("IR702", "note", "dead output")
def dead_output(scope: Scope) -> Iterator[Hit]:
    """One of several outputs of a layer is unused, though the others are used.

    Example: the `valid_outputs` of a NonMaxSuppression.
    """
    for layer, node in scope.pairs():
        real = layer.outputs[: scope.subject.inference.counts.get(node, 0)]  # IR410 reports surplus outputs
        dead = [p for p in real if (layer.id, p.id) not in scope.used_ports]
        if node.reachable and 0 < len(dead) < len(real) and layer.type not in _OPTIONAL_OUTPUTS:
            for port in dead:
                yield Hit(
                    layer, f"output port {port.id} is used by nothing", line=port.line, port=f"output port {port.id}"
                )


@graph_rule("IR703", "warning", "duplicate tensor name")
def duplicate_tensor_name(scope: Scope) -> Iterator[Hit]:
    """Two tensors of one graph carry the same name; a look-up by that name returns either of them.

    Example: two output ports with `names="features"`.
    """
    first: dict[str, RawLayer] = {}
    for layer in scope.layers.values():
        for port in layer.outputs:
            for name in port.names:
                twin = first.setdefault(name, layer)
                if twin is not layer:
                    yield Hit(
                        layer,
                        f"tensor name '{name}' is also that of '{twin.name}' (id {twin.id})",
                        line=port.line,
                        port=f"output port {port.id}",
                    )


@file_rule("IR704", "note", "nameless output")
def nameless_output(subject: Subject) -> Iterator[Hit]:
    """An output of the model has no tensor name, so scripts can select it only by position.

    Example: a Result without `output_names`, fed by a port without `names`.
    """
    for result in [] if subject.model is None else subject.model.results:
        # An unconnected output has lost its name with its edge.
        if result.inputs and not (result.inputs[0].names if result.output_names is None else result.output_names):
            yield Hit(result, "the output has no tensor name")


@graph_rule("IR705", "note", "superseded operation")
def superseded(scope: Scope) -> Iterator[Hit]:
    """A newer opset has a later version of the operation. The old one still loads.

    Example: `type="Interpolate" version="opset1"`.
    """
    for layer, node in scope.pairs():
        try:
            newest = resolve(layer.type, f"opset{LATEST}")[0]
        except UnknownOperation:
            continue
        if node.op.namespace == "opset" and node.op.since < newest.since:
            yield Hit(layer, f"{layer.type} of {node.op.opset} was superseded by that of {newest.opset}")


@file_rule("IR706", "warning", "model without outputs")
def no_result(subject: Subject) -> Iterator[Hit]:
    """The model has no Result. The file loads and compiles, but an inference returns nothing.

    Example: a file whose Result layers were removed.
    """
    if subject.model is not None and not subject.model.results:
        yield Hit(None, "the model has no Result, so it returns nothing")


@graph_rule("IR707", "note", "sizes that pass through f32")
def sizes_as_floats(scope: Scope) -> Iterator[Hit]:
    """Sizes of tensors are converted to a float type and back before they reach a shape input.

    f32 holds integers exactly only up to 16,777,216, f16 up to 2,048.

    Example: ShapeOf → Convert to f32 → Multiply → Convert to i64 → Reshape.
    """
    for layer, node in scope.pairs():
        if node.type == "Convert" and node.inputs and node.outputs:
            target, source = scope.type(node.outputs[0]), scope.type(node.inputs[0])
            sized = target.element.is_float and source.element.is_integer and _from_shape(node.inputs[0])
            if sized and target.element.bits <= 32:
                yield Hit(layer, f"converts sizes of a tensor to {target.element}")


def _from_shape(output: Output, depth: int = 6) -> bool:
    """True if a ShapeOf is at most `depth` layers up."""
    frontier: set[Node] = {output.node}
    for _ in range(depth):
        if any(n.type == "ShapeOf" for n in frontier):
            return True
        frontier = {i.node for n in frontier for i in n.inputs if i.node.type not in ("Const", "Parameter")}
    return False
