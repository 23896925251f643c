"""IR4xx: what ports declare against what is inferred, and shapes and types that do not agree with each other.

Dims are judged so: a declared −1 matches anything; a static dim must lie in the inferred interval; a port without dims
is a scalar or of dynamic rank. Each fault is reported once, at the port where it arises: inference goes on with what
was inferred, never with what was declared, and an input port that repeats its producer's wrong claim is not reported
again.
"""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.because import why_shape, why_type
from irload.checks.rule import Hit, graph_rule
from irload.checks.subject import Scope, port_name
from irload.core.element import dynamic
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.graph import Declared, Node, UnknownOp
from irload.read.raw import RawLayer


def dims_text(declared: Declared) -> str:
    """The dims of a port as the file has them."""
    return f"[{','.join(map(str, declared.dims or ()))}]"


def difference(declared: Declared, inferred: Shape) -> int | str | None:
    """Where the claim cannot be true: the first axis that differs, `rank`, or None where it may be true."""
    if inferred.rank is None or declared.dims is None:
        return None
    if len(declared.dims) != inferred.rank:
        return "rank"
    for axis, (claim, dim) in enumerate(zip(declared.dims, inferred, strict=True)):
        if claim != -1 and not dim.contains(claim):
            return axis
    return None


def _shape_hit(scope: Scope, layer: RawLayer, node: Node, k: int, declared: Declared, inferred: Shape) -> Hit | None:
    at = difference(declared, inferred)
    if at is None:
        return None
    what = f"declares rank {len(declared.dims or ())}" if at == "rank" else f"declares {dims_text(declared)}"
    port = port_name(layer.outputs, k, "output")
    message = f"{port} {what}, inferred {inferred}"
    return Hit(layer, message, why_shape(scope, node, k, at if isinstance(at, int) else None), declared.line, port)


@graph_rule("IR401", "error", "declared dims are not what the operation produces")
def output_dims(scope: Scope) -> Iterator[Hit]:
    """An output port declares dims that its operation cannot produce from its inputs and attributes.

    For Parameter and Const the declaration of the layer's own `data` counts.

    Example: a Convolution of [1,3,8,8] with filters [4,3,3,3] that declares [1,99,6,6].
    """
    for layer, node in scope.pairs():
        for k, output in enumerate(node.outputs):
            if output.declared is not None and not isinstance(node.op, UnknownOp):
                hit = _shape_hit(scope, layer, node, k, output.declared, scope.type(output).shape)
                if hit is not None:
                    yield hit


@graph_rule("IR402", "error", "declared precision is not what the operation produces")
def output_precision(scope: Scope) -> Iterator[Hit]:
    """An output port declares a precision other than the element type that its operation produces.

    Example: a Convolution of f32 tensors whose output port says `precision="I64"`.
    """
    for layer, node in scope.pairs():
        for k, output in enumerate(node.outputs):
            inferred = scope.type(output).element
            claim = None if output.declared is None else output.declared.element
            if claim is None or isinstance(node.op, UnknownOp) or dynamic in (claim, inferred) or claim is inferred:
                continue
            port = port_name(layer.outputs, k, "output")
            message = f"{port} declares {claim.precision}, inferred {inferred.precision}"
            line = None if output.declared is None else output.declared.line
            yield Hit(layer, message, why_type(scope, node), line, port)


@graph_rule("IR403", "error", "declared dims are not what feeds the port")
def input_dims(scope: Scope) -> Iterator[Hit]:
    """An input port declares dims that the tensor arriving there cannot have.

    Example: an input port with dims [1,3,9,9], fed by an output that is [1,3,8,8].
    """
    for layer, node in scope.pairs():
        for k, tensor, declared in _inputs(scope, node):
            source = node.inputs[k]
            repeated = source.declared is not None and source.declared.dims == declared.dims
            at = None if repeated else difference(declared, tensor.shape)
            if at is None:
                continue
            port = port_name(layer.inputs, k, "input")
            message = f"{port} declares {dims_text(declared)}, but is fed {tensor.shape}"
            yield Hit(layer, message, f"by '{source.node.name}' (id {source.node.id})", declared.line, port)


@graph_rule("IR404", "error", "declared precision is not what feeds the port")
def input_precision(scope: Scope) -> Iterator[Hit]:
    """An input port declares a precision other than the element type of the tensor arriving there.

    Example: an input port with `precision="FP16"`, fed by an f32 output.
    """
    for layer, node in scope.pairs():
        for k, tensor, declared in _inputs(scope, node):
            source = node.inputs[k]
            repeated = source.declared is not None and source.declared.element is declared.element
            if repeated or declared.element in (None, dynamic, tensor.element) or tensor.element is dynamic:
                continue
            port = port_name(layer.inputs, k, "input")
            message = f"{port} declares {declared.element.precision}, but is fed {tensor.element.precision}"
            yield Hit(layer, message, f"by '{source.node.name}' (id {source.node.id})", declared.line, port)


def _inputs(scope: Scope, node: Node) -> Iterator[tuple[int, TensorType, Declared]]:
    """(position, inferred type, declaration) of each input whose port list and edges fit together."""
    if len(node.inputs) == len(node.declared_inputs):
        for k, declared in enumerate(node.declared_inputs):
            yield k, scope.type(node.inputs[k]), declared


@graph_rule("IR405", "note", "port without dims")
def no_dims(scope: Scope) -> Iterator[Hit]:
    """An output port lists no dims although the rank is known. Such a port reads as a scalar or as of dynamic rank.

    Example: `<port id="2" precision="FP32"/>` on an operation that produces [1,8].
    """
    for layer, node in scope.pairs():
        for k, output in enumerate(node.outputs):
            shape = scope.type(output).shape
            known = not isinstance(node.op, UnknownOp) and shape.rank is not None and shape.rank > 0
            if known and output.declared is not None and output.declared.dims is None:
                port = port_name(layer.outputs, k, "output")
                yield Hit(layer, f"{port} lists no dims, inferred {shape}", line=output.declared.line, port=port)


@graph_rule("IR406", "note", "declared -1 where the size is known")
def needlessly_dynamic(scope: Scope) -> Iterator[Hit]:
    """An output port declares −1 for a dim that is static by inference, as files re-saved after a reshape do.

    Example: an output port with dims [-1,10] of an operation that produces [1,10].
    """
    for layer, node in scope.pairs():
        for k, output in enumerate(node.outputs):
            shape = scope.type(output).shape
            dims = None if output.declared is None else output.declared.dims
            if isinstance(node.op, UnknownOp) or dims is None or shape.rank != len(dims) or output.declared is None:
                continue
            if any(claim == -1 and dim.is_static for claim, dim in zip(dims, shape, strict=True)):
                port = port_name(layer.outputs, k, "output")
                message = f"{port} declares {dims_text(output.declared)}, inferred {shape}"
                yield Hit(layer, message, line=output.declared.line, port=port)


@graph_rule("IR407", "warning", "declared size cannot be known")
def needlessly_static(scope: Scope) -> Iterator[Hit]:
    """A port declares a static dim where inference allows several sizes: the file claims more than follows from it.

    Example: an output port with dims [1,10] of an operation on an input of shape [?,10].
    """
    for layer, node in scope.pairs():
        if isinstance(node.op, UnknownOp):
            continue
        for k, output in enumerate(node.outputs):
            hit = _too_static(layer, output.declared, scope.type(output), port_name(layer.outputs, k, "output"))
            if hit is not None:
                yield hit
        for k, tensor, declared in _inputs(scope, node):
            source = node.inputs[k].declared
            if source is None or source.dims != declared.dims:
                hit = _too_static(layer, declared, tensor, port_name(layer.inputs, k, "input"))
                if hit is not None:
                    yield hit


def _too_static(layer: RawLayer, declared: Declared | None, tensor: TensorType, port: str) -> Hit | None:
    dims = None if declared is None else declared.dims
    if declared is None or dims is None or tensor.rank != len(dims) or difference(declared, tensor.shape) is not None:
        return None
    if all(claim == -1 or dim.is_static for claim, dim in zip(dims, tensor.shape, strict=True)):
        return None
    return Hit(layer, f"{port} declares {dims_text(declared)}, inferred {tensor.shape}", line=declared.line, port=port)


@graph_rule("IR408", "error", "shapes do not agree")
def shapes_disagree(scope: Scope) -> Iterator[Hit]:
    """The shapes (or the values that make a shape) of a layer's inputs break a rule of its operation.

    Example: a Convolution whose data has 3 channels and whose filters expect 4.
    """
    yield from _faults(scope, ShapeMismatch)


@graph_rule("IR409", "error", "element types do not agree")
def types_disagree(scope: Scope) -> Iterator[Hit]:
    """The element types of a layer's inputs break a rule of its operation.

    Example: an Add of an f32 and an i64 tensor.
    """
    yield from _faults(scope, TypeMismatch)


def _faults(scope: Scope, kind: type[IRError]) -> Iterator[Hit]:
    mine = set(scope.graph.nodes)
    for node, error in scope.subject.infer_faults:
        complete = len(node.inputs) == len(node.declared_inputs)  # where an edge is missing, IR204 has said it
        if node in mine and isinstance(error, kind) and complete and not _arity_is_wrong(node):
            inputs = ", ".join(
                f"{node.op.signature.name(k)} '{i.node.name}' {scope.type(i).untold()}"
                for k, i in enumerate(node.inputs)
            )
            yield Hit(node, error.message, inputs)


def _arity_is_wrong(node: Node) -> bool:
    try:
        node.op.signature.check(len(node.inputs))
    except ShapeMismatch:
        return True  # IR304 reports it
    return False


@graph_rule("IR410", "error", "port that the operation does not have")
def extra_output(scope: Scope) -> Iterator[Hit]:
    """A layer lists more output ports than its operation has.

    Example: a ReLU with two output ports.
    """
    for layer, node in scope.pairs():
        count = scope.subject.output_counts.get(node)
        if count is not None and len(layer.outputs) > count and node.type != "Result":
            extra = layer.outputs[count]
            message = f"lists {len(layer.outputs)} output ports; {node.type} has {count}"
            yield Hit(layer, message, line=extra.line, port=f"output port {extra.id}")
