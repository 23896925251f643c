"""IR40x: compares the declared types of ports with the inferred types.

Dims are compared as follows: a declared −1 matches any size; a static dim must be in the inferred interval; a port
without dims is a scalar or of dynamic rank. Each fault is reported once, at the port where it arises: inference
continues with inferred types, never with declared ones. Not reported are declarations that follow from an earlier
wrong declaration, and input ports that repeat their producer's port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from irload.checks.causes import why_shape, why_type
from irload.checks.rule import Hit, graph_rule
from irload.checks.subject import Scope, named, port_name
from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.graph import Declared, Node, Output
from irload.inference import has_body
from irload.read.raw import RawLayer
from irload.validation.declared import Judgement, is_decompression, judge, judge_input


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A port whose declaration contradicts inference: the layer, the port, both types, the judgement."""

    layer: RawLayer
    node: Node
    index: int
    port: str
    declared: Declared
    inferred: TensorType
    judgement: Judgement
    tainted: bool

    @property
    def dims(self) -> str:
        """The dims as the file has them."""
        return f"[{','.join(map(str, self.declared.dims or ()))}]"

    def hit(self, message: str, cause: str = "") -> Hit:
        """The hit at the port's line."""
        return Hit(self.layer, f"{self.port} {message}", cause, self.declared.line, self.port)


def _outputs(scope: Scope, wanted: Callable[[Judgement], bool]) -> Iterator[Mismatch]:
    """The output ports whose judgement is `wanted`, unless an earlier mismatch explains it."""
    for layer, node in scope.pairs():
        for k, output in enumerate(node.outputs):
            judgement = scope.subject.judge(output)
            if judgement.shape in ("open", "silent") and (layer.id, layer.name) in scope.subject.misread:
                continue  # its dims could not be read: IR002
            if (
                output.declared is not None
                and not judgement.fits
                and wanted(judgement)
                and not _body_parameter(scope, output)
            ):
                port = port_name(layer.outputs, k, "output")
                tainted = node in scope.subject.inference.tainted
                yield Mismatch(layer, node, k, port, output.declared, scope.type(output), judgement, tainted)


def _inputs(scope: Scope, wanted: Callable[[Judgement], bool]) -> Iterator[Mismatch]:
    """The input ports that contradict both their producer's port and the tensor that feeds them."""
    for layer, node in scope.pairs():
        if len(node.inputs) != len(node.declared_inputs):
            continue  # the edges of the ports are ambiguous
        for k, declared in enumerate(node.declared_inputs):
            source, inferred = node.inputs[k], scope.type(node.inputs[k])
            judgement = judge_input(node, k, inferred)
            if judgement.shape == "open" and (layer.id, layer.name) in scope.subject.misread:
                judgement = Judgement(judgement.element)
            if not judgement.fits and wanted(judgement):
                port = port_name(layer.inputs, k, "input")
                tainted = source.node in scope.subject.inference.tainted
                yield Mismatch(layer, node, k, port, declared, inferred, judgement, tainted)


def _body_parameter(scope: Scope, output: Output) -> bool:
    """True if the port of a body's Parameter repeats its `data`, which IR505 compares with its input."""
    node = output.node
    if scope.owner is None or node.type != "Parameter":
        return False  # unknown operations are never judged, so the attributes are there
    attributes = node.op.attributes
    return judge(output.declared, TensorType(attributes["element_type"], attributes["shape"])).fits


def _producer(port: Mismatch) -> str:
    source = port.node.inputs[port.index].node
    return f"fed by {named(source)}"


def _cause(scope: Scope, port: Mismatch) -> str:
    if scope.owner is not None and port.node.type == "Parameter":
        return f"fed by {named(scope.owner)}"
    return why_shape(scope, port.node, port.index, port.judgement.axis)


@graph_rule("IR401", "error", "declared dims differ from the operation's")
def output_dims(scope: Scope) -> Iterator[Hit]:
    """An output port declares dims that its operation cannot produce from its inputs and attributes.

    The shape of a Parameter or a Const is the one in its `data`. OpenVINO ignores the declarations of ports, so it
    loads the file without a warning; tools that rely on them fail.

    Example: a Convolution of [1,3,8,8] with filters [4,3,3,3] that declares [1,99,6,6].
    """
    for port in _outputs(scope, lambda j: j.shape == "differs"):
        dims = port.dims
        if port.declared.dims is not None and len(port.declared.dims) != port.inferred.rank:
            dims += f" (rank {len(port.declared.dims)})"
        yield port.hit(f"declares {dims}, inferred {port.inferred.shape}", _cause(scope, port))


@graph_rule("IR402", "error", "declared precision differs from the operation's")
def output_precision(scope: Scope) -> Iterator[Hit]:
    """An output port declares a precision other than the element type that its operation produces.

    A note for the Convert after a constant compressed to f16: OpenVINO itself writes f16 there in bodies.

    Example: a Convolution of f32 tensors whose output port says `precision="I64"`.
    """
    for port in _outputs(scope, lambda j: j.element):
        declared = (port.declared.element or dynamic).precision
        hit = port.hit(f"declares {declared}, inferred {port.inferred.element.precision}", why_type(scope, port.node))
        excused = is_decompression(port.node.outputs[port.index], scope.type)
        yield replace(hit, severity="note") if excused else hit


@graph_rule("IR403", "error", "declared dims differ from the producer's")
def input_dims(scope: Scope) -> Iterator[Hit]:
    """An input port declares dims that the tensor that feeds it cannot have.

    Example: an input port with dims [1,3,9,9], fed by an output that is [1,3,8,8].
    """
    for port in _inputs(scope, lambda j: j.shape == "differs"):
        yield port.hit(f"declares {port.dims}, but is fed {port.inferred.shape}", _producer(port))


@graph_rule("IR404", "error", "declared precision differs from the producer's")
def input_precision(scope: Scope) -> Iterator[Hit]:
    """An input port declares a precision other than the element type of the tensor that feeds it.

    Example: an input port with `precision="FP16"`, fed by an f32 output.
    """
    for port in _inputs(scope, lambda j: j.element):
        declared = (port.declared.element or dynamic).precision
        yield port.hit(f"declares {declared}, but is fed {port.inferred.element.precision}", _producer(port))


@graph_rule("IR405", "note", "port without dims")
def no_dims(scope: Scope) -> Iterator[Hit]:
    """An output port lists no dims, as for a scalar or a dynamic rank, although another rank is known.

    An error if the file has no dynamic sizes elsewhere: the port then declares a scalar.

    Example: `<port id="2" precision="FP32"/>` on an operation that produces [1,8].
    """
    for port in _outputs(scope, lambda j: j.shape == "silent"):
        hit = port.hit(f"lists no dims, inferred {port.inferred.shape}")
        yield replace(hit, severity="error") if scope.subject.is_static else hit


@graph_rule("IR406", "note", "declared -1 where the size is known")
def needlessly_dynamic(scope: Scope) -> Iterator[Hit]:
    """A port declares −1 for a dim that is static by inference, as files re-saved after a reshape do.

    Example: an output port with dims [-1,10] of an operation that produces [1,10].
    """
    for port in _outputs(scope, lambda j: j.shape == "open"):
        yield port.hit(f"declares {port.dims}, inferred {port.inferred.shape}", _cause(scope, port))
    for port in _inputs(scope, lambda j: j.shape == "open"):
        yield port.hit(f"declares {port.dims}, but is fed {port.inferred.shape}", _producer(port))


@graph_rule("IR407", "warning", "declared size cannot be known")
def needlessly_static(scope: Scope) -> Iterator[Hit]:
    """A port declares a static dim where inference allows several sizes, so the declaration is unproven.

    Not reported after a layer with an error, because less can be inferred there. It is a note for rows of
    NonMaxSuppression and for slices with computed ends, for which OpenVINO declares the maximum.

    Example: an output port with dims [1,10] of an operation on an input of shape [?,10].
    """
    for port in _outputs(scope, lambda j: j.shape == "narrow"):
        if not port.tainted:
            hit = port.hit(f"declares {port.dims}, inferred {port.inferred.shape}", _cause(scope, port))
            yield replace(hit, severity="note") if _declares_maximum(port) else hit
    for port in _inputs(scope, lambda j: j.shape == "narrow"):
        if not port.tainted:
            yield port.hit(f"declares {port.dims}, but is fed {port.inferred.shape}", _producer(port))


def _declares_maximum(port: Mismatch) -> bool:
    """Return True if OpenVINO declares the maximum of the inferred sizes for this layer.

    The number of rows of the early NonMaxSuppression depends on values. OpenVINO also declares one element for x[-1:n]
    if n is at least 1, although there is none if n is less than the length of x. In PyTorch's circular padding, n is
    the length of x.
    """
    node, inferred = port.node, port.inferred.shape
    slices = node.type in ("Slice", "StridedSlice") and any(i.type.ints is None for i in node.inputs[1:3])
    if not slices:
        return node.type == "NonMaxSuppression"
    return all(size in (-1, dim.hi) for size, dim in zip(port.declared.dims or (), inferred.dims, strict=True))


@graph_rule("IR410", "error", "port that the operation does not have")
def extra_output(scope: Scope) -> Iterator[Hit]:
    """A layer lists more output ports than its operation has.

    Example: a ReLU with two output ports.
    """
    for layer, node in scope.pairs():
        # The types of a body's Parameters are given, not inferred.
        count = 1 if layer.type == "Parameter" else scope.subject.inference.counts.get(node)
        if count is None or (not count and not has_body(node)) or node in scope.subject.inference.failed:
            continue  # 0 without bodies: the number of outputs depends on values
        if len(layer.outputs) > count:
            extra = layer.outputs[count]
            message = f"lists {len(layer.outputs)} output ports; {node.type} has {count}"
            yield Hit(layer, message, line=extra.line, port=f"output port {extra.id}")


@graph_rule("IR411", "error", "Parameter without an output port")
def no_output(scope: Scope) -> Iterator[Hit]:
    """A Parameter lists no output port, so it cannot feed anything.

    Example: a Parameter whose `<output>` was lost.
    """
    for layer, _ in scope.pairs():
        if layer.type == "Parameter" and not layer.outputs:
            yield Hit(layer, "lists no output port")
